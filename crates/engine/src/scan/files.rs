//! Files as tables: schema found, hive partitions recognised, kept for the next query.
//!
//! In: a name that is a location, or the name of a [`FileCall`].
//! Out: DataFusion's listing table over exactly those files.
//! Invariant: a table is reused only while names, sizes and ages of all its files are the same.
//! Not here: finding files (location.rs), choosing readers (format.rs).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::session_state::SessionState;
use object_store::{ObjectMeta, ObjectStoreExt};
use parking_lot::{Mutex, RwLock};

use super::access::Access;
use super::call::{FileCall, WantedOfFiles};
use super::csv::beginnings::csv_table_of;
use super::csv::reject_tables::rejects_of;
use super::csv::rejects::RejectsOf;
use super::csv::sniff::sniffed_table;
use super::csv::source::CsvText;
use super::decompression::Decompression;
use super::format::{FileKind, Reading, common_reading, datafusion_format};
use super::hive::{FileColumns, hive_columns};
use super::ipc::ipc_schema;
use super::location::{File, Found, find, is_location, named};
use super::names::distinct_names;
use super::pipe::{OpenedPipe, Pipes, Spooled, SpooledTable, is_pipe};
use super::plain_types::with_plain_types;
use super::steady_format::Steady;
use super::table::FilesTable;
use crate::error::from_datafusion::PATH_UNKNOWN;
use crate::error::{Error, Result};

/// Magic at both ends and the length of the footer.
const PARQUET_BYTES_MIN: u64 = 12;

/// The file tables of one session.
#[derive(Debug, Default)]
pub(crate) struct FileTables {
    state: RwLock<Weak<RwLock<SessionState>>>,
    calls: Mutex<HashMap<String, FileCall>>,
    known: Mutex<HashMap<String, KnownTable>>,
    pipes: Pipes,
    /// Calls whose rejects were kept.
    scans: AtomicU64,
}

#[derive(Debug)]
struct KnownTable {
    fingerprint: Vec<(String, ObjectMeta)>,
    settings: String,
    table: Arc<dyn TableProvider>,
}

impl FileTables {
    /// Must be called once before the first query; the state owns us, so we only borrow it.
    pub(crate) fn attach(&self, state: Weak<RwLock<SessionState>>) {
        *self.state.write() = state;
    }

    /// Makes the table of a call known under the call's name.
    pub(crate) fn add_call(&self, call: FileCall) {
        self.calls.lock().insert(call.table_name(), call);
    }

    /// The table behind `name`, for a statement with this number; `None` = the name is neither a call nor a location.
    pub(crate) async fn table(
        &self,
        name: &str,
        statement: u64,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let call = self.calls.lock().get(name).cloned();
        let call = match call {
            Some(call) => call,
            None if is_location(name) => FileCall::from_path(name),
            None => return Ok(None),
        };
        let state = self.state.read().upgrade();
        let state = state.ok_or_else(|| Error::Internal("the session is gone".to_string()))?;
        let state = state.read().clone();
        let rejects = match call
            .text
            .csv
            .rejects()
            .filter(|_| call.wanted == WantedOfFiles::Rows)
        {
            Some(options) => {
                let scan = self.scans.fetch_add(1, Ordering::Relaxed) + 1;
                Some(rejects_of(&options, &state, (scan, statement)).await?)
            }
            None => None,
        };
        self.open(name, &call, &state, rejects).await.map(Some)
    }

    async fn open(
        &self,
        name: &str,
        call: &FileCall,
        state: &SessionState,
        rejects: Option<RejectsOf>,
    ) -> Result<Arc<dyn TableProvider>> {
        let access = Access::of(state.config())?;
        // Before anything tells whether there is such a file.
        for path in &call.paths {
            access.check_location(path)?;
        }
        if let [path] = call.paths.as_slice()
            && is_pipe(path)
        {
            return match self.pipes.open(path, call, state, rejects).await? {
                OpenedPipe::Csv(table) => Ok(table),
                OpenedPipe::Spooled(spooled, kind) => {
                    spooled_table(path, call, state, (spooled, kind)).await
                }
            };
        }
        let found = find_all(call, state).await?;
        if rejects.is_some() {
            // They are those of one statement.
            return build(call, found, state, rejects).await;
        }
        let fingerprint: Vec<_> = found
            .files
            .iter()
            .map(|file| (file.name.clone(), file.meta.clone()))
            .collect();
        // Options that change how files are read make another table of the same files.
        let settings = format!("{:?}", state.config_options().execution.parquet);
        if let Some(known) = self.known.lock().get(name)
            && known.fingerprint == fingerprint
            && known.settings == settings
        {
            return Ok(Arc::clone(&known.table));
        }
        let table = build(call, found, state, None).await?;
        let known = KnownTable {
            fingerprint,
            settings,
            table: Arc::clone(&table),
        };
        self.known.lock().insert(name.to_string(), known);
        Ok(table)
    }
}

