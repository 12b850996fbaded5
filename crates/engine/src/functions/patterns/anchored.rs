//! `regexp_replace` with a pattern that begins with `^` and leaves few choices: one pass over 64 strings at a time.
//!
//! In: a pattern, its replacement and flags as DataFusion takes them. Out: a replacement, or None where DataFusion has to.
//! Invariant: results are DataFusion's. The pattern is read by the parser that DataFusion's own engine has. Trees that are not
//! known here, or that leave a run more than one end, are DataFusion's. So are patterns with flags in them, some of which
//! DataFusion's own shortcut takes for text.
//! Not here: the loop over bytes (kernels, `chain`); patterns that may match in the middle of a text.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, GenericStringBuilder, OffsetSizeTrait, StringViewArray,
};
use datafusion::arrow::datatypes::DataType;
use grouse_groupby::keys::fetch;
use grouse_kernels::chain::{ByteSet, Chain, ChainStep, Literal, STRINGS_MAX};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::parts::{StringParts, WantedText};

/// What becomes of a text whose beginning matches.
pub(super) struct Anchored {
    chain: Chain,
    parts: Vec<ReplacementPart>,
}

/// A part of the replacement.
#[derive(Debug, PartialEq)]
enum ReplacementPart {
    Text(String),
    /// What a group matched, counted from 0.
    Group(usize),
}

impl Anchored {
    /// `regexp_replace(…, pattern, replacement, flags)`.
    pub fn new(pattern: &str, replacement: &str, flags: Option<&str>) -> Option<Anchored> {
        let mut marks = pattern.split("(?").skip(1);
        if !pattern.starts_with('^') || marks.any(|mark| !mark.starts_with(':')) {
            return None;
        }
        // A match at the beginning is the only one: all matches, for which "g" stands, are no more.
        let pattern = match flags {
            None | Some("g") => pattern.to_string(),
            Some(flags) => format!("(?{}){pattern}", flags.replace('g', "")),
        };
        let tree = regex_syntax::parse(&pattern).ok()?;
        let HirKind::Concat(parts) = tree.kind() else {
            return None;
        };
        let (first, others) = parts.split_first()?;
        if !matches!(first.kind(), HirKind::Look(Look::Start)) {
            return None;
        }
        let mut steps = Vec::new();
        for part in others {
            add_steps(part, &mut steps)?;
        }
        // Groups that can match nothing are not in the tree, and leave their numbers unused.
        let number = |step: &ChainStep| match step {
            ChainStep::Open(group) => group + 1,
            _ => 0,
        };
        let groups = steps.iter().map(number).max().unwrap_or(0);
        Some(Anchored {
            chain: Chain::new(steps, groups)?,
            parts: parts_of(replacement, groups)?,
        })
    }

    /// The column of strings with what is replaced in each.
    pub fn replaced(&self, strings: &ArrayRef) -> Option<ArrayRef> {
        Some(match strings.data_type() {
            DataType::Utf8View => Arc::new(self.replaced_views(strings.as_string_view())),
            DataType::Utf8 => self.replaced_strings::<i32>(strings),
            DataType::LargeUtf8 => self.replaced_strings::<i64>(strings),
            _ => return None,
        })
    }

    fn replaced_views(&self, strings: &StringViewArray) -> StringViewArray {
        let mut parts = StringParts::new(strings);
        let buffers: Vec<&[u8]> = strings
            .data_buffers()
            .iter()
            .map(|buffer| &**buffer)
            .collect();
        let text = |row| strings.is_valid(row).then(|| strings.value(row));
        let are_clear = |rows: Range<usize>| {
            let views = &strings.views()[rows];
            // What a view of NULL says means nothing.
            let are_clear = strings.null_count() == 0 && self.chain.is_clear(views, &buffers);
            if !are_clear {
                for view in views {
                    fetch(*view, strings.data_buffers());
                }
            }
            are_clear
        };
        self.each(strings.len(), text, are_clear, |_, wanted| {
            parts.push(wanted)
        });
        parts.finish()
    }

