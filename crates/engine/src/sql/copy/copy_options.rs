//! The options of COPY, in DuckDB's words and DataFusion's.
//!
//! In: options as they are written, the name of the file. Out: its format, and options of DataFusion's writers or of our
//! readers.
//! Invariant: an option that a format does not have is an error that names those that it has; nothing is ignored.
//! Not here: the text of the statement (copy.rs).

use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::sql::sqlparser::tokenizer::{Location, Token};
use serde_json::{Value, json};

use crate::error::{Error, Result, nearest_names};
use crate::scan::format::{FileKind, Reading, known_extensions};
use crate::scan::writes::request::Existing;

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OptionValue {
    /// The name alone.
    Nothing,
    /// `*`
    All,
    /// A word, a number or a text.
    Text(String),
    /// Several.
    List(Vec<String>),
}

/// What a COPY says beside its source and its file.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub stored_as: Option<(String, Location)>,
    pub partitioned_by: Option<Vec<String>>,
    /// DataFusion's `OPTIONS (…)`.
    pub datafusion: Vec<(String, OptionValue, Location)>,
    /// DuckDB's and PostgreSQL's `(…)`.
    pub options: Vec<(String, OptionValue, Location)>,
}

impl Given {
    fn words(&self) -> Words {
        match self.stored_as.is_some()
            || self.partitioned_by.is_some()
            || !self.datafusion.is_empty()
        {
            true => Words::DataFusion,
            false => Words::DuckDb,
        }
    }
}

/// Whose words a COPY is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// A name without an ending is a folder, and files are added to one that exists.
    DataFusion,
    /// A name is a file unless it ends in `/`, and a folder has to be empty.
    DuckDb,
}

/// All options of a COPY, understood.
#[derive(Debug)]
pub(super) struct CopyOptions {
    kind: FileKind,
    compression: Option<String>,
    compression_level: Option<String>,
    existing: Existing,
    files: Option<&'static str>,
    partition_by: Vec<String>,
    /// Columns of CSV whose values always have quotes.
    quoted: Vec<String>,
    /// Rows of a JSON file are the items of one array.
    is_array: bool,
    extension: Option<String>,
    pattern: Option<String>,
    /// For DataFusion's writers.
    datafusion: Vec<(String, String)>,
    encoding: Option<String>,
    /// An option that only a file that is written has.
    of_writing: Option<String>,
    /// For our readers.
    reading: Vec<(String, Token)>,
}

const OVERWRITE: &str = "overwrite";
const OVERWRITE_OR_IGNORE: &str = "overwrite_or_ignore";
const APPEND: &str = "append";

/// Options of every format.
const ANY: &[&str] = &[
    "format",
    "compression",
    "compression_level",
    "partition_by",
    "write_partition_columns",
    OVERWRITE,
    OVERWRITE_OR_IGNORE,
    APPEND,
    "filename_pattern",
    "file_extension",
    "per_thread_output",
    "preserve_order",
    "use_tmp_file",
];

/// Options that say how a file is read, too.
const OF_READING: &[&str] = &[
    "format",
    "compression",
    "header",
    "delimiter",
    "delim",
    "sep",
    "quote",
    "escape",
    "null",
    "nullstr",
    "encoding",
    "array",
];

/// Options of CSV files.
const CSV: &[&str] = &[
    "header",
    "delimiter",
    "delim",
    "sep",
    "quote",
    "escape",
    "null",
    "nullstr",
    "dateformat",
    "timestampformat",
    "timeformat",
    "force_quote",
    "encoding",
];

/// Options of Parquet files.
const PARQUET: &[&str] = &[
    "codec",
    "row_group_size",
    "row_group_size_bytes",
    "parquet_version",
    "statistics",
    "dictionary",
    "bloom_filter",
    "data_page_size",
];

/// Options of JSON files.
const JSON: &[&str] = &["array"];

