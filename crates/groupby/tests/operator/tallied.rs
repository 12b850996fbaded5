//! Rows that are added up by code: the same groups as of the texts.
//!
//! In: batches of one and two columns of codes, of dictionaries that change, with values twice and, in some, NULL; values that
//! are added up in words and such that are not. Out: the groups, and how many rows went by code.
//! Not here: the loops (`states::tally`).

use arrow::array::{Float64Array, Int16Array};
use grouse_groupby::states::{Aggregate, avg, count, sum};

use super::*;

const ROWS: usize = 4096;
const BATCHES: usize = 12;

/// One aggregate's columns: of a batch by its number.
type Column = fn(usize) -> ArrayRef;

fn numbers(batch: usize) -> impl Iterator<Item = i64> {
    (0..ROWS).map(move |row| ((row * 7 + batch * 13) % 1009) as i64 - 500)
}

fn shorts(batch: usize) -> ArrayRef {
    Arc::new(Int16Array::from_iter_values(
        numbers(batch).map(|v| v as i16),
    ))
}

fn positive(batch: usize) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(
        numbers(batch).map(|v| u32::MAX - v.unsigned_abs() as u32),
    ))
}

fn longs(batch: usize) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(
        numbers(batch).map(|v| v << 30),
    ))
}

/// In later batches one is too wide to be added up in words.
fn longer(batch: usize) -> ArrayRef {
    let first = if batch < BATCHES / 2 { 7 } else { 1 << 50 };
    let values = std::iter::once(first).chain(numbers(batch).skip(1));
    Arc::new(Int64Array::from_iter_values(values))
}

fn with_nulls(batch: usize) -> ArrayRef {
    let values = numbers(batch).map(|v| (batch < BATCHES / 3 || v % 3 != 0).then_some(v));
    Arc::new(Int64Array::from_iter(values))
}

fn decimals(batch: usize) -> ArrayRef {
    let values = Decimal128Array::from_iter_values(numbers(batch).map(i128::from));
    Arc::new(values.with_precision_and_scale(15, 2).expect("a type"))
}

fn floats(batch: usize) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(
        numbers(batch).map(|v| v as f64),
    ))
}

/// Columns and the types of their sums and means.
fn aggregates(columns: &[Column]) -> Vec<Arc<dyn Aggregate>> {
    let mut all = vec![count("count(*)").expect("native")];
    for column in columns {
        let of = column(0).data_type().clone();
        let (sums, means) = match of {
            DataType::UInt32 => (DataType::UInt64, DataType::Float64),
            DataType::Decimal128(..) => (DataType::Decimal128(25, 2), DataType::Decimal128(19, 6)),
            DataType::Float64 => (DataType::Float64, DataType::Float64),
            _ => (DataType::Int64, DataType::Float64),
        };
        all.push(count("count").expect("native"));
        all.push(sum("sum", &of, &sums).expect("native"));
        all.push(avg("avg", &of, &means).expect("native"));
    }
    all
}

fn texts(batch: usize, values: usize) -> ArrayRef {
    let values = values + batch / 8;
    let text = |row: usize| format!("text {}", (row * 7919 + batch) % values);
    Arc::new(StringArray::from_iter_values((0..ROWS).map(text)))
}

/// Groups in order, as text, and how many rows went by code.
fn grouped(keys: &[usize], columns: &[Column], is_coded: bool, sizes: Sizes) -> (Vec<String>, u64) {
    let fields = (0..keys.len()).map(|at| Field::new(format!("k{at}"), DataType::Utf8, true));
    let fields: Vec<FieldRef> = fields.map(Arc::new).collect();
    let layout = KeyLayout::bounded(&fields, &vec![None; keys.len()], TableKind::Auto);
    let layout = layout.expect("a layout");
    let spec = Arc::new(Spec::new(layout, aggregates(columns), sizes));
    let means = Means::unlimited();
    let build = Build::new(spec.clone(), means.grant(), Some(means.spill.clone()));
    let mut build = build.expect("a build");
    for batch in 0..BATCHES {
        let key = |values: &usize| {
            let texts = texts(batch, *values);
            match is_coded {
                true => coded(&texts, batch).expect("texts"),
                false => texts,
            }
        };
        let of = |column: &Column| Arguments {
            columns: vec![column(batch)],
            filter: None,
        };
        let arguments = columns.iter().flat_map(|column| vec![of(column); 3]);
        let arguments = std::iter::once(Arguments::default()).chain(arguments);
        let keys = keys.iter().map(key).collect();
        build
            .push(&Batch::new(ROWS, keys, arguments.collect()))
            .expect("groups");
    }
    let built = build.finish().expect("a build");
    let tallied = built.counters.tallied_rows;
    let merge = Merge::new(
        spec,
        [built].into_iter().collect(),
        Some(means.spill.clone()),
    );
    let mut worker = merge.worker(means.grant()).expect("a table");
    let mut groups = Vec::new();
    while let Some(task) = merge.next() {
        let Merged::Groups(mut finished) = worker.run(&merge, &task, &|| false).expect("groups")
        else {
            panic!("memory for all");
        };
        while let Some(emitted) = finished.next(100).expect("groups") {
            let shown: Vec<_> = emitted.columns.iter().map(shown).collect();
            let row = |row: usize| {
                shown
                    .iter()
                    .map(|column| column[row].as_str())
                    .collect::<Vec<_>>()
            };
            groups.extend((0..emitted.rows).map(|at| row(at).join(" | ")));
        }
    }
    groups.sort();
    (groups, tallied)
}

#[test]
fn codes_add_up_to_what_texts_do() {
    let all = (ROWS * BATCHES) as u64;
    let narrow: &[Column] = &[shorts, positive, longs, decimals, floats];
    // Values too wide end it, NULLs let batches through only.
    let cases: [(&[Column], u64); 4] = [
        (narrow, all),
        (&[], all),
        (&[shorts, longer], all / 2),
        (&[with_nulls], all / 3),
    ];
    for keys in [&[5][..], &[60], &[5, 6]] {
        for (columns, expected) in cases {
            for sizes in [normal(), Sizes::tiny()] {
                let (texts, by_rows) = grouped(keys, columns, false, sizes);
                let (codes, tallied) = grouped(keys, columns, true, sizes);
                assert_eq!(codes, texts, "{keys:?}");
                assert_eq!(by_rows, 0);
                let is_direct = sizes.direct_slots == normal().direct_slots;
                assert!(
                    !is_direct || tallied == expected,
                    "{keys:?}: {tallied} of {expected}"
                );
            }
        }
    }
}

#[test]
fn many_codes_are_looked_up_row_by_row() {
    let (texts, _) = grouped(&[200], &[shorts], false, normal());
    let (codes, tallied) = grouped(&[200], &[shorts], true, normal());
    assert_eq!((codes, tallied), (texts, 0));
}
