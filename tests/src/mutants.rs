//! Right statements made wrong, the way people make them wrong: a comma left out, a word misspelt, a quote not closed.
//!
//! In: a right statement. Out: statements that differ from it in one place.
//! Invariant: the same statement always gives the same mutants in the same order.
//! Not here: what the engine says of them (tests/messages.rs).

/// Words of SQL that a statement may have.
const KEYWORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "group",
    "by",
    "order",
    "having",
    "limit",
    "join",
    "on",
    "as",
    "and",
    "or",
    "not",
    "in",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "over",
    "partition",
    "distinct",
    "with",
    "union",
    "all",
    "like",
    "is",
    "null",
    "date",
    "interval",
    "values",
    "left",
    "using",
    "cast",
    "asc",
    "desc",
    "filter",
];

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Word(String),
    Number(String),
    /// With its quotes.
    Text(String),
    /// Blanks, commas, parentheses, operators.
    Sign(char),
}

impl Piece {
    fn text(&self) -> String {
        match self {
            Piece::Word(text) | Piece::Number(text) | Piece::Text(text) => text.clone(),
            Piece::Sign(sign) => sign.to_string(),
        }
    }
}

/// All mutants of a statement that differ from each other and from it.
pub fn mutants(statement: &str) -> Vec<String> {
    let pieces = pieces(statement);
    let mut mutants = Vec::new();
    for at in 0..pieces.len() {
        for wrong in wrong_pieces(&pieces, at) {
            let mutant: String = pieces
                .iter()
                .enumerate()
                .map(|(other, piece)| match other == at {
                    true => wrong.clone(),
                    false => piece.text(),
                })
                .collect();
            if mutant != statement && !mutants.contains(&mutant) {
                mutants.push(mutant);
            }
        }
    }
    mutants
}

/// What may stand in the place of a piece.
fn wrong_pieces(pieces: &[Piece], at: usize) -> Vec<String> {
    let is_call = pieces.get(at + 1) == Some(&Piece::Sign('('));
    match &pieces[at] {
        Piece::Word(word) if KEYWORDS.contains(&word.to_lowercase().as_str()) => {
            vec![swapped(word)]
        }
        Piece::Word(word) if is_call => vec![without_vowels(word), format!("{word}x")],
        Piece::Word(word) => vec![shortened(word)],
        Piece::Text(text) => {
            let inner = &text[1..text.len() - 1];
            vec![
                format!("'{inner}"),
                format!("\"{inner}\""),
                inner.to_owned(),
            ]
        }
        Piece::Number(number) => vec![format!("'{number} pieces'"), format!("{number}x")],
        // `f(` with an argument more.
        Piece::Sign('(') if at > 0 && matches!(pieces[at - 1], Piece::Word(_)) => {
            vec!["((".to_owned(), "(true, ".to_owned()]
        }
        Piece::Sign(',' | ')') => vec![String::new()],
        Piece::Sign(_) => Vec::new(),
    }
}

/// The second and the third letter in each other's place.
fn swapped(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    match letters.len() {
        0..2 => format!("{word}{word}"),
        2 => letters.into_iter().rev().collect(),
        _ => {
            letters.swap(1, 2);
            letters.into_iter().collect()
        }
    }
}

fn without_vowels(word: &str) -> String {
    let kept: String = word
        .chars()
        .filter(|c| !"aeiouAEIOU".contains(*c))
        .collect();
    if kept.len() < 2 {
        format!("{word}{word}")
    } else {
        kept
    }
}

/// A letter is left out.
fn shortened(word: &str) -> String {
    let letters: Vec<char> = word.chars().collect();
    let middle = letters.len() / 2;
    match letters.len() {
        0..3 => format!("{word}x"),
        _ => letters
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != middle)
            .map(|(_, c)| c)
            .collect(),
    }
}

fn pieces(statement: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            c if c.is_alphabetic() || c == '_' => {
                length_of(rest, |c| c.is_alphanumeric() || c == '_')
            }
            c if c.is_ascii_digit() => length_of(rest, |c| c.is_ascii_digit() || c == '.'),
            c => c.len_utf8(),
        };
        let (text, after) = rest.split_at(length);
        pieces.push(match first {
            '\'' => Piece::Text(text.to_owned()),
            c if c.is_alphabetic() || c == '_' => Piece::Word(text.to_owned()),
            c if c.is_ascii_digit() => Piece::Number(text.to_owned()),
            c => Piece::Sign(c),
        });
        rest = after;
    }
    pieces
}

fn length_of(text: &str, is_part: fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::mutants;

    #[test]
    fn each_differs_in_one_place() {
        let found = mutants("SELECT count(a), 1 FROM t WHERE b = 'x'");
        for wrong in [
            "SLEECT count(a), 1 FROM t WHERE b = 'x'",
            "SELECT cnt(a), 1 FROM t WHERE b = 'x'",
            "SELECT count(a) 1 FROM t WHERE b = 'x'",
            "SELECT count(a, 1 FROM t WHERE b = 'x'",
            "SELECT count(a), 1 FORM t WHERE b = 'x'",
            "SELECT count(a), 1 FROM t WHERE b = 'x",
            "SELECT count(a), 1 FROM t WHERE b = \"x\"",
        ] {
            assert!(found.contains(&wrong.to_owned()), "{wrong}\n{found:#?}");
        }
    }
}
