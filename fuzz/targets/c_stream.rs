//! Text of Arrow arrays that come through the C interface, which nobody has looked at: rows or an error.
#![no_main]

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, ListArray, RecordBatch, make_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ffi::{FFI_ArrowSchema, from_ffi, to_ffi};
use grouse::{Text, admit, admitted_schema};
use grouse_fuzz::closed;
use libfuzzer_sys::fuzz_target;

/// Values of up to 15 bytes, whose lengths stand before them; of 15 it is NULL.
fn values(bytes: &[u8]) -> Vec<Option<&[u8]>> {
    let (mut rest, mut values) = (bytes, Vec::new());
    while let Some((length, behind)) = rest.split_first() {
        let length = usize::from(length & 15);
        let (value, behind) = behind.split_at(length.min(behind.len()));
        values.push((length < 15).then_some(value));
        rest = behind;
    }
    values
}

/// The bytes as if somebody had said that they are text.
fn as_text(values: &[Option<&[u8]>]) -> ArrayRef {
    let bytes = BinaryArray::from(values.to_vec());
    let (array, _) = to_ffi(&bytes.to_data()).expect("an array of ours");
    let text = FFI_ArrowSchema::try_from(&DataType::Utf8).expect("a type of Arrow's");
    // SAFETY: Utf8 has the buffers of Binary. That its bytes are no text is what the door has to find before anybody reads them.
    let data = unsafe { from_ffi(array, &text) };
    make_array(data.expect("buffers of ours"))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    let text = as_text(&values(bytes));
    let (skip, rows) = (usize::from(kind >> 4), text.len());
    let text = text.slice(skip.min(rows), rows - skip.min(rows));
    let column: ArrayRef = match kind & 1 {
        0 => text,
        _ => {
            let item = Arc::new(Field::new_list_field(DataType::Utf8, true));
            let lengths = OffsetBuffer::from_lengths(std::iter::repeat_n(1, text.len()));
            let valid = NullBuffer::from_iter((0..text.len()).map(|row| row % 3 > 0));
            Arc::new(ListArray::new(item, lengths, text, Some(valid)))
        }
    };
    let field = Field::new("s", column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(schema.clone(), vec![column]).expect("one column");
    let schema = admitted_schema(&schema);
    if let Ok(batch) = admit(&batch, &schema, Text::Unknown) {
        closed().query_batch(
            batch,
            "SELECT s, count(*), min(upper(s::VARCHAR)) FROM t GROUP BY s",
        );
    }
});
