//! DataFusion's errors told apart.
//!
//! In: a `DataFusionError` with whatever it wraps: context, diagnostics, Arrow, Parquet, object store, ours.
//! Out: an [`Error`] of the right kind, with the position in the SQL text where DataFusion knows it.
//! Invariant: no text of DataFusion's Rust types or backtraces reaches the user.
//! Not here: names that are near a misspelt one; the session adds them where it knows more candidates.

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError, Span};
use datafusion::parquet::errors::ParquetError;
use datafusion::sql::sqlparser::parser::ParserError;

use super::phrases::{SentenceKind, told};
use super::signatures::wrong_arguments;
use super::words::in_sql_words;
use super::{Error, OutOfMemory, Position, nearest_names};

/// Rows of one table that are read to find its column types; as many as DuckDB reads.
pub(crate) const SAMPLE_ROWS: usize = 20_480;

/// Path of a bad file when the reader does not say which one it was; the query fills it in.
pub(crate) const PATH_UNKNOWN: &str = "?";

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        classify(&error, None)
    }
}

impl From<&DataFusionError> for Error {
    fn from(error: &DataFusionError) -> Error {
        classify(error, None)
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        classify_arrow(&error, None)
    }
}

fn classify(error: &DataFusionError, position: Option<Position>) -> Error {
    match error {
        DataFusionError::Context(_, inner) => classify(inner, position),
        DataFusionError::Shared(inner) => classify(inner, position),
        DataFusionError::Diagnostic(diagnostic, inner) => {
            classify(inner, diagnostic.span.map(self::position).or(position))
        }
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => classify(first, position),
            None => Error::Internal("an empty list of errors".to_string()),
        },
        DataFusionError::External(inner) => classify_foreign(inner.as_ref(), position),
        DataFusionError::SQL(inner, _) => syntax(inner, position),
        DataFusionError::SchemaError(inner, _) => classify_schema(inner, position),
        DataFusionError::ArrowError(inner, _) => classify_arrow(inner, position),
        DataFusionError::ParquetError(inner) => classify_parquet(inner, position),
        DataFusionError::ObjectStore(inner) => object_store(inner),
        DataFusionError::IoError(inner) => io(inner),
        DataFusionError::ResourcesExhausted(text) => match OutOfMemory::parse(text) {
            Some(out) => Error::OutOfMemory(out),
            None => Error::Execution(text.clone()),
        },
        DataFusionError::NotImplemented(text) => {
            known(text, position).unwrap_or_else(|| Error::unsupported(tidy(text)))
        }
        DataFusionError::Plan(text) => classify_plan(text, position),
        DataFusionError::Configuration(text) => Error::invalid("option", tidy(text)),
        DataFusionError::Execution(text) if let Some(name) = missing_table(text) => {
            Error::UnknownTable {
                name,
                nearest: Vec::new(),
                position,
            }
        }
        DataFusionError::Execution(text) | DataFusionError::Ffi(text) => {
            known(text, position).unwrap_or_else(|| classify_execution(text))
        }
        DataFusionError::ExecutionJoin(inner) if inner.is_cancelled() => Error::Cancelled,
        DataFusionError::ExecutionJoin(inner) => Error::Internal(inner.to_string()),
        DataFusionError::Internal(text) => classify_internal(text, position),
        other => Error::Execution(tidy(&other.strip_backtrace())),
    }
}