async fn spooled_table(
    path: &str,
    call: &FileCall,
    state: &SessionState,
    (spooled, kind): (Arc<Spooled>, FileKind),
) -> Result<Arc<dyn TableProvider>> {
    let call = FileCall {
        paths: vec![spooled.path()],
        kind: Some(kind),
        ..call.clone()
    };
    let found = find_all(&call, state).await?;
    let table = build(&call, found, state, None).await;
    let table = table.map_err(|error| named(error, path))?;
    Ok(Arc::new(SpooledTable { spooled, table }))
}

async fn find_all(call: &FileCall, state: &SessionState) -> Result<Found> {
    let (runtime, access) = (state.runtime_env(), Access::of(state.config())?);
    let mut all: Option<Found> = None;
    for path in &call.paths {
        let found = find(path, call.kind, &access, runtime).await?;
        match &mut all {
            None => all = Some(found),
            Some(first) => {
                let store = |found: &Found| found.files[0].url.object_store();
                if store(first) != store(&found) {
                    return Err(Error::unsupported(format!(
                        "one table over several servers or buckets ('{path}')"
                    )));
                }
                first.files.extend(found.files);
                first.folder = None;
            }
        }
    }
    all.ok_or_else(|| Error::Internal("a file table without paths".to_string()))
}

async fn build(
    call: &FileCall,
    found: Found,
    state: &SessionState,
    rejects: Option<RejectsOf>,
) -> Result<Arc<dyn TableProvider>> {
    let names: Vec<String> = found.files.iter().map(|file| file.name.clone()).collect();
    let reading = match call.kind {
        // The function decides the format, the names still say how they are compressed.
        Some(kind) => match common_reading(&names) {
            Ok(reading) if reading.kind == kind || is_text_pair(reading.kind, kind) => {
                Reading { kind, ..reading }
            }
            _ => Reading {
                kind,
                compression: CompressionTypeVariant::UNCOMPRESSED,
            },
        },
        None => common_reading(&names)?,
    };
    let common = common_columns(call, &found)?;
    let datafusion = datafusion_format(reading, &call.text, state.config_options());
    let (schema, format): (SchemaRef, Arc<dyn FileFormat>) = match datafusion {
        Some(datafusion) => (
            infer_schema(&datafusion, reading.kind, &found, state).await?,
            datafusion,
        ),
        None => {
            let compression = call.text.compression.unwrap_or(reading.compression).into();
            let pool = &state.runtime_env().memory_pool;
            let decompression = Decompression::new(compression, pool);
            let mut table = csv_table_of(reading.kind, call, &found, &decompression).await?;
            if call.wanted == WantedOfFiles::Dialect {
                return sniffed_table(&call.paths.join(", "), &table);
            }
            if let Some(rejects) = rejects {
                let files = found.files.iter();
                let files = files.map(|file| (file.meta.location.clone(), file.name.clone()));
                table.rules.rejects = Some(Arc::new(rejects.files(files.collect(), &table)));
            }
            let rules = Arc::new(table.rules);
            (table.schema, Arc::new(CsvText { rules, compression }))
        }
    };
    if call.files.union_by_name == Some(false) && reading.kind == FileKind::Parquet {
        check_all_same(&format, &found, state).await?;
    }
    if schema.fields().is_empty() && common.fields.is_empty() {
        return Err(Error::bad_file(call.paths.join(", "), "it has no columns"));
    }
    let format = match reading.kind {
        // Their readers hold files against what was planned themselves.
        FileKind::Parquet | FileKind::Csv | FileKind::Tsv => format,
        _ => Arc::new(Steady::new(format)),
    };
    let table = files_table(found, format, &schema, common)?;
    Ok(with_plain_types(Arc::new(table)))
}

