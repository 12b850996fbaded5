//! Rows that are added up by code: the same groups as of the strings.
//!
//! In: batches of one and two columns of codes, of dictionaries that change, with values twice and, in some, NULL. Some values
//! are added up in words, others are not. Out: the groups, and how many rows went by code.
//! Not here: the loops (`states::pre_aggregation`).

use arrow::array::{
    ArrowNativeTypeOp, ArrowPrimitiveType, Float64Array, Int16Array, PrimitiveArray, UInt8Array,
};
use arrow::compute::filter;
use arrow::datatypes::{
    ArrowNativeType, Date32Type, Int8Type, Int16Type, Int64Type, TimestampSecondType, UInt8Type,
    UInt32Type, UInt64Type,
};
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

fn numbered(batch: usize, values: usize) -> impl Iterator<Item = usize> {
    (0..ROWS).map(move |row| (row * 7919 + batch) % (values + batch / 8))
}

fn strings(batch: usize, values: usize) -> ArrayRef {
    let strings = numbered(batch, values).map(|value| format!("text {value}"));
    Arc::new(StringArray::from_iter_values(strings))
}

fn booleans(batch: usize) -> ArrayRef {
    let booleans = numbered(batch, 7).map(|value| value > 3);
    Arc::new(BooleanArray::from_iter(booleans.map(Some)))
}

/// Integers from `least` on, of which later batches have others.
fn range<T: ArrowPrimitiveType>(batch: usize, values: usize, least: T::Native) -> ArrayRef
where
    T::Native: ArrowNativeTypeOp,
{
    let values = numbered(batch, values).map(|value| value + batch / 5);
    let keys = values.map(|value| least.add_wrapping(T::Native::usize_as(value)));
    Arc::new(PrimitiveArray::<T>::from_iter_values(keys))
}

/// The key columns of a query, of a batch by its number.
type Key = fn(usize) -> ArrayRef;

/// What a filter leaves of the rows.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Left {
    All,
    /// Three of four, and none of one batch, as copies.
    Copies,
    /// The same as selection.
    Selection,
}

/// The same selection where it does not begin a byte.
fn behind(selection: &BooleanArray) -> BooleanArray {
    let longer: BooleanArray = [Some(true); 3].into_iter().chain(selection).collect();
    longer.slice(3, selection.len())
}

/// Rows left of each batch but one.
const LEFT_ROWS: u64 = ROWS as u64 / 4 * 3;

impl Left {
    fn of(self, all: Batch, number: usize) -> Batch {
        let is_left = (0..ROWS).map(|row| row % 4 != 1 && number != 3);
        let is_left = BooleanArray::from_iter(is_left.map(Some));
        match self {
            Left::All => all,
            Left::Selection => all.selecting(behind(&is_left)),
            Left::Copies => {
                let copy = |column: &ArrayRef| filter(column, &is_left).expect("rows");
                let keys = all.keys.iter().map(copy).collect();
                let arguments = all.arguments.iter().flatten().map(|of| Arguments {
                    columns: of.columns.iter().map(copy).collect(),
                    filter: of
                        .filter
                        .as_ref()
                        .map(|_| vec![true; is_left.true_count()].into()),
                });
                Batch::new(is_left.true_count(), keys, arguments.collect())
            }
        }
    }
}

/// Groups in order, as text, and how many rows went by code.
fn grouped(
    keys: &[Key],
    columns: &[Column],
    is_coded: bool,
    left: Left,
    sizes: Sizes,
) -> (Vec<String>, u64) {
    let fields = keys.iter().enumerate();
    let fields =
        fields.map(|(at, key)| Field::new(format!("k{at}"), key(0).data_type().clone(), true));
    let fields: Vec<FieldRef> = fields.map(Arc::new).collect();
    let layout = KeyLayout::new(&fields, TableKind::Auto);
    let layout = layout.expect("a layout");
    let spec = Arc::new(Spec::new(layout, aggregates(columns), sizes));
    let means = Means::unlimited();
    let build = Build::new(spec.clone(), means.grant(), Some(means.spill.clone()));
    let mut build = build.expect("a build");
    for batch in 0..BATCHES {
        // Looked at row by row.
        let none = BooleanArray::from(vec![true; ROWS]);
        let filtered = (!is_coded).then_some(none);
        let key = |key: &Key| {
            let key = key(batch);
            is_coded
                .then(|| coded(&key, batch))
                .flatten()
                .unwrap_or(key)
        };
        let of = |column: &Column| Arguments {
            columns: vec![column(batch)],
            filter: filtered.clone(),
        };
        let arguments = columns.iter().flat_map(|column| vec![of(column); 3]);
        let all = Arguments {
            columns: Vec::new(),
            filter: filtered.clone(),
        };
        let arguments = std::iter::once(all).chain(arguments);
        let keys = keys.iter().map(key).collect();
        let all = Batch::new(ROWS, keys, arguments.collect());
        build.push(&left.of(all, batch)).expect("groups");
    }
    groups_of(spec, build, &means)
}

