//! What a batch of an Arrow IPC file has for each column of its schema: rows and buffers.
//!
//! In: the fields of the schema, the message of a batch, the bytes of its buffers once they are decompressed. Out: whether they fit.
//! Invariant: what fits has a node and all its buffers for every column, validity and values as long as its rows. Arrow's
//! reader panics where one is missing or too short, and counts rows that no column has.
//! Not here: where buffers lie (messages.rs), types by themselves (types.rs), batches of dictionaries.

use datafusion::arrow::ipc::{
    Buffer, Field, FieldNode, MetadataVersion, RecordBatch, Type, UnionMode,
};

/// What is left of a batch for the columns to come.
struct BatchParts<'a> {
    nodes: Box<dyn Iterator<Item = &'a FieldNode> + 'a>,
    bytes: std::slice::Iter<'a, u64>,
    /// Buffers of each column of views beyond the first two.
    variadic: Box<dyn Iterator<Item = i64> + 'a>,
    version: MetadataVersion,
}

/// Whether a batch has what its columns take; `bytes` are those of its buffers, decompressed.
pub(super) fn fits<'a>(
    fields: impl Iterator<Item = Field<'a>>,
    batch: &RecordBatch<'a>,
    bytes: &'a [u64],
    version: MetadataVersion,
) -> bool {
    let buffers = batch.buffers().map_or(0, |buffers| buffers.len());
    let mut parts = BatchParts {
        nodes: Box::new(batch.nodes().into_iter().flatten()),
        bytes: bytes.iter(),
        variadic: Box::new(batch.variadicBufferCounts().into_iter().flatten()),
        version,
    };
    let mut fields = fields;
    let rows = batch.length();
    let are_there = fields.all(|field| parts.column(&field, Some(rows)).is_some());
    are_there && buffers == bytes.len() && parts.variadic.next().is_none()
}

/// The bytes of a buffer that is not compressed.
pub(super) fn plain_bytes(buffer: &Buffer) -> u64 {
    u64::try_from(buffer.length()).unwrap_or(0)
}

impl BatchParts<'_> {
    /// Takes what a field and those below it have; a column has as many rows as its batch.
    fn column(&mut self, field: &Field<'_>, rows: Option<i64>) -> Option<()> {
        let node = *self.nodes.next()?;
        if rows.is_some_and(|rows| rows != node.length()) {
            return None;
        }
        if field.dictionary().is_some() {
            self.validity(&node)?;
            return self.values(&node);
        }
        match field.type_type() {
            Type::Null => Some(()),
            Type::RunEndEncoded => self.children(field),
            Type::Union => {
                if self.version < MetadataVersion::V5 {
                    self.skip(1)?;
                }
                let mode = field.type_as_union()?.mode();
                self.skip(if mode == UnionMode::Dense { 2 } else { 1 })?;
                self.children(field)
            }
            kind => {
                self.validity(&node)?;
                let others = match kind {
                    Type::Struct_ | Type::FixedSizeList => 0,
                    Type::ListView | Type::LargeListView => 2,
                    Type::Utf8 | Type::LargeUtf8 | Type::Binary | Type::LargeBinary => 2,
                    Type::Utf8View | Type::BinaryView => usize::try_from(self.variadic.next()?)
                        .ok()?
                        .checked_add(1)?,
                    _ => 1,
                };
                match others {
                    0 => {}
                    _ if is_empty(field) => self.skip(others)?,
                    _ => {
                        self.values(&node)?;
                        self.skip(others - 1)?;
                    }
                }
                self.children(field)
            }
        }
    }

    fn children(&mut self, field: &Field<'_>) -> Option<()> {
        let mut children = field.children().into_iter().flatten();
        children.try_for_each(|child| self.column(&child, None))
    }

    /// The validity buffer, which is asked for where there are NULLs.
    fn validity(&mut self, node: &FieldNode) -> Option<()> {
        let bytes = *self.bytes.next()?;
        let rows = u64::try_from(node.length()).ok()?;
        (node.null_count() == 0 || bytes >= rows.div_ceil(8)).then_some(())
    }

    /// The buffer with something for each row, of a bit at least: rows that are only counted are not read.
    fn values(&mut self, node: &FieldNode) -> Option<()> {
        let bytes = *self.bytes.next()?;
        let rows = u64::try_from(node.length()).ok()?;
        (bytes >= rows.div_ceil(8)).then_some(())
    }

    /// So many buffers of any length.
    fn skip(&mut self, buffers: usize) -> Option<()> {
        match buffers {
            0 => Some(()),
            _ => self.bytes.nth(buffers - 1).map(|_| ()),
        }
    }
}