/// An error of somebody else inside an error of DataFusion: ours comes back unchanged.
fn classify_foreign(
    error: &(dyn std::error::Error + 'static),
    position: Option<Position>,
) -> Error {
    if let Some(ours) = error.downcast_ref::<Error>() {
        return ours.clone();
    }
    if let Some(out) = error.downcast_ref::<OutOfMemory>() {
        return Error::OutOfMemory(out.clone());
    }
    if let Some(datafusion) = error.downcast_ref::<DataFusionError>() {
        return classify(datafusion, position);
    }
    if let Some(arrow) = error.downcast_ref::<ArrowError>() {
        return classify_arrow(arrow, position);
    }
    if let Some(parquet) = error.downcast_ref::<ParquetError>() {
        return classify_parquet(parquet, position);
    }
    if let Some(store) = error.downcast_ref::<object_store::Error>() {
        return object_store(store);
    }
    if let Some(system) = error.downcast_ref::<std::io::Error>() {
        return io(system);
    }
    match error.source() {
        Some(source) => classify_foreign(source, position),
        None => Error::Execution(tidy(&error.to_string())),
    }
}

/// Where a span of DataFusion begins.
pub(crate) fn position(span: Span) -> Position {
    Position {
        line: span.start.line,
        column: span.start.column,
    }
}

/// The parser writes the position at the end of its text: `… at Line: 1, Column: 8`.
pub(crate) fn syntax(error: &ParserError, position: Option<Position>) -> Error {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => "the statement is nested too deeply",
    };
    let (message, found) = split_position(text);
    let position = found
        .or(position)
        .unwrap_or(Position { line: 1, column: 1 });
    Error::Syntax {
        message: message.to_string(),
        line: position.line,
        column: position.column,
    }
}

fn split_position(text: &str) -> (&str, Option<Position>) {
    let parse = || {
        let (message, rest) = text.rsplit_once(" at Line: ")?;
        let (line, column) = rest.split_once(", Column: ")?;
        let digits = column
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(column.len());
        let position = Position {
            line: line.parse().ok()?,
            column: column[..digits].parse().ok()?,
        };
        Some((message, position))
    };
    match parse() {
        Some((message, position)) => (message, Some(position)),
        None => (text, None),
    }
}

fn classify_schema(error: &SchemaError, position: Option<Position>) -> Error {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let position = field.spans().first().map(self::position).or(position);
            let names: Vec<&str> = valid_fields
                .iter()
                .map(|column| column.name.as_str())
                .collect();
            Error::UnknownColumn {
                name: field.flat_name(),
                nearest: nearest_names(&field.name, names),
                position,
            }
        }
        SchemaError::AmbiguousReference { field } => Error::AmbiguousColumn {
            name: field.flat_name(),
            candidates: Vec::new(),
            position,
        },
        SchemaError::DuplicateQualifiedField { qualifier, name } => Error::Planning {
            message: format!(
                "column '{name}' of '{qualifier}' occurs twice; give one of the tables another name with AS"
            ),
            position,
        },
        // A key that is an aggregate comes back as the aggregate.
        SchemaError::DuplicateUnqualifiedField { name } => Error::Planning {
            message: format!(
                "column '{}' occurs twice; rename one with AS{}",
                in_sql_words(name),
                match name.ends_with(')') {
                    true => ", and let no key of GROUP BY be an aggregate",
                    false => "",
                }
            ),
            position,
        },
    }
}

/// Strings of planning errors that are about types.
const TYPE_PHRASES: &[&str] = &[
    "No function matches",
    "Failed to coerce",
    "annot coerce",
    "annot cast",
    "annot infer common",
    "Unsupported CAST",
    "type_coercion",
    "coercion",
    "Invalid arithmetic operation",
    "There isn't a common type",
    "expects",
    "must be of boolean type",
    "on-boolean predicate",
    "does not support",
];

fn classify_plan(text: &str, position: Option<Position>) -> Error {
    if let Some(name) = quoted_after(text, "Invalid function '") {
        return Error::UnknownFunction {
            name,
            nearest: Vec::new(),
            position,
        };
    }
    if let Some(name) = quoted_after(text, "table function '") {
        return Error::UnknownFunction {
            name,
            nearest: Vec::new(),
            position,
        };
    }
    if text.contains("not found")
        && let Some(name) = quoted_after(text, "table '")
    {
        let name = bare_table(&name);
        return Error::UnknownTable {
            name,
            nearest: Vec::new(),
            position,
        };
    }
    if let Some(error) = known(text, position) {
        return error;
    }
    if TYPE_PHRASES.iter().any(|part| text.contains(part)) {
        return Error::Type {
            message: tidy(text),
            position,
        };
    }
    Error::Planning {
        message: tidy(text),
        position,
    }
}