/// Columns that all rows of a file have in common: those of its folders, then its name.
fn common_columns(call: &FileCall, found: &Found) -> Result<FileColumns> {
    let mut columns = hive_columns(found, &call.files)?;
    if let Some(name) = &call.files.filename {
        columns.add_names(name, &found.files);
    }
    Ok(columns)
}

/// The table. A column of the files that their folders name, too, has the folders' values, at its own place.
fn files_table(
    found: Found,
    format: Arc<dyn FileFormat>,
    schema: &Schema,
    common: FileColumns,
) -> Result<FilesTable> {
    let FileColumns { fields, values } = common;
    let is_common = |name: &str| fields.iter().position(|field| field.name() == name);
    let own: Vec<FieldRef> = (schema.fields().iter())
        .filter(|field| is_common(field.name()).is_none())
        .cloned()
        .collect();
    let (mut places, mut next) = (Vec::new(), 0);
    for field in schema.fields() {
        places.push(match is_common(field.name()) {
            Some(place) => own.len() + place,
            None => {
                next += 1;
                next - 1
            }
        });
    }
    let mut others: Vec<usize> = (own.len()..own.len() + fields.len()).collect();
    others.retain(|place| !places.contains(place));
    places.extend(others);
    let own = Schema::new_with_metadata(own, schema.metadata().clone());
    let fields: Vec<FieldRef> = fields.into_iter().map(Arc::new).collect();
    let columns = TableSchema::builder(Arc::new(own))
        .with_table_partition_cols(fields)
        .build();
    let store = found.files.first().map(|file| file.url.object_store());
    let store = store.ok_or_else(|| Error::Internal("a table without files".to_string()))?;
    let files = found.files.into_iter().zip(values).map(|(file, values)| {
        PartitionedFile::new_from_meta(file.meta).with_partition_values(values)
    });
    Ok(FilesTable::new(
        store,
        format,
        columns,
        places,
        files.collect(),
    )?)
}

fn is_text_pair(one: FileKind, other: FileKind) -> bool {
    matches!(
        (one, other),
        (FileKind::Csv, FileKind::Tsv) | (FileKind::Tsv, FileKind::Csv)
    )
}

/// The merged schema of all files; on failure the first file that fails alone is named.
async fn infer_schema(
    format: &Arc<dyn FileFormat>,
    kind: FileKind,
    found: &Found,
    state: &SessionState,
) -> Result<SchemaRef> {
    let failure = match schema_of(format, kind, found, &found.files, state).await {
        // A column that only some files have is NULL in the others.
        Ok(schema) if found.files.len() > 1 => return Ok(all_nullable(&schema)),
        Ok(schema) => return Ok(schema),
        Err(error) => error,
    };
    for file in &found.files {
        if let Err(error) = schema_of(format, kind, found, std::slice::from_ref(file), state).await
        {
            return Err(bad_file(error, file));
        }
    }
    Err(disagreement(failure, &found.files))
}

/// An error unless all files have the columns of the first.
async fn check_all_same(
    format: &Arc<dyn FileFormat>,
    found: &Found,
    state: &SessionState,
) -> Result<()> {
    let mut first: Option<(&File, SchemaRef)> = None;
    for file in &found.files {
        let metas = std::slice::from_ref(&file.meta);
        let schema = format.infer_schema(state, &found.store, metas).await?;
        match &first {
            None => first = Some((file, schema)),
            Some((other, known)) => check_same(other, known, file, &schema)?,
        }
    }
    Ok(())
}

/// Each file is good, together they make no table.
fn disagreement(failure: Error, files: &[File]) -> Error {
    match failure {
        // Told by widen.rs, which knows files by their location only.
        Error::Format { path, message, .. } if path != PATH_UNKNOWN => {
            let named = |text: String| {
                files.iter().fold(text, |text, file| {
                    text.replace(&format!("/{}", file.meta.location), &file.name)
                })
            };
            Error::bad_file(named(path), named(message))
        }
        other => {
            let names: Vec<&str> = files
                .iter()
                .take(2)
                .map(|file| file.name.as_str())
                .collect();
            bad_file_named(other, &names.join(", "))
        }
    }
}