/// What a build has, in order, as text, and how many rows went by code.
fn groups_of(spec: Arc<Spec>, build: Build, means: &Means) -> (Vec<String>, u64) {
    let built = build.finish().expect("a build");
    let pre_aggregated = built.counters.pre_aggregated_rows;
    let merge = Merge::new(
        spec,
        [built].into_iter().collect(),
        Some(means.spill.clone()),
    );
    let mut worker = merge.worker(means.grant()).expect("a table");
    let mut groups = Vec::new();
    while let Some(task) = merge.next().expect("blocks") {
        let merged = worker.run(&merge, &task, &|| false).expect("groups");
        let Merged::Groups(mut finished) = merged else {
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
    (groups, pre_aggregated)
}

fn check(keys: &[Key], columns: &[Column], expected: u64) {
    let of_left = expected.saturating_sub(ROWS as u64) / ROWS as u64 * LEFT_ROWS;
    for (sizes, (copies, selection), expected) in [
        (normal(), (Left::All, Left::All), expected),
        (Sizes::tiny(), (Left::All, Left::All), expected),
        (normal(), (Left::Copies, Left::Selection), of_left),
        (Sizes::tiny(), (Left::Copies, Left::Selection), of_left),
    ] {
        let (rows, by_rows) = grouped(keys, columns, false, copies, sizes);
        let (codes, pre_aggregated) = grouped(keys, columns, true, selection, sizes);
        assert_eq!(codes, rows, "{selection:?}");
        assert_eq!(by_rows, 0);
        let (looked_up, _) = grouped(keys, columns, false, selection, sizes);
        assert_eq!(looked_up, rows, "{selection:?}");
        let is_direct = sizes.direct_slots == normal().direct_slots;
        let key = keys.iter().map(|key| key(0).slice(0, 1));
        assert!(
            !is_direct || pre_aggregated == expected,
            "{:?}: {pre_aggregated} of {expected}",
            key.collect::<Vec<_>>()
        );
    }
}

const ALL: u64 = (ROWS * BATCHES) as u64;

#[test]
fn codes_add_up_to_what_rows_do() {
    // Values too wide end it, NULLs let batches through only.
    let cases: [(&[Column], u64); 4] = [
        (&[shorts, positive, longs, decimals, floats], ALL),
        (&[], ALL),
        (&[shorts, longer], ALL / 2),
        (&[with_nulls], ALL / 3),
    ];
    let keys: [&[Key]; 11] = [
        &[|batch| strings(batch, 5)],
        &[booleans, |batch| strings(batch, 5)],
        &[
            |batch| range::<TimestampSecondType>(batch, 100, 1 << 33),
            booleans,
        ],
        &[|batch| strings(batch, 60)],
        &[|batch| strings(batch, 5), |batch| strings(batch, 6)],
        &[|batch| range::<Int8Type>(batch, 200, -100)],
        &[|batch| range::<Int64Type>(batch, 250, -1 << 40)],
        &[
            |batch| range::<UInt64Type>(batch, 7, 1 << 40),
            |batch| strings(batch, 6),
        ],
        &[
            |batch| range::<Date32Type>(batch, 31, 20_000),
            |batch| range::<UInt16Type>(batch, 2, 0),
        ],
        &[
            |batch| range::<UInt32Type>(batch, 1, 1 << 31),
            |batch| range::<Int32Type>(batch, 100, -7),
        ],
        &[
            |batch| strings(batch, 1),
            |batch| range::<Int16Type>(batch, 5, 5),
            |batch| strings(batch, 1),
        ],
    ];
    for keys in keys {
        for (columns, expected) in cases {
            check(keys, columns, expected);
        }
    }
}

/// So many keys that a byte just holds their codes and that of rows that are not selected, or just not.
#[test]
fn marks_take_one_of_256_codes() {
    let keys = |values: usize| -> ArrayRef {
        let keys = (0..ROWS).map(|row| (row * 7919 % values) as u8);
        Arc::new(UInt8Array::from_iter_values(keys))
    };
    for (values, is_coded) in [(254, true), (255, true), (256, false)] {
        let field = Arc::new(Field::new("k", DataType::UInt8, true));
        let layout = KeyLayout::new(&[field], TableKind::Auto).expect("a layout");
        let spec = Arc::new(Spec::new(layout, aggregates(&[]), normal()));
        let means = Means::unlimited();
        let mut build = Build::new(spec.clone(), means.grant(), None).expect("a build");
        let is_left = BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 3 > 0)));
        let batch = Batch::new(ROWS, vec![keys(values)], vec![Arguments::default()]);
        build
            .push(&batch.selecting(is_left.clone()))
            .expect("groups");
        let (groups, pre_aggregated) = groups_of(spec, build, &means);
        let left = filter(&keys(values), &is_left).expect("rows");
        let mut twin = BTreeMap::new();
        for key in left.as_primitive::<UInt8Type>().values() {
            *twin.entry(*key).or_insert(0) += 1;
        }
        let mut twin: Vec<_> = twin
            .iter()
            .map(|(key, rows)| format!("{key} | {rows}"))
            .collect();
        twin.sort();
        assert_eq!(groups, twin, "{values}");
        // All 256 that are left pay by themselves, where there are enough rows for them.
        assert_eq!(pre_aggregated > 0, is_coded, "{values}");
    }
}

