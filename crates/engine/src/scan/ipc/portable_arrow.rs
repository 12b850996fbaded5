//! How Arrow files are read, as values of a message.
//!
//! In: a source of Arrow files or streams, or its values. Out: the other.
//! Invariant: whether files have a footer travels; how much a message of theirs may claim is the reading machine's to say.
//! Not here: projections, which all formats have alike (scan/portable.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::physical_plan::{ArrowSource, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;

use super::format::{CheckedSource, STREAM, bytes_max};
use crate::wire::{Apart, WireReader};

pub(in crate::scan) const KIND: &str = "arrow";

/// The source taken apart, if it is one of Arrow.
pub(in crate::scan) fn apart(source: &dyn FileSource) -> Option<Apart> {
    source.downcast_ref::<CheckedSource>()?;
    let is_stream = source.file_type() == STREAM;
    Some(Apart {
        kind: KIND,
        values: vec![is_stream.into()],
    })
}

/// The source again.
pub(in crate::scan) fn whole(
    values: &mut WireReader,
    schema: &TableSchema,
    runtime: &RuntimeEnv,
) -> Result<Arc<dyn FileSource>> {
    let unchecked: Arc<dyn FileSource> = match values.flag()? {
        true => Arc::new(ArrowSource::new_stream_file_source(schema.clone())),
        false => Arc::new(ArrowSource::new_file_source(schema.clone())),
    };
    let limit_bytes = bytes_max(runtime);
    Ok(Arc::new(CheckedSource {
        unchecked,
        limit_bytes,
    }))
}