    fn replaced_strings<O: OffsetSizeTrait>(&self, strings: &ArrayRef) -> ArrayRef {
        let strings = strings.as_string::<O>();
        let ends = strings.value_offsets();
        let bytes = (ends[strings.len()] - ends[0]).as_usize();
        let mut builder = GenericStringBuilder::<O>::with_capacity(strings.len(), bytes);
        let text = |row| strings.is_valid(row).then(|| strings.value(row));
        self.each(
            strings.len(),
            text,
            |_| false,
            |text, wanted| {
                builder.append_option(text.map(|text| match wanted {
                    WantedText::Same => text,
                    WantedText::Part(range) => &text[range],
                    WantedText::Other(other) => other,
                }));
            },
        );
        Arc::new(builder.finish())
    }

    /// Gives what becomes of the text of each row; `are_clear` is what [`Chain::is_clear`] says of some of them.
    fn each<'a>(
        &self,
        rows: usize,
        text: impl Fn(usize) -> Option<&'a str>,
        are_clear: impl Fn(Range<usize>) -> bool,
        mut give: impl FnMut(Option<&'a str>, WantedText<'_>),
    ) {
        let mut found = self.chain.found();
        let mut room = String::new();
        for start in (0..rows).step_by(STRINGS_MAX) {
            let block = start..rows.min(start + STRINGS_MAX);
            let (mut strings, mut held) = ([None; STRINGS_MAX], [&b""[..]; STRINGS_MAX]);
            let places = strings.iter_mut().zip(&mut held);
            for (row, (place, held)) in block.clone().zip(places) {
                *place = text(row);
                *held = place.unwrap_or_default().as_bytes();
            }
            let held = &held[..block.len()];
            self.chain
                .matched(held, are_clear(block.clone()), &mut found);
            for (at, text) in strings[..block.len()].iter().enumerate() {
                match (text, found.end(at)) {
                    (Some(text), Some(end)) => {
                        let group = |group: &usize| found.group(at, *group);
                        give(Some(text), self.wanted(text, end, group, &mut room));
                    }
                    _ => give(*text, WantedText::Same),
                }
            }
        }
    }

    /// What becomes of a text whose match ends there.
    #[inline(always)]
    fn wanted<'a>(
        &self,
        text: &str,
        end: usize,
        group: impl Fn(&usize) -> Range<usize>,
        room: &'a mut String,
    ) -> WantedText<'a> {
        match self.parts.as_slice() {
            [ReplacementPart::Group(number)] if end == text.len() => {
                WantedText::Part(group(number))
            }
            parts => {
                room.clear();
                for part in parts {
                    room.push_str(match part {
                        ReplacementPart::Text(text) => text,
                        ReplacementPart::Group(number) => &text[group(number)],
                    });
                }
                room.push_str(&text[end..]);
                WantedText::Other(room)
            }
        }
    }
}

/// The steps of a part of a pattern; None of what is not known here.
fn add_steps(part: &Hir, steps: &mut Vec<ChainStep>) -> Option<()> {
    match part.kind() {
        HirKind::Empty => {}
        HirKind::Literal(literal) => steps.push(ChainStep::Literal(Literal::new(&literal.0))),
        HirKind::Look(Look::End) => steps.push(ChainStep::End),
        HirKind::Repetition(repetition) => steps.push(repeated(repetition)?),
        HirKind::Capture(capture) => {
            let group = capture.index as usize - 1;
            steps.push(ChainStep::Open(group));
            add_steps(&capture.sub, steps)?;
            steps.push(ChainStep::Close(group));
        }
        HirKind::Concat(parts) => {
            for part in parts {
                add_steps(part, steps)?;
            }
        }
        HirKind::Alternation(ways) => {
            let strings = ways.iter().map(literal);
            steps.push(ChainStep::OneOf(strings.collect::<Option<_>>()?));
        }
        HirKind::Class(_) | HirKind::Look(_) => return None,
    }
    Some(())
}

fn repeated(repetition: &Repetition) -> Option<ChainStep> {
    let Repetition {
        min, max, greedy, ..
    } = repetition;
    match (min, max, greedy) {
        (0, Some(1), true) => {
            let strings = [literal(&repetition.sub)?, Literal::new(&[])];
            Some(ChainStep::OneOf(strings.into()))
        }
        (0 | 1, None, true) => Some(ChainStep::Run(set(&repetition.sub)?, *min as usize)),
        _ => None,
    }
}

fn literal(part: &Hir) -> Option<Literal> {
    match part.kind() {
        HirKind::Empty => Some(Literal::new(&[])),
        HirKind::Literal(literal) => Some(Literal::new(&literal.0)),
        _ => None,
    }
}

