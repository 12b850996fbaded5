//! DataFusion's sentences and what we say instead (phrases.txt).
//!
//! In: a text of DataFusion without prefixes. Out: the kind of error that it is and the sentence in SQL's words.
//! Invariant: a sentence that is not listed stays as it is; what it names (types, columns, counts) is in ours, too.
//! Not here: errors about a call's arguments (signatures.rs); names of types (words.rs).

use std::sync::LazyLock;

use super::words::in_sql_words;

/// Which error a sentence becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentenceKind {
    /// Types do not fit.
    Type,
    /// The query makes no sense.
    Planning,
    /// It is understood, and not done.
    Unsupported,
    /// It fails while running.
    Execution,
}

/// A kind, a sentence of DataFusion's, ours.
type Phrase = (SentenceKind, &'static str, &'static str);

static PHRASES: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let lines = include_str!("phrases.txt").lines();
    lines.filter_map(phrase).collect()
});

/// The phrase of a line; a line that begins otherwise is a comment.
fn phrase(line: &'static str) -> Option<Phrase> {
    const KINDS: [(&str, SentenceKind); 4] = [
        ("Type: ", SentenceKind::Type),
        ("Planning: ", SentenceKind::Planning),
        ("Unsupported: ", SentenceKind::Unsupported),
        ("Execution: ", SentenceKind::Execution),
    ];
    let (theirs, ours) = line.split_once(" => ")?;
    let of_kind =
        |(word, kind): &(&str, SentenceKind)| Some((*kind, theirs.strip_prefix(word)?, ours));
    KINDS.iter().find_map(of_kind)
}

/// What we say instead of a sentence of DataFusion's.
pub(super) fn told(text: &str) -> Option<(SentenceKind, String)> {
    PHRASES.iter().find_map(|(kind, theirs, ours)| {
        let parts = parts(text, theirs)?;
        Some((*kind, filled(ours, &parts)))
    })
}

/// The parts of a text that stand where a pattern has `{}`.
fn parts<'a>(text: &'a str, pattern: &str) -> Option<Vec<&'a str>> {
    let mut pieces = pattern.split("{}");
    let first = pieces.next()?;
    let mut rest = match first {
        "" => text,
        first => text.split_once(first)?.1,
    };
    let mut parts = Vec::new();
    for piece in pieces {
        let (part, after) = match piece {
            "" => (rest, ""),
            piece => rest.split_once(piece)?,
        };
        parts.push(part);
        rest = after;
    }
    // A pattern that begins with a name begins with one word.
    let is_word = |part: &str| !part.is_empty() && !part.contains([' ', '\n']);
    (!first.is_empty() || parts.first().is_some_and(|part| is_word(part))).then_some(parts)
}

fn filled(ours: &str, parts: &[&str]) -> String {
    let mut pieces = ours.split('{');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let Some((name, after)) = piece.split_once('}') else {
            continue;
        };
        let part = name
            .trim_end_matches('+')
            .parse()
            .ok()
            .and_then(|part: usize| parts.get(part))
            .map_or("", |part| part.trim().trim_end_matches('.'));
        match part.parse::<u64>() {
            Ok(number) if name.ends_with('+') => out.push_str(&(number + 1).to_string()),
            _ => out.push_str(&in_sql_words(without_quotes(part))),
        }
        out.push_str(after);
    }
    out
}

/// A part that is in quotes as a whole.
fn without_quotes(part: &str) -> &str {
    let inner = |quote| part.strip_prefix(quote)?.strip_suffix(quote);
    let inner = inner('"').or_else(|| inner('\''));
    inner
        .filter(|inner| !inner.contains(['"', '\'']))
        .unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::{PHRASES, SentenceKind, told};

    #[test]
    fn every_line_is_a_phrase() {
        let lines = include_str!("phrases.txt").lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), PHRASES.len());
    }

    #[test]
    fn sentences() {
        for (theirs, kind, ours) in [
            (
                "Cannot coerce arithmetic expression Utf8 + Int64 to valid types",
                SentenceKind::Type,
                "VARCHAR + BIGINT: there is no such operation; cast one side",
            ),
            (
                "array_sum function requires 1 argument, got 2",
                SentenceKind::Type,
                "'array_sum' takes 1 argument, not 2",
            ),
            (
                "Inconsistent data type across values list at row 1 column 0. Was Int64 but found Utf8",
                SentenceKind::Type,
                "column 1 of VALUES is BIGINT in one row and VARCHAR in row 2; cast one of them",
            ),
            (
                "Column in SELECT must be in GROUP BY or an aggregate function: column \"t.x\" must appear in the GROUP BY \
                 clause or must be part of an aggregate function, currently only \"Utf8(\"x\")\" appears",
                SentenceKind::Planning,
                "column 't.x' in SELECT is neither a key of GROUP BY nor inside an aggregate; add it to GROUP BY, or write any_value(t.x)",
            ),
        ] {
            assert_eq!(told(theirs), Some((kind, ours.to_owned())), "{theirs}");
        }
        assert_eq!(told("something else does not support type Int64"), None);
    }
}