/// A sentence of DataFusion's for which we have another.
fn known(text: &str, position: Option<Position>) -> Option<Error> {
    let text = without_prefixes(text);
    let position = position.or_else(|| span_in(text));
    if let Some(message) = wrong_arguments(text) {
        return Some(Error::Type { message, position });
    }
    let (kind, message) = told(text)?;
    Some(match (kind, position) {
        (SentenceKind::Type, position) => Error::Type { message, position },
        (SentenceKind::Planning, position) => Error::Planning { message, position },
        (SentenceKind::Unsupported, None) => Error::unsupported(message),
        (SentenceKind::Unsupported, position) => Error::UnsupportedClause { message, position },
        (SentenceKind::Execution, _) => Error::Execution(message),
    })
}

/// The place in what Rust prints of a node of the statement: `span: Span(Location(1,58)..Location(1,65))`.
fn span_in(text: &str) -> Option<Position> {
    let mut places = text.split("Span(Location(").skip(1);
    places.find_map(|place| {
        let (line, rest) = place.split_once(',')?;
        let (column, _) = rest.split_once(')')?;
        let (line, column) = (line.parse().ok()?, column.parse().ok()?);
        (line > 0).then_some(Position { line, column })
    })
}

/// DataFusion qualifies every table with its default catalog and schema.
fn bare_table(name: &str) -> String {
    let name = name.strip_prefix("datafusion.").unwrap_or(name);
    name.strip_prefix("public.").unwrap_or(name).to_string()
}

fn quoted_after(text: &str, start: &str) -> Option<String> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once('\'').map(|(name, _)| name.to_string())
}

fn classify_arrow(error: &ArrowError, position: Option<Position>) -> Error {
    match error {
        ArrowError::DivideByZero => Error::DivideByZero,
        ArrowError::ArithmeticOverflow(text) => arithmetic_overflow(text),
        ArrowError::ExternalError(inner) => classify_foreign(inner.as_ref(), position),
        ArrowError::CastError(text) => Error::Type {
            message: tidy(text),
            position,
        },
        ArrowError::IoError(_, inner) => io(inner),
        ArrowError::CsvError(text) | ArrowError::JsonError(text) => bad_file(text),
        ArrowError::ParquetError(text) | ArrowError::IpcError(text) => bad_file(text),
        ArrowError::ParseError(text) if text.contains(" at line ") => bad_file(text),
        ArrowError::ParseError(text) => Error::Type {
            message: tidy(text),
            position,
        },
        ArrowError::NotYetImplemented(text) => Error::unsupported(tidy(text)),
        ArrowError::ComputeError(text) if text.contains("verflow") => Error::Overflow {
            aggregate: "arithmetic".to_string(),
            message: tidy(text),
        },
        ArrowError::InvalidArgumentError(text) | ArrowError::ComputeError(text) => {
            classify_execution(text)
        }
        other => Error::Execution(tidy(&other.to_string())),
    }
}

fn arithmetic_overflow(text: &str) -> Error {
    let message = match text.strip_prefix("Overflow happened on: ") {
        Some(operation) => format!(
            "{operation} does not fit its type; cast an operand to a wider one, e.g. CAST(x AS DECIMAL(38, 0))"
        ),
        None => tidy(text),
    };
    Error::Overflow {
        aggregate: "arithmetic".to_string(),
        message,
    }
}

fn classify_parquet(error: &ParquetError, position: Option<Position>) -> Error {
    match error {
        ParquetError::External(inner) => match classify_foreign(inner.as_ref(), position) {
            Error::Execution(message) => bad_file(&message),
            known => known,
        },
        ParquetError::NYI(text) => Error::unsupported(tidy(text)),
        ParquetError::General(text) if let Some(path) = missing_file(text) => Error::Io {
            path: path.to_string(),
            message: "it does not exist".to_string(),
        },
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::ArrowError(text) => {
            bad_file(text)
        }
        other => bad_file(&other.to_string()),
    }
}

/// The file whose footer is not there: DataFusion has the store's error as text.
fn missing_file(text: &str) -> Option<&str> {
    let footer = text.strip_prefix("Failed to fetch metadata for file ")?;
    let (_, store) = footer.split_once("Object at location ")?;
    Some(store.split_once(" not found: ")?.0)
}

