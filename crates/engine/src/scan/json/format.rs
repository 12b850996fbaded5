//! JSON as a format of tables.
//!
//! In: files, and what a call says about them. Out: their columns; scans; DataFusion's writer.
//! Invariant: the columns are those that the user names, or those of all records that were looked at, in the order of the
//! files and of the fields in them.
//! Not here: scans (source.rs), types (shape.rs).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, GetExt, Result, Statistics};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::{JsonFormat, JsonFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSinkConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use object_store::{ObjectMeta, ObjectStore};
use parking_lot::Mutex;

use super::chunks::chunks;
use super::options::JsonOptions;
use super::records::{FilePart, RecordsText, Root, SampleBounds, Seen, layout_of, look};
use super::source::{JsonReading, JsonSource};
use crate::error::Error;
use crate::scan::decompression::Decompression;
use crate::error::types::type_name;
use crate::scan::location::named;
use crate::scan::steady_format::Steady;
use crate::scan::text::{SAMPLE_ROWS, scan_of};
use crate::scan::wrapped::as_wrapped;
use grouse_text::json::columns::Strictness;
use grouse_text::json::shape::{DEPTH_MAX, Shape};
use grouse_text::json::splitter::Layout;
use grouse_text::json::types::JsonType;

/// So much is looked at in any case: it takes some hundredths of a second.
const SAMPLE_BYTES: u64 = 4 << 20;

/// Records of each file behind those of the sample, so that fields of later files are seen.
const FILE_ROWS: usize = 256;

/// Files that are looked at at all, unless all rows are.
const FILES_MAX: usize = 1_024;

/// The name of the only column of records that are no objects, or objects without fields.
const VALUE_COLUMN: &str = "json";

/// JSON files.
#[derive(Debug)]
pub(crate) struct Json {
    datafusion: JsonFormat,
    options: JsonOptions,
    compression: FileCompressionType,
    found: Mutex<Option<FoundColumns>>,
}

/// What the sample shows.
#[derive(Debug, Clone)]
struct FoundColumns {
    fields: Vec<(String, JsonType)>,
    layout: Layout,
    root: Root,
}

impl Json {
    pub(crate) fn new(options: JsonOptions, compression: FileCompressionType) -> Json {
        Json {
            datafusion: JsonFormat::default().with_file_compression_type(compression),
            options,
            compression,
            found: Mutex::new(None),
        }
    }

    /// As DataFusion's options say; it is the writer.
    pub(crate) fn over(datafusion: JsonFormat) -> Json {
        let compression = FileCompressionType::from(datafusion.options().compression);
        let options = JsonOptions {
            sample_rows: datafusion.options().schema_infer_max_rec,
            ..JsonOptions::default()
        };
        Json {
            datafusion,
            options,
            compression,
            found: Mutex::new(None),
        }
    }

    async fn look(
        &self,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
        decompression: &Decompression,
    ) -> Result<(Shape, Seen)> {
        let (mut shape, mut all) = (Shape::default(), Seen::default());
        let wanted = self.options.sample_rows;
        for (index, object) in objects.iter().enumerate() {
            if index >= FILES_MAX && wanted != Some(usize::MAX) {
                break;
            }
            let rows = wanted.unwrap_or(SAMPLE_ROWS).saturating_sub(all.rows);
            let sample = SampleBounds {
                rows: rows.max(FILE_ROWS),
                bytes: if wanted.is_none() && index == 0 {
                    SAMPLE_BYTES
                } else {
                    0
                },
                is_lenient: self.options.ignores_errors,
            };
            let mut bytes = chunks(store, object, 0, decompression).await?.peekable();
            let layout = match (self.options.layout, Pin::new(&mut bytes).peek().await) {
                (Some(layout), _) => layout,
                (None, Some(Ok(first))) => layout_of(first, self.options.ignores_errors),
                (None, _) => Layout::Values,
            };
            let bytes = bytes.boxed();
            let mut text = RecordsText::new(
                bytes,
                layout,
                FilePart::Whole,
                self.options.record_bytes_max(),
            );
            let seen = look(&mut text, &mut shape, sample)
                .await
                .map_err(|error| named(Error::from(error), &format!("/{}", object.location)))?;
            all.rows += seen.rows;
            all.needs_values |= seen.needs_values;
            all.needs_lines |= seen.needs_lines;
            if all.needs_lines && all.needs_values && self.options.layout.is_none() {
                return Err(mixed_layouts(object));
            }
        }
        Ok((shape, all))
    }