/// Whether values take no bytes.
fn is_empty(field: &Field<'_>) -> bool {
    let bytes = field.type_as_fixed_size_binary();
    bytes.is_some_and(|bytes| bytes.byteWidth() == 0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, ListArray, NullArray,
        RecordBatch as Rows, StringArray, StringViewArray, StructArray,
    };
    use datafusion::arrow::datatypes::{Int32Type, Int64Type};
    use datafusion::arrow::ipc::{root_as_footer, root_as_message, writer::FileWriter};

    use super::*;

    fn rows() -> Rows {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let long = "a text that lies outside of its view";
        let lists = [Some(vec![Some(1), None]), None, Some(vec![])];
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, None]));
        let coded: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        let plain: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let pair = StructArray::try_from(vec![("n", Arc::clone(&numbers)), ("f", flags)]);
        Rows::try_from_iter_with_nullable([
            ("n", Arc::clone(&numbers), true),
            (
                "v",
                Arc::new(StringViewArray::from(vec![Some(long), None, Some("b")])) as _,
                true,
            ),
            ("l", Arc::new(lists) as _, true),
            ("p", Arc::new(pair.expect("columns")) as _, true),
            ("c", Arc::new(coded) as _, true),
            ("z", Arc::new(NullArray::new(3)) as _, true),
            ("i", plain, true),
            (
                "s",
                Arc::new(StringArray::from(vec![None, Some("x"), None])) as _,
                true,
            ),
        ])
        .expect("columns")
    }

    /// Honest batches fit; those with a buffer less, one more, or a validity buffer that is too short do not.
    #[test]
    fn batches_have_what_their_columns_take() {
        let rows = rows();
        let mut file = Vec::new();
        let mut writer = FileWriter::try_new(&mut file, &rows.schema()).expect("a writer");
        writer
            .write(&rows)
            .and_then(|()| writer.finish())
            .expect("a file");
        drop(writer);
        let tail = file.len() - 10;
        let length: [u8; 4] = file[tail..tail + 4].try_into().expect("four bytes");
        let start = tail - i32::from_le_bytes(length) as usize;
        let footer = root_as_footer(&file[start..tail]).expect("a footer");
        let blocks = footer.recordBatches().expect("a batch");
        let at = blocks.get(0).offset() as usize;
        let message = root_as_message(&file[at + 8..]).expect("a message");
        let batch = message.header_as_record_batch().expect("a batch");
        let buffers = batch.buffers().expect("buffers").iter();
        let bytes: Vec<u64> = buffers.map(plain_bytes).collect();
        let fields = || {
            footer
                .schema()
                .expect("a schema")
                .fields()
                .expect("fields")
                .iter()
        };
        let fits = |bytes: &[u64]| fits(fields(), &batch, bytes, message.version());
        assert!(fits(&bytes));
        assert!(!fits(&bytes[..bytes.len() - 1]));
        assert!(!fits(&[bytes.as_slice(), &[8]].concat()));
        let nulls = bytes.len() - 3;
        // Validity and values.
        for at in [0, 1, nulls] {
            let mut short = bytes.clone();
            short[at] = 0;
            assert!(!fits(&short), "buffer {at}");
        }
        let fewer = fields().chain(fields());
        assert!(!super::fits(fewer, &batch, &bytes, message.version()));
    }
}
