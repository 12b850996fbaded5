//! Rejects: records that `read_csv(…, store_rejects => true)` leaves out, as long as the session keeps them.
//!
//! In: records that were left out, whichever worker met them, however often.
//! Out: batches with DuckDB's columns, of the errors and of the files that have some.
//! Invariant: an error is kept once, and of a file the first ones; what is kept counts as memory of the session.
//! Not here: which records are left out (decode.rs), under which names they are found (reject_tables.rs).

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use object_store::path::Path;
use parking_lot::Mutex;

use super::decode::FieldLayout;
use super::sniff::described;
use super::table::CsvTable;

/// Who takes the memory, in errors.
const CONSUMER: &str = "rejected records of read_csv (rejects_limit => n keeps fewer)";

/// What a kept error takes beside its strings: itself and its part of the tree.
const REJECT_BYTES: usize = 2 * std::mem::size_of::<(ErrorPlace, KeptReject)>();

/// Why a record was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RejectKind {
    NoValue,
    TooFew,
    TooMany,
    TornQuotes,
}

impl RejectKind {
    /// DuckDB's name.
    fn name(self) -> &'static str {
        match self {
            RejectKind::NoValue => "CAST",
            RejectKind::TooFew => "MISSING COLUMNS",
            RejectKind::TooMany => "TOO MANY COLUMNS",
            RejectKind::TornQuotes => "UNQUOTED VALUE",
        }
    }
}

/// A record that was left out.
#[derive(Debug)]
pub(crate) struct Reject {
    /// From 1.
    pub(crate) line: u64,
    /// Where in the file the record begins, and where the error is.
    pub(crate) record: u64,
    pub(crate) place: u64,
    /// The field of the error, from 0.
    pub(crate) field: usize,
    pub(crate) kind: RejectKind,
    /// The record.
    pub(crate) text: String,
    pub(crate) message: String,
}

#[derive(Debug)]
struct KeptReject {
    reject: Reject,
    column: Option<Arc<str>>,
}

impl KeptReject {
    fn bytes(&self) -> usize {
        REJECT_BYTES + self.reject.text.capacity() + self.reject.message.capacity()
    }
}

/// Of an error: its file, its record, its field.
type ErrorPlace = (u64, u64, usize);

/// What one call has left out in one statement.
#[derive(Debug)]
pub(crate) struct KeptRejects {
    scan: u64,
    /// How the files are read, one row.
    about: Vec<ArrayRef>,
    /// Byte positions are those of the files.
    has_places: bool,
    files: Vec<String>,
    /// Errors of a file that are kept.
    limit: usize,
    errors: Mutex<Errors>,
    memory: MemoryReservation,
}

#[derive(Debug, Default)]
struct Errors {
    by_place: BTreeMap<ErrorPlace, KeptReject>,
    /// How many a file has.
    of_files: BTreeMap<u64, usize>,
}

impl Errors {
    fn last_of(&self, file: u64) -> Option<ErrorPlace> {
        let all = (file, 0, 0)..=(file, u64::MAX, usize::MAX);
        self.by_place
            .range(all)
            .next_back()
            .map(|(place, _)| *place)
    }
}

impl KeptRejects {
    fn add(&self, file: u64, rejected: KeptReject) -> Result<()> {
        let place = (file, rejected.reject.record, rejected.reject.field);
        let mut errors = self.errors.lock();
        if errors.by_place.contains_key(&place) {
            return Ok(());
        }
        let count = errors.of_files.get(&file).copied().unwrap_or_default();
        let last = match count < self.limit {
            true => None,
            false => errors.last_of(file),
        };
        if last.is_some_and(|last| last < place) {
            return Ok(());
        }
        self.memory.try_grow(rejected.bytes())?;
        errors.by_place.insert(place, rejected);
        match last {
            None => drop(errors.of_files.insert(file, count + 1)),
            Some(last) => {
                let left = errors.by_place.remove(&last);
                self.memory.shrink(left.map_or(0, |left| left.bytes()));
            }
        }
        Ok(())
    }

