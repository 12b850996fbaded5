//! The columns in which partial states leave a process.
//!
//! In: aggregates of a type each. Out: the types of their columns, which are written down here; states that come back.
//! Invariant: whoever changes a line here gives the aggregate another `state_version`: processes of two builds may meet.

use arrow::array::{Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::Schema;
use arrow_ipc::writer::StreamWriter;
use grouse_groupby::states::{End, NullRows, Spread, StateFormat, first_last, flat_states};
use grouse_groupby::states::{median, partial, variance};

use super::*;

/// An aggregate, the version of its states and the types of their columns.
type Known = (Arc<dyn Aggregate>, u16, Vec<DataType>);

fn known() -> Vec<Known> {
    use DataType::{Boolean, Decimal128, Float64, Int64, LargeBinary, UInt64, Utf8View};
    let words = Field::new_list_field(Int64, false);
    let any = (End::First, NullRows::Respected);
    let one = |made: Option<Arc<dyn Aggregate>>, types: Vec<DataType>| {
        (made.expect("known types"), 1, types)
    };
    vec![
        one(count("count(*)"), vec![Int64]),
        one(sum("sum", &Int64, &Int64), vec![Int64, Int64]),
        one(sum("sum", &UInt64, &UInt64), vec![UInt64, Int64]),
        one(sum("sum", &Float64, &Float64), vec![Float64]),
        one(
            sum("sum", &Decimal128(10, 2), &Decimal128(20, 2)),
            vec![Decimal128(38, 0), Int64],
        ),
        one(
            sum("sum", &DataType::Decimal64(10, 2), &Decimal128(20, 2)),
            vec![Decimal128(38, 0), Int64],
        ),
        one(avg("avg", &Float64, &Float64), vec![Float64, Int64]),
        one(avg("avg", &Int64, &Float64), vec![Int64, Int64, Int64]),
        one(
            min_max("min", Extreme::Min, &Float64, &Float64),
            vec![Float64],
        ),
        one(
            min_max("max", Extreme::Max, &Utf8View, &Utf8View),
            vec![LargeBinary],
        ),
        one(
            variance("var", Spread::VarianceSample, &Float64),
            vec![Float64; 3],
        ),
        one(uniq("uniq", &[Utf8View]), vec![LargeBinary]),
        one(
            median("median", &Float64),
            vec![DataType::LargeList(Arc::new(words))],
        ),
        one(
            first_last("first_value", any, &[], &Int64, &Int64),
            vec![Int64, Boolean],
        ),
        one(
            arg_extreme("max_by", Extreme::Max, &Utf8View, &Int64, &Utf8View),
            vec![LargeBinary, Int64],
        ),
    ]
}

#[test]
fn states_have_the_columns_that_are_written_down() {
    for (aggregate, version, types) in known() {
        let format = StateFormat::of(aggregate.as_ref()).unwrap();
        let found: Vec<_> = format.fields().iter().map(|f| f.data_type()).collect();
        assert_eq!(found, types.iter().collect::<Vec<_>>(), "{aggregate:?}");
        assert_eq!(format.version(), version, "{aggregate:?}");
    }
}

/// Argument columns of an aggregate's types, four rows of two groups.
fn arguments(aggregate: &Arc<dyn Aggregate>) -> Vec<ArrayRef> {
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(5), Some(4)]));
    let strings: ArrayRef = Arc::new(StringViewArray::from_iter_values([
        "a",
        "one that lies in a buffer of its own",
        "",
        "b",
    ]));
    match (aggregate.name(), aggregate.result_type()) {
        ("count(*)", _) => Vec::new(),
        ("max_by", _) => vec![strings, longs],
        ("uniq", _) | (_, DataType::Utf8View) => vec![strings],
        (_, DataType::Int64) => vec![longs],
        ("min" | "var" | "median", _) => {
            vec![Arc::new(Float64Array::from(vec![0.5, -1.0, 2.0, 7.5]))]
        }
        (_, other) => vec![cast(&longs, &other).unwrap()],
    }
}

#[test]
fn states_that_come_as_columns_are_merged() {
    // These have arguments of another type than their result's.
    let plain = known().into_iter().filter(|(aggregate, ..)| {
        let narrow = format!("{aggregate:?}").contains("Decimal128(20");
        !narrow && !(aggregate.name() == "avg")
    });
    for (aggregate, ..) in plain {
        let columns = arguments(&aggregate);
        let groups = [0, 1, 1, 0].map(GroupId);
        let mut whole = aggregate.states().unwrap();
        whole
            .update(&columns, None, Groups::Ids(&groups), 2)
            .unwrap();
        let expected = whole.drain_final(2).unwrap();
        let format = StateFormat::of(aggregate.as_ref()).unwrap();
        let mut merged = aggregate.states().unwrap();
        for (from, to) in [(0, 2), (2, 4)] {
            let rows: Vec<_> = columns.iter().map(|c| c.slice(from, to - from)).collect();
            let mut part = partial(&aggregate).unwrap().states().unwrap();
            part.update(&rows, None, Groups::Ids(&groups[from..to]), 2)
                .unwrap();
            let states = part.drain_final(2).unwrap();
            let columns = flat_states(&states).unwrap();
            let types = columns.iter().map(|column| column.data_type());
            assert!(types.eq(format.fields().iter().map(|f| f.data_type())));
            let held = format.held(&columns).unwrap();
            let both = [GroupId(0), GroupId(1)];
            merged.merge(&held, Groups::Ids(&both), 2).unwrap();
        }
        let merged = merged.drain_final(2).unwrap();
        assert_eq!(&merged, &expected, "{aggregate:?}");
    }
}

/// Bytes of a column as it is written to whoever reads it.
fn written(column: &ArrayRef) -> usize {
    let field = Field::new("states", column.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(column)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    bytes.len()
}

#[test]
fn batches_of_states_take_no_more_than_all_of_them_at_once() {
    const GROUPS: usize = 8000;
    const GROUPS_OF_A_BATCH: usize = 1000;
    let rows = 0..4 * GROUPS;
    let floats = rows.clone().map(|row| row as f64);
    let floats: ArrayRef = Arc::new(Float64Array::from_iter_values(floats));
    let strings = rows
        .clone()
        .map(|row| format!("a text too long for its view, {row}"));
    let strings: ArrayRef = Arc::new(StringViewArray::from_iter_values(strings));
    let groups: Vec<_> = rows.map(|row| GroupId((row % GROUPS) as u32)).collect();
    let text = DataType::Utf8View;
    for (aggregate, column) in [
        (uniq("uniq", std::slice::from_ref(&text)), &strings),
        (min_max("max", Extreme::Max, &text, &text), &strings),
        (median("median", &DataType::Float64), &floats),
    ] {
        let aggregate = aggregate.expect("known types");
        let mut states = partial(&aggregate).unwrap().states().unwrap();
        let columns = std::slice::from_ref(column);
        states
            .update(columns, None, Groups::Ids(&groups), GROUPS)
            .unwrap();
        let states = states.drain_final(GROUPS).unwrap();
        let bytes =
            |states: ArrayRef| -> usize { flat_states(&states).unwrap().iter().map(written).sum() };
        let batches = (0..GROUPS).step_by(GROUPS_OF_A_BATCH);
        let parts: usize = batches
            .map(|from| bytes(states.slice(from, GROUPS_OF_A_BATCH)))
            .sum();
        let whole = bytes(states);
        assert!(parts * 5 <= whole * 6, "{aggregate:?}: {parts} of {whole}");
    }
}
