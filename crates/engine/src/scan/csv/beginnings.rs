//! Beginnings: the first bytes of CSV files, from which their columns are found.
//!
//! In: the files of a table. Out: the table's columns and rules.
//! Invariant: of a file no more than its beginning is held.
//! Not here: what the beginnings say (table.rs).

use datafusion::common::DataFusionError;
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use std::sync::Arc;

use super::sample::look_further;
use super::table::{Beginning, CsvTable, Union, csv_table};
use crate::error::Result;
use crate::scan::call::FileCall;
use crate::scan::decompression::Decompression;
use crate::scan::files::bad_file_named;
use crate::scan::format::FileKind;
use crate::scan::location::{File, Found};
use crate::scan::text::{Extent, SAMPLE_ROWS};

/// Bytes at the beginning of a text file that are looked at before its format is fixed.
pub(crate) const BEGINNING_BYTES: usize = 1 << 20;

/// The same for the files after the first few, where little more than the names of the columns is wanted.
const BEGINNING_SHORT_BYTES: usize = 1 << 16;

/// Files whose long beginning is read.
const BEGINNINGS_LONG: usize = 8;

/// The columns of CSV files, and how they are read.
pub(crate) async fn csv_table_of(
    kind: FileKind,
    call: &FileCall,
    found: &Found,
    decompression: &Decompression,
) -> Result<CsvTable> {
    let union = match call.files.union_by_name {
        Some(true) => Union::ByName,
        _ => Union::ByPlace,
    };
    let beginnings = beginnings(found, decompression).await?;
    let table = csv_table(kind, &call.text, union, &beginnings)?;
    match call.text.sample_rows {
        Some(rows) if rows > SAMPLE_ROWS => {
            look_further(table, found, decompression, (rows, &call.text.csv)).await
        }
        _ => Ok(table),
    }
}

async fn beginnings<'a>(
    found: &'a Found,
    decompression: &Decompression,
) -> Result<Vec<Beginning<'a>>> {
    let mut read = Vec::with_capacity(found.files.len());
    for (index, file) in found.files.iter().enumerate() {
        let limit = match index < BEGINNINGS_LONG {
            true => BEGINNING_BYTES,
            false => BEGINNING_SHORT_BYTES,
        };
        let (bytes, extent) = first_bytes(&found.store, file, decompression, limit)
            .await
            .map_err(|error| bad_file_named(error, &file.name))?;
        read.push((file, bytes, extent));
    }
    Ok(read)
}

async fn first_bytes(
    store: &Arc<dyn ObjectStore>,
    File { meta, name, .. }: &File,
    decompression: &Decompression,
    limit: usize,
) -> Result<(Vec<u8>, Extent)> {
    let store_error =
        |error: object_store::Error| crate::error::from_datafusion::object_store(&error);
    if meta.size == 0 {
        return Ok((Vec::new(), Extent::Whole));
    }
    if !decompression.is_needed() {
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
    let mut stream = decompression.stream(stream, name)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.try_next().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() >= limit {
            return Ok((bytes, Extent::Part));
        }
    }
    Ok((bytes, Extent::Whole))
}