    /// Up to `rows` errors behind a place, and the place of the last one.
    fn errors_after(
        &self,
        place: Option<ErrorPlace>,
        rows: usize,
    ) -> Option<(Result<RecordBatch>, ErrorPlace)> {
        let errors = self.errors.lock();
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        let range = errors.by_place.range((from, Bound::Unbounded));
        let found: Vec<(&ErrorPlace, &KeptReject)> = range.take(rows).collect();
        let (last, _) = found.last()?;
        let number = |value: &dyn Fn(&ErrorPlace, &Reject) -> Option<u64>| -> ArrayRef {
            let values = found.iter().map(|(place, kept)| value(place, &kept.reject));
            Arc::new(values.collect::<UInt64Array>())
        };
        let text = |value: &dyn Fn(&KeptReject) -> Option<String>| -> ArrayRef {
            Arc::new(
                found
                    .iter()
                    .map(|(_, kept)| value(kept))
                    .collect::<StringArray>(),
            )
        };
        let position = |at: u64| self.has_places.then_some(at + 1);
        let columns = vec![
            number(&|_, _| Some(self.scan)),
            number(&|(file, ..), _| Some(*file)),
            number(&|_, reject| Some(reject.line)),
            number(&|_, reject| position(reject.record)),
            number(&|_, reject| position(reject.place)),
            number(&|_, reject| Some(reject.field as u64 + 1)),
            text(&|kept| kept.column.as_deref().map(str::to_string)),
            text(&|kept| Some(kept.reject.kind.name().to_string())),
            text(&|kept| Some(kept.reject.text.clone())),
            text(&|kept| Some(kept.reject.message.clone())),
        ];
        let batch = RecordBatch::try_new(errors_schema(), columns);
        Some((batch.map_err(Into::into), **last))
    }

    /// The errors in batches.
    pub(crate) fn errors(
        self: Arc<KeptRejects>,
        rows: usize,
    ) -> impl Iterator<Item = Result<RecordBatch>> {
        let mut place = None;
        std::iter::from_fn(move || {
            let (batch, last) = self.errors_after(place, rows)?;
            place = Some(last);
            Some(batch)
        })
    }

    /// The files that have errors.
    pub(crate) fn scans(&self) -> Result<RecordBatch> {
        let files: Vec<u64> = self.errors.lock().of_files.keys().copied().collect();
        let path = |file: &u64| self.files.get(*file as usize).cloned();
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(vec![self.scan; files.len()])),
            Arc::new(UInt64Array::from(files.clone())),
            Arc::new(files.iter().map(path).collect::<StringArray>()),
        ];
        for one in &self.about {
            columns.push(ScalarValue::try_from_array(one, 0)?.to_array_of_size(files.len())?);
        }
        // What was written is not known here.
        columns.push(Arc::new(StringArray::new_null(files.len())));
        Ok(RecordBatch::try_new(scans_schema(), columns)?)
    }

    pub(crate) fn scan(&self) -> u64 {
        self.scan
    }
}

/// Columns of the table of errors.
pub(crate) fn errors_schema() -> SchemaRef {
    let numbers = [
        "scan_id",
        "file_id",
        "line",
        "line_byte_position",
        "byte_position",
        "column_idx",
    ];
    let strings = ["column_name", "error_type", "csv_line", "error_message"];
    let numbers = numbers.map(|name| Field::new(name, DataType::UInt64, true));
    let strings = strings.map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new([numbers.to_vec(), strings.to_vec()].concat()))
}