impl CopyOptions {
    /// The options for a file of this name.
    pub(super) fn of(file: &str, given: Given) -> Result<CopyOptions> {
        let by_ending = Reading::of_name(file);
        let kind = match format_said(&given)? {
            Some(kind) => kind,
            None => kind_of_ending(file, by_ending)?,
        };
        let compression = by_ending
            .filter(|ending| ending.compression != CompressionTypeVariant::UNCOMPRESSED)
            .map(|ending| ending.compression.to_string());
        let words = given.words();
        let mut options = CopyOptions {
            kind,
            compression,
            compression_level: None,
            existing: match words {
                Words::DataFusion => Existing::Added,
                Words::DuckDb => Existing::Refused,
            },
            files: None,
            partition_by: given.partitioned_by.unwrap_or_default(),
            quoted: Vec::new(),
            is_array: false,
            extension: None,
            pattern: None,
            datafusion: Vec::new(),
            encoding: None,
            of_writing: None,
            reading: Vec::new(),
        };
        for (name, value, place) in given.datafusion {
            options.datafusion_option(&name, &value, place)?;
        }
        for (name, value, place) in given.options {
            options.option(&name, &value, place)?;
        }
        options.choose_files(file, words);
        options.end()
    }

    /// One file of the very name, or a folder.
    fn choose_files(&mut self, file: &str, words: Words) {
        let is_folder = file.ends_with('/') || std::path::Path::new(file).is_dir();
        let is_of_system = file.starts_with("/dev/") || file.starts_with("/proc/");
        if self.files.is_some() || !self.partition_by.is_empty() {
            return;
        }
        self.files = match (is_folder, words) {
            (true, _) => Some("folder"),
            (false, Words::DataFusion) if !is_of_system => None,
            (false, _) => Some("one"),
        };
    }

    /// What follows from several options.
    fn end(mut self) -> Result<CopyOptions> {
        if self.kind == FileKind::Tsv
            && !self
                .datafusion
                .iter()
                .any(|(key, _)| key == "format.delimiter")
        {
            self.datafusion("format.delimiter", "\t");
        }
        if self.kind == FileKind::Tsv && self.extension.is_none() {
            self.extension = Some("tsv".to_string());
        }
        let (compression, level) = (self.compression.take(), self.compression_level.take());
        if self.kind == FileKind::Parquet {
            if let Some(codec) = parquet_codec(compression, level)? {
                self.datafusion("format.compression", &codec);
            }
            return Ok(self);
        }
        if let Some(compression) = compression {
            let plain = compression.replace("none", "uncompressed");
            let variant: CompressionTypeVariant =
                plain.parse().map_err(|_| {
                    invalid(
                        "compression",
                        format!("'{compression}' is not known; files of text can be gzip, zstd, bz2, xz or none"),
                    )
                })?;
            self.datafusion("format.compression", &variant.to_string());
            self.reading
                .push(("compression".to_string(), text_token(&name_of(variant))));
        }
        if let Some(level) = level {
            self.datafusion("format.compression_level", &level);
        }
        Ok(self)
    }

    fn datafusion(&mut self, key: &str, value: &str) {
        self.datafusion.push((key.to_string(), value.to_string()));
    }

    /// One of DataFusion's own options.
    fn datafusion_option(
        &mut self,
        name: &str,
        value: &OptionValue,
        place: Location,
    ) -> Result<()> {
        let text = self.text(name, value, place)?;
        match name.contains('.') {
            true => self.datafusion(name, &text),
            false => self.datafusion(&format!("format.{name}"), &text),
        }
        Ok(())
    }

    fn option(&mut self, name: &str, value: &OptionValue, place: Location) -> Result<()> {
        // Of a column, or in full: as DataFusion has it.
        if name.contains("::") || name.contains('.') {
            return self.datafusion_option(name, value, place);
        }
        let lower = name.to_ascii_lowercase();
        if !OF_READING.contains(&lower.as_str()) {
            self.of_writing = Some(lower.clone());
        }
        if ANY.contains(&lower.as_str()) {
            return self.option_of_any(&lower, value, place);
        }
        match self.kind {
            FileKind::Csv | FileKind::Tsv if CSV.contains(&lower.as_str()) => {
                self.option_of_csv(&lower, value, place)
            }
            FileKind::Parquet if PARQUET.contains(&lower.as_str()) => {
                self.option_of_parquet(&lower, value, place)
            }
            FileKind::Json if JSON.contains(&lower.as_str()) => {
                self.is_array = self.flag(name, value, place)?;
                Ok(())
            }
            _ => Err(self.unknown(name, place)),
        }
    }

