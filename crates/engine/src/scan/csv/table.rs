//! Tables: the columns of CSV files and how they are read, from their beginnings.
//!
//! In: the first bytes of every file of a table, what the query says.
//! Out: a schema, and the rules by which every file is read.
//! Invariant: what the query says is never overruled; a type holds every value of the sample; files without any byte are
//! files without rows.
//! Not here: reading beginnings (files.rs), one file's dialect (dialect.rs).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use datafusion::datasource::listing::ListingTableUrl;
use object_store::ObjectMeta;
use object_store::path::Path;

use super::blocks::{before_records, not_utf8};
use super::decode::{FieldLayout, ReadingRules};
use super::dialect::{Dialect, Header, guessed, most_fields, sniffed};
use super::input::decoded;
use super::options::{CsvOptions, Types};
use super::plain_names::plain_name;
use crate::error::{Error, Result};
use crate::scan::format::{FileKind, TextOptions};
use crate::scan::location::File;
use crate::scan::text::{Extent, RECORD_BYTES_MAX, SAMPLE_ROWS};
use grouse_text::csv::columns::Forms;
use grouse_text::csv::grammar::Place;
use grouse_text::csv::guess::Guess;
use grouse_text::csv::records::{RecordShape, Short};
use grouse_text::csv::values::DateForm;

/// A file and its first bytes.
pub(crate) type Beginning<'a> = (&'a File, Vec<u8>, Extent);

/// The table of a text that is no file.
pub(crate) fn csv_table_in(
    path: &str,
    kind: FileKind,
    options: &TextOptions,
    (bytes, extent): (Vec<u8>, Extent),
) -> Result<CsvTable> {
    let meta = ObjectMeta {
        location: Path::from(path),
        last_modified: Default::default(),
        size: bytes.len() as u64,
        e_tag: None,
        version: None,
    };
    let file = File {
        name: path.to_string(),
        url: ListingTableUrl::parse("file:///dev/stdin")?,
        meta,
    };
    csv_table(kind, options, Union::ByPlace, &[(&file, bytes, extent)])
}

/// What a table of CSV files is.
pub(crate) struct CsvTable {
    pub(crate) schema: SchemaRef,
    pub(crate) rules: ReadingRules,
    /// What the sample says of each column, before what the query says.
    pub(crate) guesses: Vec<Guess>,
    names: Vec<String>,
}

impl CsvTable {
    /// The table after more of its values were seen.
    pub(crate) fn with_guesses(
        self,
        guesses: Vec<Guess>,
        options: &CsvOptions,
    ) -> Result<CsvTable> {
        let columns = ColumnsOfFile {
            names: self.names,
            guesses,
        };
        let mut rules = self.rules;
        rules.dates.clear();
        rules.forms.decimal = decimal_of(options, &rules.dialect, &columns.guesses);
        typed(columns, rules, options)
    }
}

/// Whether columns are found by their names or their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Union {
    ByPlace,
    ByName,
}

/// One file's columns.
struct ColumnsOfFile {
    names: Vec<String>,
    guesses: Vec<Guess>,
}

