//! Functions of regular expressions that DuckDB has: what matches, as text or list, and what lies between.
//!
//! In: a text, a pattern, perhaps a group, perhaps options. Out: strings, lists, booleans.
//! Invariant: the engine is DataFusion's, with its syntax; a pattern is compiled once while rows have the same.
//! Not here: `regexp_replace`, `regexp_like` and `regexp_match`, DataFusion's; names of groups (sql/short_forms.rs).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListBuilder, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::{Regex, RegexBuilder};

use super::definition::{CallArguments, CallForm, rows};
use super::kinds::{ParameterKind, list_of};
use super::strings::lists_of_strings;

const MATCHED: &[CallForm] = &[
    &[ParameterKind::Text, ParameterKind::Text],
    &[
        ParameterKind::Text,
        ParameterKind::Text,
        ParameterKind::Text,
    ],
];
const EXTRACTED: &[CallForm] = &[
    &[ParameterKind::Text, ParameterKind::Text],
    &[
        ParameterKind::Text,
        ParameterKind::Text,
        ParameterKind::Integer,
    ],
    &[
        ParameterKind::Text,
        ParameterKind::Text,
        ParameterKind::Integer,
        ParameterKind::Text,
    ],
];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let list = |_: &[DataType]| Ok(list_of(DataType::Utf8View));
    let split = rows("string_split_regex", MATCHED, list, split);
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let mut all: Vec<ScalarUDF> = vec![
        rows("regexp_extract", EXTRACTED, text, extract).into(),
        rows(
            "regexp_matches",
            MATCHED,
            |_| Ok(DataType::Boolean),
            matches,
        )
        .into(),
        rows(
            "regexp_full_match",
            MATCHED,
            |_| Ok(DataType::Boolean),
            matches,
        )
        .into(),
        rows("regexp_extract_all", EXTRACTED, list, extract_all).into(),
        rows(
            "regexp_escape",
            &[&[ParameterKind::Text]],
            |_| Ok(DataType::Utf8View),
            |call| {
                let strings = call.strings(0);
                call.each::<StringViewArray, _>(|row| Ok(Some(regex::escape(strings.value(row)))))
            },
        )
        .into(),
    ];
    let splits = [
        split.also("str_split_regex"),
        split.also("regexp_split_to_array"),
        split,
    ];
    all.extend(splits.map(ScalarUDF::from));
    all
}

/// The pattern of the last row.
#[derive(Default)]
struct Last {
    pattern: String,
    options: String,
    regex: Option<Regex>,
}

impl Last {
    /// The pattern of a row, with the options that argument `options_at` has. A pattern of `regexp_full_match` has to match
    /// the whole text.
    fn regex(&mut self, call: &CallArguments, row: usize, options_at: usize) -> Result<&Regex> {
        let pattern = call.strings(1).value(row);
        let options = match call.args.get(options_at) {
            Some(options) => options.as_string_view().value(row),
            None => "",
        };
        if self.pattern != pattern || self.options != options {
            self.regex = None;
        }
        match &mut self.regex {
            Some(regex) => Ok(regex),
            none => {
                self.pattern = pattern.to_owned();
                self.options = options.to_owned();
                Ok(none.insert(compiled(call, pattern, options)?))
            }
        }
    }
}

fn compiled(call: &CallArguments, pattern: &str, options: &str) -> Result<Regex> {
    let is_full = call.name == "regexp_full_match";
    let mut text = match is_full {
        true => format!("^(?:{pattern})$"),
        false => pattern.to_owned(),
    };
    if options.contains('l') {
        text = regex::escape(pattern);
    }
    let mut builder = RegexBuilder::new(&text);
    for option in options.chars() {
        match option {
            'c' | 'l' | 'g' => {}
            'i' => {
                builder.case_insensitive(true);
            }
            // Both say that `.` and `^` see lines: `s` by itself in the other direction.
            'm' | 'n' | 'p' => {
                builder.multi_line(true);
            }
            's' => {
                builder.dot_matches_new_line(true);
            }
            ' ' => {}
            other => {
                return Err(call.invalid(format!(
                    "'{other}' is no option; there are c, i, l, m, n, p and s"
                )));
            }
        }
    }
    let bad = |error: regex::Error| {
        let error = error.to_string();
        let reason = error
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        call.invalid(format!("'{pattern}' is no regular expression: {reason}"))
    };
    builder.build().map_err(bad)
}

fn matches(call: &CallArguments) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let mut last = Last::default();
    call.each::<BooleanArray, _>(|row| {
        let pattern = last.regex(call, row, 2)?;
        Ok(Some(pattern.is_match(strings.value(row))))
    })
}

fn split(call: &CallArguments) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let mut last = Last::default();
    lists_of_strings(call, |row, parts| {
        let text = strings.value(row);
        match call.args[1].is_null(row) {
            true => parts.push(text.to_owned()),
            false => {
                let pattern = last.regex(call, row, 2)?;
                let (mut from, mut end) = (0, 0);
                for found in pattern.find_iter(text) {
                    // Nothing at the ends of the text, or behind another match, splits nothing.
                    let is_idle = found.start() == end || found.end() == text.len();
                    if found.is_empty() && is_idle {
                        continue;
                    }
                    parts.push(text[from..found.start()].to_owned());
                    (from, end) = (found.end(), found.end());
                }
                parts.push(text[from..].to_owned());
            }
        }
        Ok(())
    })
}

/// The group that argument 2 asks for.
fn group(call: &CallArguments, row: usize) -> Result<usize> {
    let wanted = call.args.get(2).map_or(0, |_| call.integers(2).value(row));
    let valid = usize::try_from(wanted).ok().filter(|group| *group <= 9);
    valid.ok_or_else(|| call.invalid(format!("the group has to be between 0 and 9, not {wanted}")))
}

fn extract_all(call: &CallArguments) -> Result<ArrayRef> {
    let (strings, nulls) = (call.strings(0), call.nulls());
    let mut last = Last::default();
    let field = Field::new_list_field(DataType::Utf8View, true);
    let mut lists = ListBuilder::new(StringViewBuilder::new()).with_field(field);
    for row in 0..call.rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            lists.append_null();
            continue;
        }
        let pattern = last.regex(call, row, 3)?;
        let group = group(call, row)?;
        for captures in pattern.captures_iter(strings.value(row)) {
            let part = captures.get(group).map(|part| part.as_str());
            lists.values().append_option(part);
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

fn extract(call: &CallArguments) -> Result<ArrayRef> {
    let strings = call.strings(0);
    let mut last = Last::default();
    call.each::<StringViewArray, _>(|row| {
        let pattern = last.regex(call, row, 3)?;
        let group = group(call, row)?;
        let captures = pattern.captures(strings.value(row));
        let part = captures.as_ref().and_then(|captures| captures.get(group));
        Ok(Some(part.map_or("", |part| part.as_str()).to_owned()))
    })
}