    fn option_of_any(&mut self, name: &str, value: &OptionValue, place: Location) -> Result<()> {
        match name {
            // It was read before all others.
            "format" => {}
            "compression" => {
                let text = self.text(name, value, place)?.to_ascii_lowercase();
                if text != "auto" && text != "auto_detect" {
                    self.compression = Some(text);
                }
            }
            "compression_level" => self.compression_level = Some(self.text(name, value, place)?),
            "partition_by" => self.partition_by = self.list(name, value, place)?,
            "write_partition_columns" => {
                let flag = self.flag(name, value, place)?.to_string();
                self.datafusion("execution.keep_partition_by_columns", &flag);
            }
            OVERWRITE | OVERWRITE_OR_IGNORE | APPEND => {
                if self.flag(name, value, place)? {
                    self.existing = match name {
                        OVERWRITE => Existing::Overwritten,
                        APPEND => Existing::Added,
                        _ => Existing::SameNamesReplaced,
                    };
                }
            }
            "filename_pattern" => {
                let pattern = self.text(name, value, place)?;
                if pattern.contains('/') {
                    return Err(at(place, "filename_pattern is a name without /"));
                }
                self.pattern = Some(pattern);
            }
            "file_extension" => {
                let extension = self.text(name, value, place)?;
                if extension.contains('/') {
                    return Err(at(place, "file_extension is an ending without /"));
                }
                self.extension = Some(extension);
            }
            "per_thread_output" => {
                if self.flag(name, value, place)? {
                    self.files = Some("folder");
                }
            }
            "preserve_order" => {
                if self.flag(name, value, place)? {
                    return Err(at(
                        place,
                        "rows have an order only by ORDER BY, which COPY keeps; leave preserve_order out",
                    ));
                }
            }
            _ => {
                if !self.flag(name, value, place)? {
                    return Err(at(
                        place,
                        "a file always has a temporary name until it is whole; leave use_tmp_file out",
                    ));
                }
            }
        }
        Ok(())
    }

    fn option_of_csv(&mut self, name: &str, value: &OptionValue, place: Location) -> Result<()> {
        match name {
            "header" => {
                let flag = self.flag(name, value, place)?;
                self.datafusion("format.has_header", &flag.to_string());
                self.read("header", Token::make_word(&flag.to_string(), None));
            }
            "delimiter" | "delim" | "sep" => {
                let text = self.character(name, value, place)?;
                self.datafusion("format.delimiter", &text);
                self.read("delim", text_token(&text));
            }
            "quote" | "escape" => {
                let text = self.character(name, value, place)?;
                self.datafusion(&format!("format.{name}"), &text);
                if name == "escape" && text != "\"" {
                    self.datafusion("format.double_quote", "false");
                }
                self.read(name, text_token(&text));
            }
            "null" | "nullstr" => {
                let text = self.text(name, value, place)?;
                self.datafusion("format.null_value", &text);
                self.read("nullstr", text_token(&text));
            }
            "dateformat" => {
                let text = self.text(name, value, place)?;
                self.datafusion("format.date_format", &text);
            }
            "timestampformat" => {
                let text = self.text(name, value, place)?;
                for key in ["timestamp_format", "timestamp_tz_format", "datetime_format"] {
                    self.datafusion(&format!("format.{key}"), &text);
                }
            }
            "timeformat" => {
                let text = self.text(name, value, place)?;
                self.datafusion("format.time_format", &text);
            }
            "force_quote" => match value {
                OptionValue::All => self.datafusion("format.quote_style", "always"),
                columns => self.quoted = self.list(name, columns, place)?,
            },
            _ => {
                let text = self.text(name, value, place)?.to_ascii_lowercase();
                self.encoding = Some(text.clone());
                self.read("encoding", text_token(&text));
            }
        }
        Ok(())
    }

    fn option_of_parquet(
        &mut self,
        name: &str,
        value: &OptionValue,
        place: Location,
    ) -> Result<()> {
        let text = self.text(name, value, place)?;
        match name {
            "codec" => self.compression = Some(text.to_ascii_lowercase()),
            "row_group_size" => {
                let rows: Result<u64, _> = text.parse();
                let rows = rows.ok().filter(|rows| *rows > 0);
                let rows = rows.ok_or_else(|| at(place, "row_group_size is a number from 1 on"))?;
                self.datafusion("format.max_row_group_size", &rows.to_string());
            }
            "row_group_size_bytes" => {
                let bytes = crate::runtime::options::parse_bytes(&text, None)
                    .map_err(|_| at(place, "row_group_size_bytes takes a size, such as 64MB"))?;
                self.datafusion("format.max_row_group_bytes", &bytes.to_string());
            }
            "parquet_version" => {
                let version = match text.to_ascii_lowercase().as_str() {
                    "v1" | "1" | "1.0" => "1.0",
                    "v2" | "2" | "2.0" => "2.0",
                    _ => return Err(at(place, "parquet_version is V1 or V2")),
                };
                self.datafusion("format.writer_version", version);
            }
            "statistics" => {
                let level = match text.to_ascii_lowercase().as_str() {
                    level @ ("none" | "chunk" | "page") => level.to_string(),
                    _ => return Err(at(place, "statistics is none, chunk or page")),
                };
                self.datafusion("format.statistics_enabled", &level);
            }
            "dictionary" => self.datafusion("format.dictionary_enabled", &text),
            "bloom_filter" => self.datafusion("format.bloom_filter_on_write", &text),
            _ => self.datafusion("format.data_pagesize_limit", &text),
        }
        Ok(())
    }