fn bad_file(text: &str) -> Error {
    let text = tidy(text);
    let (message, line) = match (text.split_once(" at line "), text.split_once(" for line ")) {
        // `Encountered unequal lengths between records … at line 3`: counted from 1.
        (Some((message, rest)), _) if message.starts_with("Encountered ") => {
            (message.to_string(), leading_number(rest))
        }
        // `Error while parsing value 'x' as type 'Int64' for column 1 at line 5. Row data …`: counted from 0.
        (Some((message, rest)), _) => (
            value_message(message),
            leading_number(rest).map(|line| line + 1),
        ),
        // `incorrect number of fields for line 3, expected 2 got 3`: counted from 1.
        (None, Some((message, rest))) => {
            let fields = rest.split_once(", ").map_or("", |(_, fields)| fields);
            (format!("{message}: {fields}"), leading_number(rest))
        }
        (None, None) => (text.clone(), None),
    };
    Error::Format {
        path: PATH_UNKNOWN.to_string(),
        line,
        message,
    }
}

/// The type of a column is guessed from the file's beginning; the way out is to look at more of it.
fn value_message(message: &str) -> String {
    match message.strip_prefix("Error while parsing value ") {
        Some(rest) => format!(
            "the value {rest} (from 0) does not parse; the type comes from the first {} rows, read_csv('…', sample_size => …) looks at more",
            SAMPLE_ROWS
        ),
        None => message.to_string(),
    }
}

fn leading_number(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..digits].parse().ok()
}

/// A failure of a file system or server, with the path it names.
pub(crate) fn object_store(error: &object_store::Error) -> Error {
    use object_store::Error as Store;
    if let Store::Generic { source, .. } = error
        && let Some(ours) = source.downcast_ref::<Error>()
    {
        return ours.clone();
    }
    if let Some(system) = system_error(error)
        && is_about_content(system)
    {
        return bad_file(&system.to_string());
    }
    let (path, message) = match error {
        Store::NotFound { path, .. } => (path.as_str(), "it does not exist".to_string()),
        Store::PermissionDenied { path, .. } => (path.as_str(), "permission denied".to_string()),
        Store::Unauthenticated { path, .. } => (
            path.as_str(),
            "the server asks for valid credentials".to_string(),
        ),
        other => ("", innermost(other)),
    };
    match path {
        "" => Error::Io {
            path: PATH_UNKNOWN.to_string(),
            message,
        },
        path if path.starts_with('/') || path.contains("://") => Error::Io {
            path: path.to_string(),
            message,
        },
        path => Error::Io {
            path: format!("/{path}"),
            message,
        },
    }
}

fn system_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a std::io::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(system) = error.downcast_ref::<std::io::Error>() {
            return Some(system);
        }
        next = error.source();
    }
    None
}

/// The text of the last error in the chain: the ones before mostly repeat it.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    tidy(&last.to_string())
}