/// Columns of the table of files.
pub(crate) fn scans_schema() -> SchemaRef {
    let fields = [
        ("scan_id", DataType::UInt64),
        ("file_id", DataType::UInt64),
        ("file_path", DataType::Utf8),
        ("delimiter", DataType::Utf8),
        ("quote", DataType::Utf8),
        ("escape", DataType::Utf8),
        ("newline_delimiter", DataType::Utf8),
        ("skip_rows", DataType::UInt32),
        ("has_header", DataType::Boolean),
        ("columns", DataType::Utf8),
        ("date_format", DataType::Utf8),
        ("timestamp_format", DataType::Utf8),
        ("user_arguments", DataType::Utf8),
    ];
    let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
    Arc::new(Schema::new(fields.to_vec()))
}

/// What a table shows: rejects of one statement.
#[derive(Debug, Default)]
pub(crate) struct ShownRejects {
    statement: u64,
    pub(crate) kept: Vec<Arc<KeptRejects>>,
}

/// Where one call puts what it leaves out.
#[derive(Debug)]
pub(crate) struct Rejects {
    kept: Arc<KeptRejects>,
    files: HashMap<Path, u64>,
    /// Names of the table's columns.
    columns: Vec<Arc<str>>,
    statement: u64,
    tables: [Arc<Mutex<ShownRejects>>; 2],
}

/// What is known of a call before its files are.
#[derive(Debug)]
pub(crate) struct RejectsOf {
    pub(crate) scan: u64,
    pub(crate) statement: u64,
    pub(crate) limit: usize,
    pub(crate) pool: Arc<dyn MemoryPool>,
    pub(crate) tables: [Arc<Mutex<ShownRejects>>; 2],
}

impl RejectsOf {
    /// With these files and their names.
    pub(crate) fn files(self, files: Vec<(Path, String)>, table: &CsvTable) -> Rejects {
        let numbers = files.iter().enumerate();
        let numbers = numbers.map(|(number, (path, _))| (path.clone(), number as u64));
        let fields = table.schema.fields().iter();
        Rejects {
            files: numbers.rev().collect(),
            columns: fields.map(|field| field.name().as_str().into()).collect(),
            statement: self.statement,
            tables: self.tables,
            kept: Arc::new(KeptRejects {
                scan: self.scan,
                about: described(table),
                has_places: table.rules.encoding.is_none(),
                files: files.into_iter().map(|(_, name)| name).collect(),
                limit: self.limit,
                errors: Mutex::default(),
                memory: MemoryConsumer::new(CONSUMER).register(&self.pool),
            }),
        }
    }
}

impl Rejects {
    /// Those of one file, which is about to be read: the tables show this statement's from now on.
    pub(crate) fn of_file(&self, file: &Path, layout: &FieldLayout) -> FileRejects {
        self.show();
        let mut columns = vec![None; layout.fields];
        for (name, field) in self.columns.iter().zip(&layout.of_columns) {
            if let Some(column) = field.and_then(|field| columns.get_mut(field)) {
                *column = Some(Arc::clone(name));
            }
        }
        FileRejects {
            kept: Arc::clone(&self.kept),
            file: self.files.get(file).copied().unwrap_or_default(),
            columns,
        }
    }

    fn show(&self) {
        for table in &self.tables {
            let mut shown = table.lock();
            if shown.statement != self.statement {
                *shown = ShownRejects {
                    statement: self.statement,
                    kept: Vec::new(),
                };
            }
            // A prepared statement may run again after another one.
            if !shown.kept.iter().any(|kept| Arc::ptr_eq(kept, &self.kept)) {
                shown.kept.push(Arc::clone(&self.kept));
                shown.kept.sort_by_key(|kept| kept.scan());
            }
        }
    }
}

/// Where records go that are left out of one file.
pub(crate) struct FileRejects {
    kept: Arc<KeptRejects>,
    file: u64,
    /// Names of the fields.
    columns: Vec<Option<Arc<str>>>,
}

impl FileRejects {
    pub(crate) fn add(&self, rejects: Vec<Reject>) -> Result<()> {
        rejects.into_iter().try_for_each(|reject| {
            let column = self.columns.get(reject.field).cloned().flatten();
            self.kept.add(self.file, KeptReject { reject, column })
        })
    }
}