/// A class that has of the characters beyond ASCII all or none, and so of the bytes that they are made of. A text is whole
/// characters: a run of such bytes ends where one of them does.
fn set(part: &Hir) -> Option<ByteSet> {
    let HirKind::Class(Class::Unicode(class)) = part.kind() else {
        return None;
    };
    let ranges = class.ranges();
    let beyond = ranges.iter().filter(|range| !range.end().is_ascii());
    let has_others = match beyond.collect::<Vec<_>>()[..] {
        [] => false,
        [range] if range.start() <= '\u{80}' && range.end() == char::MAX => true,
        _ => return None,
    };
    Some(ByteSet::new(|byte| match byte.is_ascii() {
        true => {
            let byte = char::from(byte);
            let mut ranges = ranges.iter();
            ranges.any(|range| range.start() <= byte && byte <= range.end())
        }
        false => has_others,
    }))
}

/// The parts of a replacement: `\1` (or `\\1`) is the first group. None where `$` names a group, or where digits beyond
/// ASCII could.
fn parts_of(replacement: &str, groups: usize) -> Option<Vec<ReplacementPart>> {
    if replacement.contains('$') || replacement.contains('\\') && !replacement.is_ascii() {
        return None;
    }
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut left = replacement;
    while let Some(first) = left.chars().next() {
        let slashes = match left {
            _ if left.starts_with("\\\\") && digits(&left[2..]) > 0 => 2,
            _ if left.starts_with('\\') && digits(&left[1..]) > 0 => 1,
            _ => {
                text.push(first);
                left = &left[first.len_utf8()..];
                continue;
            }
        };
        let end = slashes + digits(&left[slashes..]);
        // Group 0 is all that matched, which has no place of its own here; of groups that are not there, nothing comes.
        match left[slashes..end].parse::<usize>() {
            Ok(0) => return None,
            Ok(group) if group <= groups => {
                if !text.is_empty() {
                    parts.push(ReplacementPart::Text(std::mem::take(&mut text)));
                }
                parts.push(ReplacementPart::Group(group - 1));
            }
            _ => {}
        }
        left = &left[end..];
    }
    if !text.is_empty() {
        parts.push(ReplacementPart::Text(text));
    }
    Some(parts)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_few_choices_are_taken_others_are_those_of_datafusion() {
        let taken = |pattern: &str| Anchored::new(pattern, r"\1", None).is_some();
        assert!(taken(r"^https?://(?:www\.)?([^/]+)/.*$"));
        assert!(taken("^(a|bc|)[x-z]*-"));
        for pattern in [
            "^([^é]*)é",
            "a",
            "a|^b",
            "^(?x)a#",
            "^(?P<a>b)",
            "^a.*b",
            "^(a)?b",
            "^a*?b",
            "(?m)^a",
            "^(?i)é+",
            r"^\d+-",
            "^[a-z]",
            "^a{2,}",
            "(",
        ] {
            assert!(!taken(pattern), "{pattern}");
        }
    }

    #[test]
    fn flags_are_part_of_the_pattern() {
        let taken = |flags| Anchored::new("^a.*$", "", Some(flags)).is_some();
        assert!(taken("g") && taken("s") && taken("gs"));
        assert!(!taken("m"), "any line");
        assert!(!taken("?") && !taken(""), "errors, which DataFusion names");
    }

    #[test]
    fn groups_of_a_replacement() {
        let text = |text: &str| ReplacementPart::Text(text.to_string());
        let of = |replacement| parts_of(replacement, 2);
        assert_eq!(of(""), Some(vec![]));
        assert_eq!(of("a-é"), Some(vec![text("a-é")]));
        assert_eq!(of(r"\1"), Some(vec![ReplacementPart::Group(0)]));
        assert_eq!(
            of(r"\\2x"),
            Some(vec![ReplacementPart::Group(1), text("x")])
        );
        assert_eq!(
            of(r"\\\2\"),
            Some(vec![text(r"\"), ReplacementPart::Group(1), text(r"\")])
        );
        assert_eq!(of(r"a\3b\99999999999999999999c"), Some(vec![text("abc")]));
        assert_eq!((of(r"\0"), of("$1"), of(r"é\1")), (None, None, None));
    }
}
