//! JSON in strings: the parts of a value, found by a path, and its text without blanks.
//!
//! In: a text of JSON and a path (`$.a[0]`, `/a/0` or a name). Out: the parts that the path leads to.
//! Invariant: a number stays the text that it is, with all its digits: no part is read as a float and written again.
//! Not here: columns and functions (json.rs).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What a text of JSON is at its outside.
pub(super) enum JsonShape<'a> {
    Null,
    Boolean,
    /// As it is written.
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<&'a RawValue>),
    Object(Vec<(Cow<'a, str>, &'a RawValue)>),
}

/// The whole of a text; an error that says what is wrong and where.
pub(super) fn parsed(text: &str) -> Result<&RawValue, String> {
    serde_json::from_str(text).map_err(|error| {
        let shown: String = text.chars().take(40).collect();
        format!("'{shown}' is no JSON: {error}")
    })
}

/// What a value is.
pub(super) fn shape(value: &RawValue) -> JsonShape<'_> {
    let text = value.get();
    let read = match text.as_bytes().first() {
        Some(b'{') => members(text).map(JsonShape::Object),
        Some(b'[') => serde_json::from_str(text).map(JsonShape::Array),
        Some(b'"') => {
            serde_json::from_str::<JsonText>(text).map(|JsonText(text)| JsonShape::Text(text))
        }
        Some(b't' | b'f') => Ok(JsonShape::Boolean),
        Some(b'n') => Ok(JsonShape::Null),
        _ => Ok(JsonShape::Number(text)),
    };
    // The value was read as a whole before.
    read.unwrap_or(JsonShape::Null)
}

/// A text whose escapes are resolved, borrowed where it has none.
struct JsonText<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for JsonText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonText<'de>, D::Error> {
        struct JsonTextVisitor;

        impl<'de> Visitor<'de> for JsonTextVisitor {
            type Value = JsonText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonText<'de>, E> {
                Ok(JsonText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonText<'de>, E> {
                Ok(JsonText(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(JsonTextVisitor)
    }
}

/// Members of an object in their order; a name that occurs twice has two.
fn members(text: &str) -> serde_json::Result<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((JsonText(name), value)) =
                map.next_entry::<JsonText<'de>, &'de RawValue>()?
            {
                members.push((name, value));
            }
            Ok(members)
        }
    }

    serde_json::Deserializer::from_str(text).deserialize_map(Members)
}

/// A value without blanks between its parts, whose strings have no more escapes than they need.
pub(super) fn write_compact(value: &RawValue, text: &mut String) {
    match shape(value) {
        JsonShape::Array(items) => {
            text.push('[');
            for (at, item) in items.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write_compact(item, text);
            }
            text.push(']');
        }
        JsonShape::Object(members) => {
            text.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write_text(&name, text);
                text.push(':');
                write_compact(value, text);
            }
            text.push('}');
        }
        JsonShape::Text(string) => write_text(&string, text),
        _ => text.push_str(value.get()),
    }
}

/// A text in quotes, with the escapes that JSON asks for.
pub(super) fn write_text(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// A member of an object.
    Name(String),
    /// An item of an array, from 0 on; below 0 from its end.
    Item(i64),
    /// A member or an item, as the value is one or the other: `/0`.
    Either(String, Option<i64>),
    /// All of them.
    All,
    /// The value and all that is in it, at any depth.
    Deep,
}

/// The way to parts of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path(Vec<Step>);

impl Path {
    /// `$.a[0]` as steps, `/a/0` as a pointer, all else as one name. `None` if it is none of these.
    pub fn read(text: &str) -> Option<Path> {
        match text.as_bytes().first() {
            Some(b'$') => steps(&text[1..]).map(Path),
            Some(b'/') => {
                let names = text[1..].split('/');
                let names = names.map(|name| name.replace("~1", "/").replace("~0", "~"));
                let steps = names.map(|name| {
                    let item = name.parse().ok();
                    Step::Either(name, item)
                });
                Some(Path(steps.collect()))
            }
            None => Some(Path(Vec::new())),
            Some(_) => Some(Path(vec![Step::Name(text.to_owned())])),
        }
    }

    /// An item of an array.
    pub fn item(at: i64) -> Path {
        Path(vec![Step::Item(at)])
    }