/// The table of files that begin so.
pub(crate) fn csv_table(
    kind: FileKind,
    options: &TextOptions,
    union: Union,
    beginnings: &[Beginning<'_>],
) -> Result<CsvTable> {
    let forms = forms_of(&options.csv);
    let encoding = options.csv.encoding.or_else(|| marked_encoding(beginnings));
    let strings = beginnings
        .iter()
        .filter(|(_, bytes, _)| !bytes.is_empty())
        .map(|(file, bytes, extent)| {
            Ok((*file, text_of(file, bytes, *extent, encoding)?, *extent))
        });
    let strings: Vec<(&File, String, Extent)> = strings.collect::<Result<_>>()?;
    let Some((_, first, _)) = strings.first() else {
        return Ok(nothing(kind, options));
    };
    let dialect = sniffed(kind, options, first, &forms);
    let mut rows_left = options.sample_rows.unwrap_or(SAMPLE_ROWS).max(1);
    let mut all: Option<(&File, ColumnsOfFile)> = None;
    let mut layouts = HashMap::new();
    for (file, text, extent) in &strings {
        let one = columns_of(
            &dialect,
            options,
            (text.as_str(), *extent),
            &mut rows_left,
            &forms,
        );
        let named = match union {
            Union::ByPlace => None,
            Union::ByName => Some(one.names.clone()),
        };
        match &mut all {
            None => all = Some((file, one)),
            Some((first, all)) => widen((first, all), (file, one), dialect.header, union)?,
        }
        layouts.extend(named.map(|names| (file.meta.location.clone(), names)));
    }
    let columns = all.map(|(_, columns)| columns);
    let columns = columns.ok_or_else(|| Error::Internal("a table without files".to_string()))?;
    let decimal = decimal_of(&options.csv, &dialect, &columns.guesses);
    let forms = Forms { decimal, ..forms };
    let layouts = layouts
        .into_iter()
        .map(|(path, names)| (path, layout(&columns.names, &names)));
    let rules = ReadingRules {
        forms,
        dates: Vec::new(),
        never_null: Vec::new(),
        short: short_of(options),
        misfit: options.csv.misfit(),
        record_bytes_max: options.csv.record_bytes_max.unwrap_or(RECORD_BYTES_MAX),
        encoding,
        layout: layout(&columns.names, &columns.names),
        layouts: layouts.collect(),
        rejects: None,
        dialect,
    };
    typed(columns, rules, &options.csv)
}

fn short_of(options: &TextOptions) -> Short {
    match options.null_padding {
        Some(true) => Short::Fill,
        _ => Short::Misfit,
    }
}

fn forms_of(options: &CsvOptions) -> Forms {
    let usual = Forms::default();
    Forms {
        nulls: options.nulls.clone().unwrap_or(usual.nulls),
        decimal: options.decimal.unwrap_or(usual.decimal),
        date: options.date.clone(),
        timestamp: options.timestamp.clone(),
    }
}

/// Files without a byte.
fn nothing(kind: FileKind, options: &TextOptions) -> CsvTable {
    let dialect = sniffed(kind, options, "", &Forms::default());
    let (names, types): (Vec<String>, Vec<DataType>) = match &options.csv.types {
        Types::All(columns) => columns.iter().cloned().unzip(),
        _ => (Vec::new(), Vec::new()),
    };
    let fields = names
        .iter()
        .zip(types)
        .map(|(name, kind)| Field::new(name, kind, true));
    CsvTable {
        schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
        rules: ReadingRules {
            forms: forms_of(&options.csv),
            dates: vec![DateForm::ISO; names.len()],
            never_null: Vec::new(),
            short: short_of(options),
            misfit: options.csv.misfit(),
            record_bytes_max: RECORD_BYTES_MAX,
            encoding: options.csv.encoding,
            layout: layout(&names, &names),
            layouts: HashMap::new(),
            rejects: None,
            dialect,
        },
        guesses: Vec::new(),
        names,
    }
}

/// UTF-16 says by its first bytes that it is.
fn marked_encoding(beginnings: &[Beginning<'_>]) -> Option<&'static encoding_rs::Encoding> {
    let mut marked = beginnings
        .iter()
        .filter_map(|(_, bytes, _)| encoding_rs::Encoding::for_bom(bytes));
    let (encoding, _) = marked.next()?;
    (encoding != encoding_rs::UTF_8).then_some(encoding)
}

/// The beginning as text, without a mark; a record that is cut is still at its end.
fn text_of(
    file: &File,
    bytes: &[u8],
    extent: Extent,
    encoding: Option<&'static encoding_rs::Encoding>,
) -> Result<String> {
    let owned;
    let bytes = match encoding {
        Some(encoding) => {
            owned = decoded(bytes, encoding);
            owned.as_slice()
        }
        None => bytes.get(before_records(bytes, 0)..).unwrap_or_default(),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_string()),
        // Cut inside a character.
        Err(error) if error.error_len().is_none() && extent == Extent::Part => {
            let text = std::str::from_utf8(&bytes[..error.valid_up_to()]);
            Ok(text.unwrap_or_default().to_string())
        }
        Err(error) => {
            let end = error.valid_up_to();
            Err(Error::Format {
                path: file.name.clone(),
                line: Some(lines_in(&bytes[..end]) + 1),
                message: not_utf8(bytes[end]),
            })
        }
    }
}

/// Lines that end in `bytes`, of which it is not known yet what ends them.
fn lines_in(bytes: &[u8]) -> u64 {
    let feeds = memchr::memchr_iter(b'\n', bytes).count();
    let ends = match feeds {
        0 => memchr::memchr_iter(b'\r', bytes).count(),
        feeds => feeds,
    };
    ends as u64
}

/// The columns of one file, from the whole records of its beginning.
fn columns_of(
    dialect: &Dialect,
    options: &TextOptions,
    (text, extent): (&str, Extent),
    rows_left: &mut usize,
    forms: &Forms,
) -> ColumnsOfFile {
    let grammar = dialect.grammar;
    let start = before_records(text.as_bytes(), dialect.skip);
    let mut body = &text[start.min(text.len())..];
    if extent == Extent::Part {
        let whole = grammar.walk(Place::LineStart, body.as_bytes()).last_start;
        body = &body[..whole.unwrap_or(body.len())];
    }
    let first = first_fields(&RecordShape::all(grammar, 2), body);
    let listed = match &options.csv.types {
        Types::All(columns) => columns.len(),
        _ => 0,
    };
    let fields = match listed {
        0 if options.null_padding == Some(true) => most_fields(grammar, body).max(first.len()),
        0 => first.len(),
        listed => listed,
    };
    let shape = RecordShape {
        short: short_of(options),
        ..RecordShape::all(grammar, fields)
    };
    let values = match dialect.header {
        Header::Names => &body[shape.after_first(body.as_bytes(), 0)..],
        Header::Absent => body,
    };
    let (guesses, rows) = guessed(&shape, values, *rows_left, forms);
    *rows_left = rows_left.saturating_sub(rows);
    ColumnsOfFile {
        names: names(dialect.header, first, fields, &options.csv),
        guesses,
    }
}

/// The values of the first record.
fn first_fields(shape: &RecordShape, text: &str) -> Vec<String> {
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        if matches!(bytes[at], b'\n' | b'\r') {
            at += 1;
            continue;
        }
        let (next, count, _) = shape.count(bytes, at);
        if count == 0 {
            at = next;
            continue;
        }
        let shape = RecordShape {
            columns: count,
            ..RecordShape::all(shape.grammar, count)
        };
        let mut table = grouse_text::csv::records::Table::default();
        if shape.read(bytes, at, 1, &mut table).is_err() {
            break;
        }
        let value = |slot| table.value(0, slot, text, &shape.grammar);
        return (0..count)
            .map(|slot| value(slot).unwrap_or_default().into_owned())
            .collect();
    }
    Vec::new()
}

/// Names that are different, from the first record and from what the query says.
fn names(header: Header, first: Vec<String>, fields: usize, options: &CsvOptions) -> Vec<String> {
    let given: Vec<&String> = match &options.types {
        Types::All(columns) => columns.iter().map(|(name, _)| name).collect(),
        _ => options.names.iter().collect(),
    };
    let mut names: Vec<String> = Vec::with_capacity(fields);
    for at in 0..fields {
        let written = first.get(at).map(|name| name.trim()).unwrap_or_default();
        let name = match (given.get(at), header) {
            (Some(name), _) => name.to_string(),
            (None, Header::Names) if !written.is_empty() => match options.normalizes_names {
                true => plain_name(written),
                false => written.to_string(),
            },
            _ => format!("column_{}", at + 1),
        };
        names.push(name);
    }
    unrepeated(names)
}

/// The second `a` is `a_1`, in whatever case, as no query could tell the two apart.
fn unrepeated(names: Vec<String>) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        let mut candidate = name.clone();
        while let Some(count) = seen.get_mut(&candidate.to_lowercase()) {
            candidate = format!("{candidate}_{count}");
            *count += 1;
        }
        seen.insert(candidate.to_lowercase(), 1);
        unique.push(candidate);
    }
    unique
}

