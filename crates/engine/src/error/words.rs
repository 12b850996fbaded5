//! DataFusion's strings in SQL's words: `BIGINT` for `Int64`, `'x'` for `Utf8("x")`, nothing of what Rust prints of its types.
//!
//! In: a text of DataFusion. Out: the same without names and forms that are Rust's.
//! Invariant: what stands in quotes is the user's and stays as it is.
//! Not here: which kind of error a text is (from_datafusion.rs).

/// Types of DataFusion that take no arguments, and their names in SQL.
const PLAIN: &[(&str, &str)] = &[
    ("Null", "NULL"),
    ("Boolean", "BOOLEAN"),
    ("Int8", "TINYINT"),
    ("Int16", "SMALLINT"),
    ("Int32", "INTEGER"),
    ("Int64", "BIGINT"),
    ("UInt8", "UTINYINT"),
    ("UInt16", "USMALLINT"),
    ("UInt32", "UINTEGER"),
    ("UInt64", "UBIGINT"),
    ("Float16", "FLOAT"),
    ("Float32", "FLOAT"),
    ("Float64", "DOUBLE"),
    ("Utf8", "VARCHAR"),
    ("LargeUtf8", "VARCHAR"),
    ("Utf8View", "VARCHAR"),
    ("Binary", "BLOB"),
    ("LargeBinary", "BLOB"),
    ("BinaryView", "BLOB"),
    ("Date32", "DATE"),
    ("Date64", "DATE"),
    ("NativeType", "type"),
];

/// Types of DataFusion that take arguments.
const WITH_ARGUMENTS: &[(&str, &str)] = &[
    ("FixedSizeBinary", "BLOB"),
    ("Time32", "TIME"),
    ("Time64", "TIME"),
    ("Timestamp", "TIMESTAMP"),
    ("Interval", "INTERVAL"),
    ("Duration", "INTERVAL"),
    ("Decimal32", "DECIMAL"),
    ("Decimal64", "DECIMAL"),
    ("Decimal128", "DECIMAL"),
    ("Decimal256", "DECIMAL"),
    ("List", "[]"),
    ("LargeList", "[]"),
    ("ListView", "[]"),
    ("FixedSizeList", "[]"),
    ("Dictionary", ""),
    ("Struct", "STRUCT"),
    ("Map", "MAP"),
];

/// Literals whose names are no types.
const LITERALS: &[&str] = &[
    "TimestampSecond",
    "TimestampMillisecond",
    "TimestampMicrosecond",
    "TimestampNanosecond",
    "IntervalMonthDayNano",
    "IntervalYearMonth",
    "IntervalDayTime",
    "Time64Nanosecond",
    "Time64Microsecond",
    "DurationMicrosecond",
    "DurationNanosecond",
];

/// The text in SQL's words.
pub(crate) fn in_sql_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let quoted = matches!(c, '\'' | '"' | '`')
            .then(|| quoted_end(rest, c))
            .flatten();
        if let Some(end) = quoted.filter(|_| !before.is_alphanumeric()) {
            out.push_str(&quoted_words(&rest[..end]));
            before = c;
            rest = &rest[end..];
            continue;
        }
        if c.is_ascii_alphabetic() && !before.is_alphanumeric() && before != '_' && before != '.' {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let (written, after) = in_place_of(word, after);
            out.push_str(&written);
            before = 'x';
            rest = after;
            continue;
        }
        out.push(c);
        before = c;
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Where a text in quotes ends; none if it is not closed.
fn quoted_end(text: &str, quote: char) -> Option<usize> {
    text[1..].find(quote).map(|at| at + 2)
}

/// A call in quotes, as in `'abs(Utf8)'`, has types in it.
fn quoted_words(quoted: &str) -> String {
    let inner = &quoted[1..quoted.len() - 1];
    match inner.split_once('(') {
        Some((name, rest)) if rest.ends_with(')') && is_name(name) => {
            let quote = &quoted[..1];
            format!("{quote}{name}({}{quote}", in_sql_words(rest))
        }
        _ => quoted.to_owned(),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// What stands in the place of a word and the arguments behind it, and the rest.
fn in_place_of<'a>(word: &str, after: &'a str) -> (String, &'a str) {
    let plain = PLAIN
        .iter()
        .find(|(rust, _)| *rust == word)
        .map(|(_, sql)| *sql);
    let with_arguments = WITH_ARGUMENTS.iter().find(|(rust, _)| *rust == word);
    let arguments = enclosed(after, '(', ')');
    if let (Some(sql), None) = (plain, arguments) {
        return (sql.to_owned(), after);
    }
    if let Some((inner, rest)) = arguments {
        if plain.is_some() || LITERALS.contains(&word) {
            return (literal(inner), rest);
        }
        if let Some((_, sql)) = with_arguments {
            return (of_arguments(sql, inner), rest);
        }
        // `Identifier(Ident { value: "a", … })`.
        if word.starts_with(|c: char| c.is_ascii_uppercase()) && inner.contains(" {") {
            return ("…".to_owned(), rest);
        }
    }
    // `Field { name: "a", data_type: Int64, … }` and other forms of Rust's.
    if word.starts_with(|c: char| c.is_ascii_uppercase())
        && let Some((inner, rest)) = enclosed(after, '{', '}')
    {
        let data_type = inner
            .split_once("data_type: ")
            .map(|(_, rest)| first_of(rest));
        return match data_type {
            Some(data_type) => (in_sql_words(data_type), rest),
            None => ("…".to_owned(), rest),
        };
    }
    (word.to_owned(), after)
}

/// What is enclosed at the beginning of a text, perhaps after a blank before a brace, and what follows.
fn enclosed(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let text = if open == '{' { text.trim_start() } else { text };
    let inside = text.strip_prefix(open)?;
    let mut depth = 1;
    let mut quote = None;
    for (at, c) in inside.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' => quote = Some(c),
            None if c == open => depth += 1,
            None if c == close => depth -= 1,
            None => {}
        }
        if depth == 0 {
            return Some((&inside[..at], &inside[at + c.len_utf8()..]));
        }
    }
    None
}