    /// True if it may lead to more than one part.
    pub fn is_many(&self) -> bool {
        self.0
            .iter()
            .any(|step| matches!(step, Step::All | Step::Deep))
    }

    /// The parts of `value` that it leads to.
    pub fn follow<'a>(&self, value: &'a RawValue) -> Vec<&'a RawValue> {
        let mut parts = vec![value];
        for step in &self.0 {
            let mut next = Vec::new();
            for part in parts {
                step.take(part, &mut next);
            }
            parts = next;
        }
        parts
    }
}

impl Step {
    fn take<'a>(&self, value: &'a RawValue, parts: &mut Vec<&'a RawValue>) {
        match (self, shape(value)) {
            (Step::Name(name) | Step::Either(name, _), JsonShape::Object(members)) => {
                let found = members.into_iter().find(|(member, _)| member == name);
                parts.extend(found.map(|(_, value)| value));
            }
            (Step::Item(at) | Step::Either(_, Some(at)), JsonShape::Array(items)) => {
                let from_end = if *at < 0 {
                    items.len() as i64 + at
                } else {
                    *at
                };
                let item = usize::try_from(from_end).ok().and_then(|at| items.get(at));
                parts.extend(item);
            }
            (Step::All, JsonShape::Object(members)) => {
                parts.extend(members.into_iter().map(|(_, value)| value));
            }
            (Step::All, JsonShape::Array(items)) => parts.extend(items),
            (Step::Deep, shape) => {
                parts.push(value);
                let below = match shape {
                    JsonShape::Object(members) => {
                        members.into_iter().map(|(_, value)| value).collect()
                    }
                    JsonShape::Array(items) => items,
                    _ => Vec::new(),
                };
                below.into_iter().for_each(|part| self.take(part, parts));
            }
            _ => {}
        }
    }
}

/// The steps behind `$`.
fn steps(mut rest: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Deep);
            rest = after;
            if !rest.starts_with('[') {
                let step;
                (step, rest) = name(rest)?;
                steps.push(step);
            }
        } else if let Some(after) = rest.strip_prefix('.') {
            let step;
            (step, rest) = name(after)?;
            steps.push(step);
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(match inside.trim() {
                "*" => Step::All,
                inside if inside.starts_with(['"', '\'']) => {
                    Step::Name(inside.get(1..inside.len().checked_sub(1)?)?.to_owned())
                }
                inside => Step::Item(inside.trim_start_matches('#').parse().ok()?),
            });
            rest = after;
        }
    }
    Some(steps)
}

/// The name at the beginning of the rest of a path, perhaps in quotes.
fn name(rest: &str) -> Option<(Step, &str)> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let (name, rest) = quoted.split_once('"')?;
        return Some((Step::Name(name.to_owned()), rest));
    }
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    match name {
        "" => None,
        "*" => Some((Step::All, rest)),
        name => Some((Step::Name(name.to_owned()), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, path: &str, expected: &[&str]) {
        let value = parsed(json).unwrap();
        let parts = Path::read(path).unwrap().follow(value);
        let parts: Vec<&str> = parts.iter().map(|part| part.get()).collect();
        assert_eq!(parts, expected, "{json} {path}");
    }

    #[test]
    fn paths_lead_to_parts() {
        let json = r#"{"a": {"b": [1, 2.50]}, "c.d": 3, "ä": null}"#;
        check(json, "$.a.b[1]", &["2.50"]);
        check(json, "$.a.b[#-1]", &["2.50"]);
        check(json, "/a/b/0", &["1"]);
        check(json, "$.\"c.d\"", &["3"]);
        check(json, "c.d", &["3"]);
        check(json, "$['ä']", &["null"]);
        check(json, "$.a.b[*]", &["1", "2.50"]);
        check(json, "$..b", &["[1, 2.50]"]);
        check(json, "$.x", &[]);
        check(json, "$", &[json]);
    }

    #[test]
    fn digits_stay() {
        let mut text = String::new();
        write_compact(
            parsed(r#" { "a" : [ 123456789012345678901234567890, 1.10 ] } "#).unwrap(),
            &mut text,
        );
        assert_eq!(text, r#"{"a":[123456789012345678901234567890,1.10]}"#);
    }

    #[test]
    fn broken_paths_are_none() {
        for path in ["$.", "$[", "$[x]", "$a"] {
            assert_eq!(Path::read(path), None, "{path}");
        }
    }
}