    fn read(&mut self, name: &str, value: Token) {
        self.reading.push((name.to_string(), value));
    }

    fn text(&self, name: &str, value: &OptionValue, place: Location) -> Result<String> {
        match value {
            OptionValue::Text(text) => Ok(text.clone()),
            _ => Err(at(place, &format!("{name} takes one value"))),
        }
    }

    fn flag(&self, name: &str, value: &OptionValue, place: Location) -> Result<bool> {
        let text = match value {
            OptionValue::Nothing => return Ok(true),
            other => self.text(name, other, place)?,
        };
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" => Ok(true),
            "false" | "0" | "off" => Ok(false),
            _ => Err(at(place, &format!("{name} is true or false, not '{text}'"))),
        }
    }

    fn character(&self, name: &str, value: &OptionValue, place: Location) -> Result<String> {
        let text = self.text(name, value, place)?;
        match text.as_str() {
            "\\t" | "tab" => Ok("\t".to_string()),
            one if one.len() == 1 => Ok(text),
            _ => Err(at(
                place,
                &format!("{name} is one ASCII character, not '{text}'"),
            )),
        }
    }

    fn list(&self, name: &str, value: &OptionValue, place: Location) -> Result<Vec<String>> {
        match value {
            OptionValue::List(names) if !names.is_empty() => Ok(names.clone()),
            OptionValue::Text(name) => Ok(vec![name.clone()]),
            _ => Err(at(place, &format!("{name} takes columns in parentheses"))),
        }
    }

    fn unknown(&self, name: &str, place: Location) -> Error {
        let own = match self.kind {
            FileKind::Csv | FileKind::Tsv => CSV,
            FileKind::Parquet => PARQUET,
            FileKind::Json => JSON,
            FileKind::Arrow => &[],
        };
        let known = ANY.iter().chain(own).copied();
        let nearest = nearest_names(name, known.clone());
        let hint = match nearest.first() {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
        };
        at(
            place,
            &format!("{} has no option {name}; {hint}", self.kind),
        )
    }

    /// The word behind STORED AS.
    pub(super) fn stored_as(&self) -> &'static str {
        match self.kind {
            FileKind::Csv | FileKind::Tsv => "CSV",
            FileKind::Json => "JSON",
            FileKind::Parquet => "PARQUET",
            FileKind::Arrow => "ARROW",
        }
    }

    /// Whether columns of the file have names that can be relied on.
    pub(super) fn has_names(&self) -> bool {
        !matches!(self.kind, FileKind::Csv | FileKind::Tsv)
    }

    /// What the plan of a COPY has to know.
    pub(super) fn request(&self, file: &str) -> Result<Value> {
        let partitioned = !self.partition_by.is_empty();
        if partitioned && (file.starts_with("/dev/") || Reading::of_name(file).is_some()) {
            return Err(Error::Io {
                path: file.to_string(),
                message: "PARTITION_BY writes a folder of files; name a folder".to_string(),
            });
        }
        if let Some(encoding) = &self.encoding
            && !["utf8", "utf-8"].contains(&encoding.as_str())
        {
            return Err(Error::unsupported(format!(
                "writing text as {encoding}; files are written as UTF-8"
            )));
        }
        Ok(json!({
            "existing": self.existing.name(),
            "files": self.files,
            "partition_by": self.partition_by,
            "quoted": self.quoted,
            "extension": self.extension,
            "pattern": self.pattern,
            "is_array": self.is_array,
            "options": self.datafusion,
        }))
    }

    /// The function that reads the file and its arguments. Text is read as text: the table's types say what it is.
    pub(super) fn reading(&self) -> Result<(&'static str, Vec<(String, Token)>)> {
        if let Some(name) = &self.of_writing {
            let message = "it is one of COPY … TO; INSERT INTO … SELECT … FROM read_csv('…') has more options of reading";
            return Err(invalid(name, message.to_string()));
        }
        let mut arguments = self.reading.clone();
        let function = match self.kind {
            FileKind::Csv => "read_csv",
            FileKind::Tsv => "read_tsv",
            FileKind::Json => "read_json",
            FileKind::Parquet => "read_parquet",
            FileKind::Arrow => "read_arrow",
        };
        if !self.has_names() {
            arguments.push(("all_varchar".to_string(), Token::make_word("true", None)));
        }
        Ok((function, arguments))
    }
}

