//! Files as tables: schema found, hive partitions recognised, kept for the next query.
//!
//! In: a name that is a location, or the name of a [`FileCall`].
//! Out: the host's listing table over exactly those files.
//! Invariant: a table is reused only while names, sizes and ages of all its files are the same.
//! Not here: finding files (location.rs), choosing readers (format.rs).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::DataFusionError;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::session_state::SessionState;
use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parking_lot::{Mutex, RwLock};

use super::call::FileCall;
use super::format::{Beginning, Kind, Reading, TextOptions, common_reading, host_format};
use super::hive::{FileColumns, hive_columns};
use super::ipc::ipc_schema;
use super::lines::{Lines, LinesFormat};
use super::location::{File, Found, find, is_location, named};
use super::mend::EmptyLines;
use super::quotes::Quotes;
use super::steady_format::Steady;
use super::table::FilesTable;
use super::text::{Extent, csv_format, csv_schema};
use crate::error::host::PATH_UNKNOWN;
use crate::error::{Error, Result};

/// Bytes at the beginning of a text file that are looked at before its format is fixed.
const BEGINNING_BYTES: usize = 1 << 20;

/// The same for the files after the first few, where little more than the names of the columns is wanted.
const BEGINNING_SHORT_BYTES: usize = 1 << 16;

/// Files whose long beginning is read.
const BEGINNINGS_LONG: usize = 8;

/// Magic at both ends and the length of the footer.
const PARQUET_BYTES_MIN: u64 = 12;

/// The file tables of one session.
#[derive(Debug, Default)]
pub(crate) struct FileTables {
    state: RwLock<Weak<RwLock<SessionState>>>,
    calls: Mutex<HashMap<String, FileCall>>,
    known: Mutex<HashMap<String, Known>>,
}

#[derive(Debug)]
struct Known {
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

    /// The table behind `name`; `None` = the name is neither a call nor a location.
    pub(crate) async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let call = self.calls.lock().get(name).cloned();
        let call = match call {
            Some(call) => call,
            None if is_location(name) => FileCall::from_path(name),
            None => return Ok(None),
        };
        let state = self.state.read().upgrade();
        let state = state.ok_or_else(|| Error::Internal("the session is gone".to_string()))?;
        let state = state.read().clone();
        self.open(name, &call, &state).await.map(Some)
    }

    async fn open(
        &self,
        name: &str,
        call: &FileCall,
        state: &SessionState,
    ) -> Result<Arc<dyn TableProvider>> {
        let found = find_all(call, state).await?;
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
        let table = build(call, found, state).await?;
        let known = Known {
            fingerprint,
            settings,
            table: Arc::clone(&table),
        };
        self.known.lock().insert(name.to_string(), known);
        Ok(table)
    }
}

