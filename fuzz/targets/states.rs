//! States of `uniq` that come from another process: merged, or an error.
#![no_main]

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray};
use arrow::datatypes::DataType;
use grouse_groupby::keys::GroupId;
use grouse_groupby::states::{Groups, uniq};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (cut, bytes) = match bytes {
        [high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => (0, bytes),
    };
    let (one, other) = bytes.split_at(cut.min(bytes.len()));
    let aggregate = uniq("uniq", &[DataType::UInt64]).expect("an aggregate");
    let mut states = aggregate.states().expect("states");
    let column: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([one, other]));
    let groups = [GroupId(0), GroupId(0)];
    if states.merge(&[column], Groups::Ids(&groups), 1).is_ok() {
        let _ = states.drain_final(1);
    }
});