fn io(error: &std::io::Error) -> Error {
    if let Some(inner) = error.get_ref() {
        let inner: &(dyn std::error::Error + 'static) = inner;
        if inner.is::<Error>() || inner.is::<DataFusionError>() || inner.is::<ArrowError>() {
            return classify_foreign(inner, None);
        }
    }
    if is_about_content(error) {
        return bad_file(&error.to_string());
    }
    Error::Io {
        path: PATH_UNKNOWN.to_string(),
        message: tidy(&error.to_string()),
    }
}

/// Decompressors report damaged files as failures of input and output.
fn is_about_content(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// The table that DROP does not find.
fn missing_table(text: &str) -> Option<String> {
    let name = text
        .strip_prefix("Table '")?
        .strip_suffix("' doesn't exist.")?;
    Some(bare_table(name))
}

fn classify_execution(text: &str) -> Error {
    if text.contains("ivide by zero") {
        return Error::DivideByZero;
    }
    if let Some(out) = OutOfMemory::parse(text) {
        return Error::OutOfMemory(out);
    }
    if text.contains("verflow") {
        return Error::Overflow {
            aggregate: "arithmetic".to_string(),
            message: tidy(text),
        };
    }
    Error::Execution(tidy(text))
}

fn classify_internal(text: &str, position: Option<Position>) -> Error {
    if let Some(error) = known(text, position) {
        return error;
    }
    // Seen in 55: a mistyped operand reaches the kernel check, which calls itself internal.
    match TYPE_PHRASES.iter().any(|part| text.contains(part)) {
        true => Error::Type {
            message: tidy(text),
            position,
        },
        false => Error::Internal(tidy(text)),
    }
}

/// Without DataFusion's backtrace, its call for bug reports and its error prefixes.
fn tidy(text: &str) -> String {
    let text = without_prefixes(text);
    if let Some(message) = wrong_arguments(text) {
        return message;
    }
    if let Some((_, pattern)) = text.split_once("regex parse error:") {
        let reason = pattern.lines().last().unwrap_or_default().trim();
        let reason = reason.trim_start_matches("error: ");
        return format!("the pattern is no regular expression: {reason}");
    }
    match told(text) {
        Some((_, message)) => message,
        None => in_sql_words(&text.replace("While expanding wildcard, ", "")),
    }
}

fn without_prefixes(text: &str) -> &str {
    const PREFIXES: &[&str] = &[
        "Error during planning: ",
        "Execution error: ",
        "Arrow error: ",
        "Parquet error: ",
        "External error: ",
        "External: ",
        "Internal error: ",
        "Invalid argument error: ",
        "Parser error: ",
        "Csv error: ",
        "Json error: ",
        "Cast error: ",
        "Compute error: ",
        "Optimizer rule 'simplify_expressions' failed",
    ];
    const ENDS: &[&str] = &[
        "\n\nbacktrace:",
        ".\nThis issue was likely caused by a bug",
        "\n\twhile verifying",
    ];
    let mut text = text;
    for end in ENDS {
        text = text.split(end).next().unwrap_or(text);
    }
    text = text.trim();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest.trim_start();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_the_parser() {
        let error =
            ParserError::ParserError("Expected: x, found: y at Line: 12, Column: 3".to_string());
        assert_eq!(
            syntax(&error, None),
            Error::Syntax {
                message: "Expected: x, found: y".to_string(),
                line: 12,
                column: 3
            }
        );
    }

    #[test]
    fn a_footer_that_is_not_there_is_a_file_that_is_not_there() {
        let text = "Failed to fetch metadata for file a.parquet: Object Store error: Object at location /a.parquet not found: No such file";
        let error = Error::from(DataFusionError::from(ParquetError::General(
            text.to_string(),
        )));
        assert!(
            matches!(&error, Error::Io { path, .. } if path == "/a.parquet"),
            "{error}"
        );
        let damaged = "Failed to fetch metadata for file a.parquet: Parquet error: no magic";
        let error = Error::from(DataFusionError::from(ParquetError::General(
            damaged.to_string(),
        )));
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }

    #[test]
    fn wrapped_errors_are_found() {
        let arrow = ArrowError::ExternalError(Box::new(DataFusionError::Context(
            "somewhere".to_string(),
            Box::new(DataFusionError::ArrowError(
                Box::new(ArrowError::DivideByZero),
                None,
            )),
        )));
        assert_eq!(Error::from(arrow), Error::DivideByZero);
        let shared = DataFusionError::Shared(std::sync::Arc::new(Error::Cancelled.into()));
        assert_eq!(Error::from(shared), Error::Cancelled);
    }

    #[test]
    fn bad_rows_have_lines() {
        for text in [
            "incorrect number of fields for line 3, expected 2 got 3",
            "Encountered unequal lengths between records on CSV file. Expected 2 records, found 3 records at line 3",
            "Error while parsing value 'x' as type 'Int64' for column 1 at line 2. Row data: '[3,x]'",
        ] {
            let error = Error::from(ArrowError::CsvError(text.to_string()));
            assert!(
                matches!(error, Error::Format { line: Some(3), .. }),
                "{error}"
            );
        }
    }
}
