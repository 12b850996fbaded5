//! PostgreSQL's templates of dates and times: `to_char(t, 'YYYY-MM-DD')`, `to_date(s, 'DD.MM.YYYY')`.
//!
//! In: a template. Out: the same as a format with `%`, which functions here read.
//! Invariant: a template that has a pattern of which there is no such format is an error; without one it would be taken for the text.
//! Not here: formats with `%`, which stay; templates of numbers.

use crate::error::{Error, Result};

/// Patterns and their formats, the longer ones of a beginning first. What PostgreSQL fills with blanks stands behind FM alone.
const PATTERNS: [(&str, &str); 26] = [
    ("YYYY", "%Y"),
    ("yyyy", "%Y"),
    ("IYYY", "%G"),
    ("HH24", "%H"),
    ("hh24", "%H"),
    ("HH12", "%I"),
    ("hh12", "%I"),
    ("FMMonth", "%B"),
    ("FMDay", "%A"),
    ("FMDDD", "%-j"),
    ("FMDD", "%-d"),
    ("FMMM", "%-m"),
    ("DDD", "%j"),
    ("Mon", "%b"),
    ("YY", "%y"),
    ("MM", "%m"),
    ("mm", "%m"),
    ("MI", "%M"),
    ("mi", "%M"),
    ("Dy", "%a"),
    ("DD", "%d"),
    ("dd", "%d"),
    ("HH", "%I"),
    ("SS", "%S"),
    ("ss", "%S"),
    ("AM", "%p"),
];

/// The format of a template; `None` if it has `%` and is a format itself.
pub(super) fn format_of(function: &str, template: &str) -> Result<Option<String>> {
    let has_letters = template.contains(|c: char| c.is_ascii_alphabetic());
    if template.contains('%') || !has_letters {
        return Ok(None);
    }
    read(template).map(Some).ok_or_else(|| Error::Planning {
        message: format!(
            "{function}: the template '{template}' has a pattern that is not known; write a format, e.g. '%Y-%m-%d %H:%M:%S'"
        ),
        position: None,
    })
}

fn read(template: &str) -> Option<String> {
    let mut format = String::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        let pattern = PATTERNS
            .iter()
            .find(|(pattern, _)| rest.starts_with(pattern));
        if let Some((pattern, field)) = pattern {
            format.push_str(field);
            rest = &rest[pattern.len()..];
        } else if rest.starts_with("PM") {
            format.push_str("%p");
            rest = &rest[2..];
        } else if first == '"' {
            let (quoted, others) = rest[1..].split_once('"')?;
            format.push_str(quoted);
            rest = others;
        } else if first.is_ascii_alphabetic() {
            return None;
        } else {
            format.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    Some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_as_formats() {
        let read = |template| read(template).unwrap_or_default();
        assert_eq!(read("YYYY-MM-DD"), "%Y-%m-%d");
        assert_eq!(read("DD.MM.YY HH24:MI:SS"), "%d.%m.%y %H:%M:%S");
        assert_eq!(read("FMDD. FMMonth \"of\" YYYY"), "%-d. %B of %Y");
        assert_eq!(read("HH12:MI PM"), "%I:%M %p");
        assert_eq!(super::read("Month"), None);
        assert_eq!(super::read("YYYY-Q"), None);
    }
}