async fn find_all(call: &FileCall, state: &SessionState) -> Result<Found> {
    let runtime = state.runtime_env();
    let mut all: Option<Found> = None;
    for path in &call.paths {
        let found = find(path, call.kind, runtime).await?;
        match &mut all {
            None => all = Some(found),
            Some(first) => {
                let store = |found: &Found| found.files[0].url.object_store();
                if store(first) != store(&found) {
                    return Err(Error::Unsupported {
                        message: format!("one table over several servers or buckets ('{path}')"),
                    });
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
    let beginnings = beginnings(&found, reading, call).await?;
    let beginning = look_at(reading.kind, call.text.quote.unwrap_or(b'"'), &beginnings);
    let format = host_format(reading, &call.text, beginning, state.config_options());
    let common = common_columns(call, &found)?;
    let (schema, lines) = match text_columns(reading.kind, call, &beginnings)? {
        Some(columns) => columns,
        None => (
            infer_schema(&format, reading.kind, &found, state).await?,
            None,
        ),
    };
    if schema.fields().is_empty() && common.fields.is_empty() {
        return Err(Error::Format {
            path: call.paths.join(", "),
            line: None,
            message: "it has no columns".to_string(),
        });
    }
    let format = match lines {
        Some(lines) => Arc::new(LinesFormat {
            host: format,
            lines,
            compression: call.text.compression.unwrap_or(reading.compression).into(),
        }),
        None => format,
    };
    let format = match reading.kind {
        Kind::Parquet => format,
        _ => Arc::new(Steady::new(format)),
    };
    let table = files_table(found, format, &schema, common)?;
    Ok(Arc::new(table))
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

/// The columns of text files, and how they are read where the host would misread them; `None` = no text.
fn text_columns(
    kind: Kind,
    call: &FileCall,
    beginnings: &[(&File, Vec<u8>, Extent)],
) -> Result<Option<(SchemaRef, Option<Lines>)>> {
    match kind {
        Kind::Csv | Kind::Tsv => {
            let schema = csv_schema(kind, &call.text, beginnings)?;
            let lines = one_column(&schema, kind, &call.text);
            Ok(Some((schema, lines)))
        }
        Kind::Parquet | Kind::Arrow | Kind::Json => Ok(None),
    }
}

/// CSV of one column, in which an empty line is a NULL.
fn one_column(schema: &Schema, kind: Kind, text: &TextOptions) -> Option<Lines> {
    let lines = EmptyLines::new(Quotes::new(kind, text), text.header.unwrap_or(true));
    (schema.fields().len() == 1).then(|| Lines::OneColumn(csv_format(kind, text), lines))
}

fn is_text_pair(one: Kind, other: Kind) -> bool {
    matches!(
        (one, other),
        (Kind::Csv, Kind::Tsv) | (Kind::Tsv, Kind::Csv)
    )
}

/// Reads the beginnings of text files; other formats need none.
async fn beginnings<'a>(
    found: &'a Found,
    reading: Reading,
    call: &FileCall,
) -> Result<Vec<(&'a File, Vec<u8>, Extent)>> {
    let files = match reading.kind {
        Kind::Parquet | Kind::Arrow | Kind::Json => 0,
        Kind::Csv | Kind::Tsv => found.files.len(),
    };
    let compression =
        FileCompressionType::from(call.text.compression.unwrap_or(reading.compression));
    let mut read = Vec::with_capacity(files);
    for (index, file) in found.files.iter().take(files).enumerate() {
        let limit = match index < BEGINNINGS_LONG {
            true => BEGINNING_BYTES,
            false => BEGINNING_SHORT_BYTES,
        };
        let (bytes, extent) = first_bytes(&found.store, &file.meta, compression, limit)
            .await
            .map_err(|error| bad_file_named(error, &file.name))?;
        read.push((file, bytes, extent));
    }
    Ok(read)
}

fn look_at(kind: Kind, quote: u8, beginnings: &[(&File, Vec<u8>, Extent)]) -> Beginning {
    let mut all = Beginning::default();
    for (_, bytes, _) in beginnings {
        let one = Beginning::of(kind, bytes, quote);
        all.newlines_in_values |= one.newlines_in_values;
    }
    all
}

async fn first_bytes(
    store: &Arc<dyn ObjectStore>,
    meta: &ObjectMeta,
    compression: FileCompressionType,
    limit: usize,
) -> Result<(Vec<u8>, Extent)> {
    let store_error = |error: object_store::Error| crate::error::host::object_store(&error);
    if meta.size == 0 {
        return Ok((Vec::new(), Extent::Whole));
    }
    if !compression.is_compressed() {
        let end = meta.size.min(limit as u64);
        let extent = if end == meta.size {
            Extent::Whole
        } else {
            Extent::Part
        };
        let bytes = store
            .get_range(&meta.location, 0..end)
            .await
            .map_err(store_error)?;
        return Ok((bytes.to_vec(), extent));
    }
    let stream = store
        .get(&meta.location)
        .await
        .map_err(store_error)?
        .into_stream();
    let stream = futures::StreamExt::boxed(stream.map_err(DataFusionError::from));
    let mut stream = compression.convert_stream(stream)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.try_next().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= limit {
            return Ok((bytes, Extent::Part));
        }
    }
    Ok((bytes, Extent::Whole))
}

/// The merged schema of all files; on failure the first file that fails alone is named.
async fn infer_schema(
    format: &Arc<dyn FileFormat>,
    kind: Kind,
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
            Error::Format {
                path: named(path),
                line: None,
                message: named(message),
            }
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
    kind: Kind,
    found: &Found,
    files: &[File],
    state: &SessionState,
) -> Result<SchemaRef> {
    let on_disk = found.files.iter().all(|file| file.url.scheme() == "file");
    if kind == Kind::Arrow && !on_disk {
        let mut schemas = Vec::with_capacity(files.len());
        for file in files {
            schemas.push(Arc::unwrap_or_clone(
                ipc_schema(&found.store, &file.meta).await?,
            ));
        }
        return Ok(Arc::new(Schema::try_merge(schemas)?));
    }
    if kind == Kind::Parquet {
        for file in files {
            check_footer(file, found).await?;
        }
    }
    let metas: Vec<ObjectMeta> = files.iter().map(|file| file.meta.clone()).collect();
    Ok(format.infer_schema(state, &found.store, &metas).await?)
}

/// The host panics on a footer that is longer than its file, so that is found out first.
async fn check_footer(file: &File, found: &Found) -> Result<()> {
    let size = file.meta.size;
    if size < PARQUET_BYTES_MIN {
        return Ok(()); // told by `bad_file`
    }
    let tail = found
        .store
        .get_range(&file.meta.location, size - 8..size)
        .await
        .map_err(|error| named(crate::error::host::object_store(&error), &file.name))?;
    let length = tail
        .get(..4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_le_bytes);
    match length {
        Some(length) if u64::from(length) + PARQUET_BYTES_MIN > size && tail.ends_with(b"PAR1") => {
            Err(Error::Format {
                path: file.name.clone(),
                line: None,
                message: format!(
                    "its footer claims {length} bytes of a file of {size}: truncated or no Parquet file"
                ),
            })
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
        Reading::of_name(&file.name).is_some_and(|reading| reading.kind == Kind::Parquet);
    match is_parquet && file.meta.size < PARQUET_BYTES_MIN {
        true => Error::Format {
            path: file.name.clone(),
            line: None,
            message: format!("{} bytes are too few for a Parquet file", file.meta.size),
        },
        false => bad_file_named(error, &file.name),
    }
}

/// Whatever went wrong while a schema was looked for is the file's fault.
fn bad_file_named(error: Error, name: &str) -> Error {
    match error {
        Error::Io { .. } | Error::Format { .. } => named(error, name),
        Error::OutOfMemory(_) | Error::Cancelled => error,
        other => Error::Format {
            path: name.to_string(),
            line: None,
            message: other.to_string(),
        },
    }
}