/// The text up to the first comma that is not enclosed.
fn first_of(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' if depth == 0 => return &text[..at],
            ')' | '}' | ']' => depth -= 1,
            ',' if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

/// A literal as one writes it.
fn literal(inner: &str) -> String {
    let inner = inner
        .strip_prefix("Some(")
        .and_then(|inner| inner.strip_suffix(')'))
        .unwrap_or(inner);
    match inner
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        Some(text) => format!("'{text}'"),
        None => inner.to_owned(),
    }
}

fn of_arguments(sql: &str, inner: &str) -> String {
    match sql {
        "[]" if inner.contains(" x ") => {
            let (length, of) = inner.split_once(" x ").unwrap_or(("", inner));
            let of = of
                .trim_start_matches("nullable ")
                .trim_start_matches("non-null ");
            format!("{}[{length}]", in_sql_words(first_of(of)))
        }
        "[]" => format!(
            "{}[]",
            in_sql_words(first_of(
                inner
                    .trim_start_matches("nullable ")
                    .trim_start_matches("non-null ")
            ))
        ),
        "" => {
            let of = first_of(inner).len();
            in_sql_words(inner[of..].trim_start_matches([',', ' ']))
        }
        "STRUCT" => format!("STRUCT({})", fields(inner).join(", ")),
        "MAP" => {
            let entries = fields(first_of(inner)).join("");
            let entries = entries
                .split_once("STRUCT(")
                .map_or(inner, |(_, rest)| rest);
            let types = entries.trim_end_matches(')').split(", ");
            let types = types.map(|field| field.rsplit_once(' ').map_or(field, |(_, of)| of));
            format!("MAP({})", types.collect::<Vec<_>>().join(", "))
        }
        "DECIMAL" if inner.contains("Some(") => literal(first_of(inner)),
        "DECIMAL" => format!("DECIMAL({})", inner.replace(' ', "")),
        "TIMESTAMP" if inner.contains("Some") => "TIMESTAMP WITH TIME ZONE".to_owned(),
        sql => sql.to_owned(),
    }
}

/// The fields in `"a": Int64, "b": non-null Utf8`, as one writes them.
fn fields(inner: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut rest = inner.trim_start_matches('[').trim_end_matches(']');
    while !rest.is_empty() {
        let field = first_of(rest);
        rest = rest[field.len()..].trim_start_matches([',', ' ']);
        fields.push(match field.split_once("\": ") {
            Some((name, of)) => {
                let of = in_sql_words(
                    of.trim_start_matches("non-null ")
                        .trim_start_matches("nullable "),
                );
                format!("{} {of}", name.trim_start_matches('"'))
            }
            None => in_sql_words(field),
        });
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::in_sql_words;

    #[test]
    fn rust_has_no_say() {
        for (text, expected) in [
            (
                "coercion from Utf8 to Int64",
                "coercion from VARCHAR to BIGINT",
            ),
            ("Int64(1) + Utf8(\"x\")", "1 + 'x'"),
            (
                "Timestamp(Nanosecond, None) - Boolean",
                "TIMESTAMP - BOOLEAN",
            ),
            ("Timestamp(ns, Some(\"UTC\"))", "TIMESTAMP WITH TIME ZONE"),
            ("Decimal128(3, 1)", "DECIMAL(3,1)"),
            (
                "List(Field { name: \"item\", data_type: Int64, nullable: true })",
                "BIGINT[]",
            ),
            ("List(Int64)", "BIGINT[]"),
            (
                "Struct(\"a\": Int64, \"b\": non-null List(Utf8))",
                "STRUCT(a BIGINT, b VARCHAR[])",
            ),
            (
                "Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": Int64), unsorted)",
                "MAP(VARCHAR, BIGINT)",
            ),
            ("FixedSizeList(3 x Int32)", "INTEGER[3]"),
            ("Dictionary(Int32, Utf8)", "VARCHAR"),
            ("'abs(Utf8, Int64)'", "'abs(VARCHAR, BIGINT)'"),
            (
                "the column 'Int64' of t.Utf8",
                "the column 'Int64' of t.Utf8",
            ),
            ("ScalarUDF { inner: Abs { a: 1 } } failed", "… failed"),
            ("got: Identifier(Ident { value: \"a\" })", "got: …"),
            ("it's Utf8", "it's VARCHAR"),
        ] {
            assert_eq!(in_sql_words(text), expected, "{text}");
        }
    }
}