    /// The columns of what was seen.
    fn columns(&self, shape: &Shape, seen: Seen) -> FoundColumns {
        let depth = self.options.depth_max.unwrap_or(DEPTH_MAX).min(DEPTH_MAX);
        // A value that is no object is the only column; several columns can only be fields.
        let is_object = match &self.options.columns {
            Some(columns) => columns.len() != 1 || shape.has_object(),
            None => shape.is_object(),
        };
        let is_object = self.options.records.unwrap_or(is_object);
        let (root, fields) = match is_object {
            true => (Root::Object, shape.fields(depth.saturating_sub(1))),
            false if seen.rows == 0 => (Root::Object, Vec::new()),
            false => {
                let kind = shape.json_type(depth);
                (Root::Value, vec![(VALUE_COLUMN.to_string(), kind)])
            }
        };
        // Objects without fields are rows, too, and a file without records has none: `[]` is no line with a list.
        let has_fields = !fields.is_empty() || self.options.columns.is_some();
        let (root, fields) = match has_fields {
            true => (root, fields),
            false => (
                Root::Value,
                vec![(VALUE_COLUMN.to_string(), JsonType::Json)],
            ),
        };
        let layout = match seen.needs_values || seen.rows == 0 || !has_fields {
            true => Layout::Values,
            false => Layout::Lines,
        };
        FoundColumns {
            fields: self.named_columns().unwrap_or(fields),
            layout: self.options.layout.unwrap_or(layout),
            root,
        }
    }

    fn named_columns(&self) -> Option<Vec<(String, JsonType)>> {
        let columns = self.options.columns.as_ref()?;
        let typed = columns
            .iter()
            .map(|(name, kind)| (name.clone(), JsonType::of(kind, type_name)));
        Some(typed.collect())
    }
}

/// One file has records in an array or over several lines, another has lines that are arrays.
fn mixed_layouts(object: &ObjectMeta) -> DataFusionError {
    Error::bad_file(format!("/{}", object.location), "in it records lie otherwise than in a file before it, where each line is one, or several are in an array; \
                  format => 'newline_delimited' or format => 'array' says how they lie in all of them")
    .into()
}

#[async_trait]
impl FileFormat for Json {
    as_wrapped!(datafusion: get_ext, get_ext_with_compression);

    fn compression_type(&self) -> Option<FileCompressionType> {
        Some(self.compression)
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let pool = &state.runtime_env().memory_pool;
        let decompression = Decompression::new(self.compression, pool);
        let (shape, seen) = self.look(store, objects, &decompression).await?;
        let found = self.columns(&shape, seen);
        let fields = found
            .fields
            .iter()
            .map(|(name, kind)| Field::new(name, kind.data_type(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        *self.found.lock() = Some(found);
        Ok(schema)
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        _store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        _object: &ObjectMeta,
    ) -> Result<Statistics> {
        Ok(Statistics::new_unknown(&schema))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        conf: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = conf.file_source().downcast_ref::<JsonSource>();
        let source = source.map(|source| source.counting(&state.runtime_env().memory_pool));
        Ok(scan_of(conf, source, self.compression))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        conf: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.datafusion
            .create_writer_physical_plan(input, state, conf, order)
            .await
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        let found = self.found.lock().clone();
        let known = found.iter().flat_map(|found| &found.fields);
        let known: Vec<&(String, JsonType)> = known.collect();
        let is_found = found.is_some() && self.options.columns.is_none();
        let fields = schema.file_schema().fields().iter().map(|field| {
            let kind = known
                .iter()
                .find(|(name, kind)| name == field.name() && kind.data_type() == *field.data_type())
                .map_or_else(
                    || JsonType::of(field.data_type(), type_name),
                    |(_, kind)| kind.clone(),
                );
            (field.name().clone(), kind)
        });
        let strictness = match (self.options.ignores_errors, is_found) {
            (true, _) => Strictness::Lenient,
            (false, true) => Strictness::Strict,
            (false, false) => Strictness::Named,
        };
        let reading = JsonReading {
            fields: Arc::new(fields.collect()),
            // Of files that nobody has looked at any layout may be theirs.
            layout: found.as_ref().map_or(Layout::Values, |found| found.layout),
            root: found.as_ref().map_or(Root::Object, |found| found.root),
            strictness,
            compression: self.compression,
            record_bytes_max: self.options.record_bytes_max(),
        };
        Arc::new(JsonSource::new(reading, schema))
    }
}

/// Makes this format for `CREATE EXTERNAL TABLE` and `COPY`.
#[derive(Debug, Default)]
pub(crate) struct JsonFactory {
    datafusion: JsonFormatFactory,
}

impl GetExt for JsonFactory {
    fn get_ext(&self) -> String {
        self.datafusion.get_ext()
    }
}

impl FileFormatFactory for JsonFactory {
    fn create(
        &self,
        state: &dyn Session,
        format_options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let datafusion = self.datafusion.create(state, format_options)?;
        let datafusion = datafusion.downcast_ref::<JsonFormat>();
        let datafusion = datafusion.ok_or_else(|| {
            DataFusionError::Internal("DataFusion's JSON format is not its own".to_string())
        })?;
        let datafusion = JsonFormat::default().with_options(datafusion.options().clone());
        Ok(Arc::new(Steady::new(Arc::new(Json::over(datafusion)))))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(Json::over(JsonFormat::default()))
    }
}