fn format_said(given: &Given) -> Result<Option<FileKind>> {
    let mut said = given.stored_as.clone();
    for (name, value, place) in &given.options {
        if name.eq_ignore_ascii_case("format") {
            let OptionValue::Text(format) = value else {
                return Err(at(*place, "format takes one value"));
            };
            said = Some((format.clone(), *place));
        }
    }
    let Some((name, place)) = said else {
        return Ok(None);
    };
    match name.to_ascii_lowercase().as_str() {
        "csv" => Ok(Some(FileKind::Csv)),
        "tsv" => Ok(Some(FileKind::Tsv)),
        "json" | "ndjson" | "jsonl" => Ok(Some(FileKind::Json)),
        "parquet" => Ok(Some(FileKind::Parquet)),
        "arrow" | "ipc" | "feather" => Ok(Some(FileKind::Arrow)),
        _ => Err(at(
            place,
            &format!("format {name} is not known; there are csv, tsv, json, parquet and arrow"),
        )),
    }
}

/// The format that a name asks for.
fn kind_of_ending(file: &str, by_ending: Option<Reading>) -> Result<FileKind> {
    if let Some(reading) = by_ending {
        return Ok(reading.kind);
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    if file.starts_with("/dev/") || file.starts_with("/proc/") || ending.as_deref() == Some("txt") {
        return Ok(FileKind::Csv);
    }
    let known = known_extensions();
    let message = match ending.as_deref() {
        Some("md" | "markdown") => {
            "COPY writes no Markdown; the shell does: grouse -o x.md".to_string()
        }
        Some(ending) => {
            format!("no format has the ending .{ending}; write (FORMAT …) or one of {known}")
        }
        None => format!(
            "the name has no ending; write (FORMAT csv), parquet, json or arrow, or one of {known}"
        ),
    };
    Err(Error::Io {
        path: file.to_string(),
        message,
    })
}

/// DataFusion's name of a codec, with a level.
fn parquet_codec(codec: Option<String>, level: Option<String>) -> Result<Option<String>> {
    let (name, default) = match codec.as_deref() {
        None if level.is_none() => return Ok(None),
        None | Some("zstd") => ("zstd", Some("3")),
        Some("uncompressed" | "none") => ("uncompressed", None),
        Some("snappy") => ("snappy", None),
        Some("gzip" | "gz") => ("gzip", Some("6")),
        Some("brotli") => ("brotli", Some("1")),
        Some("lz4" | "lz4_raw") => ("lz4_raw", None),
        // With a level in parentheses it is DataFusion's own form.
        Some(other) if other.contains('(') => return Ok(codec),
        Some(other) => {
            let message = format!(
                "Parquet has no codec '{other}'; there are uncompressed, snappy, gzip, brotli, lz4 and zstd"
            );
            return Err(invalid("compression", message));
        }
    };
    match (default, level) {
        (None, None) => Ok(Some(name.to_string())),
        (None, Some(_)) => Err(invalid(
            "compression_level",
            format!("{name} has no levels"),
        )),
        (Some(default), level) => {
            let level = level.unwrap_or_else(|| default.to_string());
            Ok(Some(format!("{name}({level})")))
        }
    }
}

fn name_of(variant: CompressionTypeVariant) -> String {
    match variant {
        CompressionTypeVariant::GZIP => "gzip",
        CompressionTypeVariant::BZIP2 => "bz2",
        CompressionTypeVariant::XZ => "xz",
        CompressionTypeVariant::ZSTD => "zstd",
        CompressionTypeVariant::UNCOMPRESSED => "none",
    }
    .to_string()
}

fn text_token(text: &str) -> Token {
    Token::SingleQuotedString(text.to_string())
}

fn invalid(name: &str, message: String) -> Error {
    Error::invalid(format!("COPY option {name}"), message)
}

fn at(place: Location, message: &str) -> Error {
    Error::Syntax {
        message: message.to_string(),
        line: place.line.max(1),
        column: place.column.max(1),
    }
}