fn widen(
    (first, all): (&File, &mut ColumnsOfFile),
    (file, one): (&File, ColumnsOfFile),
    header: Header,
    union: Union,
) -> Result<()> {
    if union == Union::ByName {
        for (name, guess) in one.names.into_iter().zip(one.guesses) {
            match place_of(&all.names, &name) {
                Some(at) => all.guesses[at].merge(&guess),
                None => {
                    all.names.push(name);
                    all.guesses.push(guess);
                }
            }
        }
        return Ok(());
    }
    let same = one.guesses.len() == all.guesses.len()
        && (header == Header::Absent || one.names == all.names);
    if !same {
        return Err(Error::Format {
            path: file.name.clone(),
            line: Some(1),
            message: format!(
                "its columns ({}) are not those of '{}' ({}); CSV files of one table must agree, or union_by_name => true finds them by their names",
                one.names.join(", "),
                first.name,
                all.names.join(", ")
            ),
        });
    }
    for (all, one) in all.guesses.iter_mut().zip(one.guesses) {
        all.merge(&one);
    }
    Ok(())
}

fn layout(columns: &[String], names: &[String]) -> FieldLayout {
    FieldLayout {
        fields: names.len(),
        of_columns: columns
            .iter()
            .map(|column| place_of(names, column))
            .collect(),
    }
}