/// What keeps all rows from being added up by code and is in none that is left.
#[test]
fn what_nobody_wants_is_in_no_ones_way() {
    let outlier = |row: usize| row % 64 == 5;
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| {
        if outlier(row) {
            1 << 40
        } else {
            row as i64 % 7
        }
    })));
    let nulls: ArrayRef = Arc::new(Int64Array::from_iter(
        (0..ROWS).map(|row| (!outlier(row)).then_some(row as i64)),
    ));
    let wide: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..ROWS).map(|row| if outlier(row) { i64::MAX } else { row as i64 }),
    ));
    let plain: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..ROWS).map(|row| row as i64 % 7),
    ));
    let is_left = BooleanArray::from_iter((0..ROWS).map(|row| Some(!outlier(row))));
    for (key, values) in [
        (&keys, &plain),
        (&plain, &nulls),
        (&plain, &wide),
        (&keys, &nulls),
    ] {
        let field = Arc::new(Field::new("k", DataType::Int64, true));
        let layout = KeyLayout::new(&[field], TableKind::Auto).expect("a layout");
        let sums = sum("sum", &DataType::Int64, &DataType::Int64).expect("native");
        let spec = Arc::new(Spec::new(layout, vec![sums], normal()));
        let means = Means::unlimited();
        let run = |selection: bool| {
            let mut build = Build::new(spec.clone(), means.grant(), None).expect("a build");
            for _ in 0..6 {
                let of = |column: &ArrayRef| match selection {
                    true => column.clone(),
                    false => filter(column, &is_left).expect("rows"),
                };
                let values = Arguments {
                    columns: vec![of(values)],
                    filter: None,
                };
                let batch = Batch::new(of(key).len(), vec![of(key)], vec![values]);
                let batch = if selection {
                    batch.selecting(is_left.clone())
                } else {
                    batch
                };
                build.push(&batch).expect("groups");
            }
            groups_of(spec.clone(), build, &means)
        };
        let (groups, pre_aggregated) = run(true);
        assert_eq!((groups, pre_aggregated), run(false));
        assert_eq!(pre_aggregated, 6 * is_left.true_count() as u64);
    }
}

#[test]
fn many_codes_are_looked_up_row_by_row() {
    check(&[|batch| strings(batch, 200)], &[shorts], 0);
    check(&[|batch| range::<Int32Type>(batch, 257, 0)], &[shorts], 0);
    check(&[|batch| range::<Int64Type>(batch, 300, -20)], &[shorts], 0);
    check(
        &[
            |batch| strings(batch, 20),
            |batch| range::<Int8Type>(batch, 9, 0),
        ],
        &[shorts],
        0,
    );
}

#[test]
fn a_group_whose_rows_are_not_for_an_aggregate_has_no_sum() {
    let key = |values: u8| -> ArrayRef {
        let keys = (0..ROWS).map(|row| (row % usize::from(values)) as i8);
        Arc::new(Int8Array::from_iter_values(keys))
    };
    let field = Arc::new(Field::new("k", DataType::Int8, true));
    let layout = KeyLayout::new(&[field], TableKind::Auto).expect("a layout");
    let sums = sum("sum", &DataType::Int64, &DataType::Int64).expect("native");
    let spec = Arc::new(Spec::new(layout, vec![sums], normal()));
    let means = Means::unlimited();
    let mut build = Build::new(spec.clone(), means.grant(), None).expect("a build");
    let values = || Arguments {
        columns: vec![Arc::new(Int64Array::from(vec![1; ROWS]))],
        filter: None,
    };
    build
        .push(&Batch::of_some(ROWS, vec![key(4)], vec![None]))
        .expect("groups");
    for _ in 0..2 {
        build
            .push(&Batch::new(ROWS, vec![key(2)], vec![values()]))
            .expect("sums");
    }
    let (groups, pre_aggregated) = groups_of(spec, build, &means);
    assert_eq!(groups, ["0 | 4096", "1 | 4096", "2 | NULL", "3 | NULL"]);
    assert_eq!(pre_aggregated, ROWS as u64);
}