async fn schema_of(
    format: &Arc<dyn FileFormat>,
    kind: FileKind,
    found: &Found,
    files: &[File],
    state: &SessionState,
) -> Result<SchemaRef> {
    if kind == FileKind::Arrow {
        return arrow_schema(format, found, files, state).await;
    }
    if kind == FileKind::Parquet {
        for file in files {
            check_footer(file, found).await?;
        }
    }
    let metas: Vec<ObjectMeta> = files.iter().map(|file| file.meta.clone()).collect();
    Ok(format.infer_schema(state, &found.store, &metas).await?)
}

/// The schema that all Arrow files have: DataFusion reads their columns by position.
async fn arrow_schema(
    format: &Arc<dyn FileFormat>,
    found: &Found,
    files: &[File],
    state: &SessionState,
) -> Result<SchemaRef> {
    let mut first: Option<(&File, SchemaRef)> = None;
    for file in files {
        // DataFusion does not know the layout that files from the web have, but it finds damage on disk.
        if file.url.scheme() == "file" {
            let metas = std::slice::from_ref(&file.meta);
            format.infer_schema(state, &found.store, metas).await?;
        }
        let schema = ipc_schema(&found.store, &file.meta).await?;
        match &first {
            None => first = Some((file, schema)),
            Some((other, known)) => check_same(other, known, file, &schema)?,
        }
    }
    let (_, schema) = first.ok_or_else(|| Error::Internal("a table without files".to_string()))?;
    let names = distinct_names(schema.fields().iter().map(|field| field.name().as_str()));
    let Some(names) = names else {
        return Ok(schema);
    };
    let fields = schema.fields().iter().zip(names);
    let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
    let metadata = schema.metadata().clone();
    let fields = fields.collect::<Vec<_>>();
    Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// An error unless two files have the same columns in the same order.
fn check_same(first: &File, known: &Schema, file: &File, schema: &Schema) -> Result<()> {
    let columns = |schema: &Schema| {
        let fields = schema.fields().iter();
        let columns = fields.map(|field| {
            let kind = crate::error::types::type_name(field.data_type());
            format!("{} {kind}", field.name())
        });
        columns.collect::<Vec<_>>().join(", ")
    };
    let is_same = known.fields().len() == schema.fields().len()
        && known
            .fields()
            .iter()
            .zip(schema.fields())
            .all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
    match is_same {
        true => Ok(()),
        false => Err(Error::bad_file(
            file.name.clone(),
            format!(
                "its columns ({}) are not those of '{}' ({}), in the same order; read the files apart and put them together with UNION ALL",
                columns(schema),
                first.name,
                columns(known)
            ),
        )),
    }
}

/// DataFusion panics on a footer that is longer than its file, so that is found out first.
async fn check_footer(file: &File, found: &Found) -> Result<()> {
    let size = file.meta.size;
    if size < PARQUET_BYTES_MIN {
        return Ok(()); // told by `bad_file`
    }
    let tail = found
        .store
        .get_range(&file.meta.location, size - 8..size)
        .await
        .map_err(|error| {
            named(
                crate::error::from_datafusion::object_store(&error),
                &file.name,
            )
        })?;
    let length = tail
        .get(..4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_le_bytes);
    match length {
        Some(length) if u64::from(length) + PARQUET_BYTES_MIN > size && tail.ends_with(b"PAR1") => {
            Err(Error::bad_file(
                file.name.clone(),
                format!(
                    "its footer claims {length} bytes of a file of {size}: truncated or no Parquet file"
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn all_nullable(schema: &Schema) -> SchemaRef {
    let fields = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        schema.metadata().clone(),
    ))
}

fn bad_file(error: Error, file: &File) -> Error {
    let is_parquet =
        Reading::of_name(&file.name).is_some_and(|reading| reading.kind == FileKind::Parquet);
    match is_parquet && file.meta.size < PARQUET_BYTES_MIN {
        true => Error::bad_file(
            file.name.clone(),
            format!("{} bytes are too few for a Parquet file", file.meta.size),
        ),
        false => bad_file_named(error, &file.name),
    }
}

/// Whatever went wrong while a schema was looked for is the file's fault.
pub(crate) fn bad_file_named(error: Error, name: &str) -> Error {
    match error {
        Error::Io { .. } | Error::Format { .. } => named(error, name),
        Error::OutOfMemory(_) | Error::Cancelled => error,
        other => Error::bad_file(name.to_string(), other.to_string()),
    }
}
