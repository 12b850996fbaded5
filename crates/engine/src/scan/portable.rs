//! Sources of scans as messages: how the files of a scan are read, taken apart and made again.
//!
//! In: the source of a scan as it was planned. Out: its values; a scan of the same files, read as this machine reads them.
//! Invariant: what decides what a file's bytes mean travels. Stores, readers, limits and caches are those of the machine that
//! reads.
//! Not here: which files, columns and conditions (crate `grouse-cluster`), for all formats alike.

use std::fmt::Display;
use std::sync::Arc;

use datafusion::common::config::{ConfigField, TableParquetOptions, Visit};
use datafusion::common::{Result, not_impl_err};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::csv::portable_csv;
use super::json::portable_json;
use super::parquet::readable;
use super::steady_format::SteadySource;
use crate::scan::ipc::portable_arrow;
use crate::wire::{Apart, WireReader, WireValue};

const PARQUET: &str = "parquet";
const STEADY: &str = "steady";

/// A source taken apart; an error names one that has to stay.
pub(crate) fn source_apart(source: &dyn FileSource) -> Result<Apart> {
    if let Some(parquet) = source.downcast_ref::<ParquetSource>() {
        return Ok(Apart {
            kind: PARQUET,
            values: vec![parquet_options(parquet)?],
        });
    }
    if let Some(steady) = source.downcast_ref::<SteadySource>() {
        let inner = source_apart(steady.source().as_ref())?;
        return Ok(Apart {
            kind: STEADY,
            values: vec![inner.kind.into(), WireValue::List(inner.values)],
        });
    }
    if let Some(csv) = portable_csv::apart(source) {
        return csv;
    }
    let known = portable_json::apart(source).or_else(|| portable_arrow::apart(source));
    match known {
        Some(apart) => Ok(apart),
        None => not_impl_err!("a scan of {} files as this one", source.file_type()),
    }
}

/// The scan with the source that these values are of, for the files and columns that it has, in batches of so many rows.
pub(crate) fn with_source(
    scan: FileScanConfig,
    kind: &str,
    values: &mut WireReader,
    runtime: &RuntimeEnv,
    batch_rows: usize,
) -> Result<FileScanConfig> {
    let known = Arc::clone(scan.file_source());
    let source = source_of(kind, values, known.table_schema(), runtime)?;
    values.end()?;
    let projected = match known.projection() {
        Some(projection) => source.try_pushdown_projection(projection)?,
        None => None,
    };
    let source = projected.unwrap_or(source);
    let Some(parquet) = source.downcast_ref::<ParquetSource>() else {
        let scan = FileScanConfigBuilder::from(scan).with_source(source);
        return Ok(scan.build());
    };
    let mut parquet = parquet.clone();
    if let Some(predicate) = known.filter() {
        parquet = parquet.with_predicate(predicate);
    }
    readable(scan, parquet, runtime, batch_rows)
}

fn source_of(
    kind: &str,
    values: &mut WireReader,
    schema: &TableSchema,
    runtime: &RuntimeEnv,
) -> Result<Arc<dyn FileSource>> {
    match kind {
        PARQUET => parquet_source(values, schema),
        STEADY => {
            let kind = values.text()?;
            let mut inner = WireReader::new(values.list()?);
            let source = source_of(&kind, &mut inner, schema, runtime)?;
            inner.end()?;
            Ok(Arc::new(SteadySource::around(source)))
        }
        portable_csv::KIND => portable_csv::whole(values, schema, runtime),
        portable_json::KIND => portable_json::whole(values, schema, runtime),
        portable_arrow::KIND => portable_arrow::whole(values, schema, runtime),
        other => not_impl_err!("a scan of the kind {other}"),
    }
}

/// Before the names of options, which have no place of their own.
const PREFIX: &str = "parquet.";

/// Options that are set, with their values.
#[derive(Default)]
struct SetOptions(Vec<WireValue>);

impl Visit for SetOptions {
    fn some<V: Display>(&mut self, key: &str, value: V, _: &'static str) {
        let name = key.strip_prefix(PREFIX).unwrap_or(key);
        let value = value.to_string();
        let pair = vec![name.into(), value.as_str().into()];
        self.0.push(WireValue::List(pair));
    }

    fn none(&mut self, _: &str, _: &'static str) {}
}

/// What files of Parquet are read by.
fn parquet_options(source: &ParquetSource) -> Result<WireValue> {
    let options = source.table_parquet_options();
    if options.crypto.file_decryption.is_some() {
        return not_impl_err!("a scan of encrypted Parquet files");
    }
    let mut set = SetOptions::default();
    let prefix = PREFIX.trim_end_matches('.');
    options.global.visit(&mut set, prefix, "");
    Ok(WireValue::List(set.0))
}

fn parquet_source(values: &mut WireReader, schema: &TableSchema) -> Result<Arc<dyn FileSource>> {
    let mut options = TableParquetOptions::default();
    let set = values.each(|values| {
        let mut pair = WireReader::new(values.list()?);
        Ok((pair.text()?, pair.text()?))
    })?;
    for (name, value) in set {
        options.global.set(&name, &value)?;
    }
    let hint = options.global.metadata_size_hint;
    let mut source = ParquetSource::new(schema.clone()).with_table_parquet_options(options);
    if let Some(bytes) = hint {
        source = source.with_metadata_size_hint(bytes);
    }
    Ok(Arc::new(source))
}