/// Where a name stands among those of a file, which has none twice, in whatever case (`unrepeated`).
fn place_of(names: &[String], name: &str) -> Option<usize> {
    let exact = names.iter().position(|known| known == name);
    let lower = name.to_lowercase();
    exact.or_else(|| names.iter().position(|known| known.to_lowercase() == lower))
}

/// A comma, if numbers have one before their fraction and it is not between fields.
fn decimal_of(options: &CsvOptions, dialect: &Dialect, guesses: &[Guess]) -> u8 {
    let is_free = dialect.grammar.delimiter != b',' && options.detection != Some(false);
    match options.decimal {
        Some(decimal) => decimal,
        None if is_free && guesses.iter().any(Guess::has_decimal_comma) => b',',
        None => b'.',
    }
}

/// The columns with their types.
fn typed(
    columns: ColumnsOfFile,
    mut rules: ReadingRules,
    options: &CsvOptions,
) -> Result<CsvTable> {
    let given = given_types(&columns.names, options)?;
    let mut fields = Vec::with_capacity(columns.names.len());
    for ((name, guess), given) in columns.names.iter().zip(&columns.guesses).zip(given) {
        let found = match options.detection == Some(false) || options.all_text {
            true => (DataType::Utf8, DateForm::ISO),
            false => guess.kind_in(&rules.forms),
        };
        let (kind, form) = match given {
            Some(kind) => with_form(kind, guess, &rules.forms),
            None => found,
        };
        fields.push(Field::new(name, kind, true));
        rules.dates.push(form);
    }
    rules.never_null = vec![false; columns.names.len()];
    for name in &options.never_null {
        rules.never_null[place_in(&columns.names, name, "force_not_null")?] = true;
    }
    Ok(CsvTable {
        schema: Arc::new(Schema::new(fields)),
        names: columns.names,
        rules,
        guesses: columns.guesses,
    })
}

/// A type that the query says, with the form that it says or that the sample has.
fn with_form(kind: DataType, guess: &Guess, forms: &Forms) -> (DataType, DateForm) {
    let asked = match kind {
        DataType::Date32 => &forms.date,
        DataType::Timestamp(..) => &forms.timestamp,
        _ => &None,
    };
    let form = asked.clone().unwrap_or_else(|| guess.form_of(&kind));
    (kind, form)
}

/// For each column the type that the query says.
fn given_types(names: &[String], options: &CsvOptions) -> Result<Vec<Option<DataType>>> {
    let mut given = vec![None; names.len()];
    match &options.types {
        Types::Found => {}
        Types::Listed(types) if types.len() > names.len() => {
            let message = format!("it lists {} types for {} columns", types.len(), names.len());
            return Err(wrong("types", message));
        }
        Types::Listed(types) => {
            for (given, kind) in given.iter_mut().zip(types) {
                *given = Some(kind.clone());
            }
        }
        Types::Named(types) | Types::All(types) => {
            for (name, kind) in types {
                given[place_in(names, name, "types")?] = Some(kind.clone());
            }
        }
    }
    Ok(given)
}

/// The column that an option names.
fn place_in(names: &[String], name: &str, option: &str) -> Result<usize> {
    place_of(names, name).ok_or_else(|| {
        let message = format!("there is no column '{name}' among {}", names.join(", "));
        wrong(option, message)
    })
}

fn wrong(option: &str, message: String) -> Error {
    Error::invalid(format!("{option} of read_csv"), message)
}
