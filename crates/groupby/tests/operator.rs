//! The whole operator against a `BTreeMap`: random keys of every type, every table kind, tiny and
//! normal sizes, one to four workers, rows and partial states mixed in the merge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::AsArray;
use arrow::array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, LargeStringArray, ListArray,
    StringArray, StringViewArray, UInt16Array, UInt32Array, UInt64Array, new_null_array,
};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::{cast, concat, max, min, take};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int32Type, UInt16Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use grouse_groupby::keys::{KeyBounds, KeyLayout, KeyValues};
use grouse_groupby::runtime::budget::Unlimited;
use grouse_groupby::runtime::{Budget, Grant};
use grouse_groupby::states::{Aggregate, count, sum};
use grouse_groupby::{
    Arguments, Batch, Build, Built, Disk, Error, Finished, Merge, MergeInput, Merged, ScratchFile,
    Sizes, Spec, Spill, TableKind,
};
use proptest::prelude::*;

#[path = "operator/by_address.rs"]
mod by_address;
#[path = "operator/faults.rs"]
mod faults;
#[path = "operator/first_groups.rs"]
mod first_groups;
#[path = "operator/hot_keys.rs"]
mod hot_keys;
#[path = "operator/interleavings.rs"]
mod interleavings;
#[path = "operator/pre_aggregation.rs"]
mod pre_aggregation;
#[path = "operator/shared_blocks.rs"]
mod shared_blocks;

/// A column of `rows` values with about `distinct` different ones; `kind` picks the type.
fn column(kind: usize, rows: usize, distinct: u64, nulls: bool, seed: u64) -> ArrayRef {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let values: Vec<Option<u64>> = (0..rows)
        .map(|_| (!nulls || next() % 5 != 0).then(|| next() % distinct.max(1)))
        .collect();
    let string = |value: u64| match value % 3 {
        0 => format!("{value}"),
        1 => format!("twelve bytes{value}"),
        _ => format!("a longer string that shares its beginning {value} and its end"),
    };
    let strings = || values.iter().map(|value| value.map(string));
    match kind {
        0 => Arc::new(Int64Array::from_iter(
            values
                .iter()
                .map(|v| v.map(|v| (v as i64 - 3) * 1_000_000_007)),
        )),
        1 => Arc::new(Int8Array::from_iter(
            values.iter().map(|v| v.map(|v| (v % 200) as u8 as i8)),
        )),
        2 => Arc::new(UInt16Array::from_iter(
            values.iter().map(|v| v.map(|v| v as u16)),
        )),
        3 => Arc::new(UInt64Array::from_iter(
            values.iter().map(|v| v.map(|v| u64::MAX - v)),
        )),
        4 => Arc::new(BooleanArray::from_iter(
            values.iter().map(|v| v.map(|v| v % 2 == 0)),
        )),
        5 => Arc::new(Float64Array::from_iter(values.iter().map(|v| {
            v.map(|v| match v % 5 {
                0 => f64::NAN,
                1 => -0.0,
                2 => 0.0,
                3 => -f64::NAN,
                _ => v as f64 / 4.0,
            })
        }))),
        6 => Arc::new(Date32Array::from_iter(
            values.iter().map(|v| v.map(|v| v as i32 - 50)),
        )),
        7 => Arc::new(Decimal128Array::from_iter(
            values.iter().map(|v| v.map(|v| i128::from(v) << 70)),
        )),
        8 => Arc::new(StringArray::from_iter(strings())),
        9 => Arc::new(StringViewArray::from_iter(strings())),
        10 => Arc::new(LargeStringArray::from_iter(strings())),
        11 => Arc::new(BinaryArray::from_iter(
            strings().map(|t| t.map(String::into_bytes)),
        )),
        12 => {
            let values = values.iter().map(|v| v.map(u64::to_le_bytes));
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 8)
                    .expect("8 bytes each"),
            )
        }
        _ => Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
            values.iter().map(|v| {
                v.map(|v| {
                    (0..v % 4)
                        .map(|at| Some((v + at) as i32))
                        .collect::<Vec<_>>()
                })
            }),
        )),
    }
}

const KINDS: usize = 14;

const DICTIONARY_BATCHES: usize = 9;

/// Strings as codes of a dictionary that has each value twice, and NULL, which some dictionaries' NULL rows
/// have for their value; keys of 2, 4 and 8 bytes. `None` of other columns.
fn coded(strings: &ArrayRef, number: usize) -> Option<ArrayRef> {
    if !strings.data_type().is_string() && strings.data_type() != &DataType::Binary {
        return None;
    }
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut firsts = Vec::new();
    let all = shown(strings);
    for (row, string) in all
        .iter()
        .enumerate()
        .filter(|(row, _)| strings.is_valid(*row))
    {
        places.entry(string.clone()).or_insert_with(|| {
            firsts.push(Some(row as u32));
            firsts.len() - 1
        });
    }
    let values = firsts.len();
    let nowhere: ArrayRef = new_null_array(strings.data_type(), 1);
    let strings_and_null = concat(&[strings, &nowhere]).expect("one type");
    firsts.extend_from_within(..);
    firsts.push(Some(strings.len() as u32));
    let dictionary = take(&strings_and_null, &UInt32Array::from(firsts), None).expect("rows");
    let keys = Int64Array::from_iter(all.iter().enumerate().map(|(row, string)| {
        let again = row % 2 * values;
        match (strings.is_valid(row), number % 2) {
            (true, _) => Some((places[string] + again) as i64),
            (false, 0) => None,
            (false, _) => Some(2 * values as i64),
        }
    }));
    Some(match number % 3 {
        0 => Arc::new(DictionaryArray::new(keys, dictionary)),
        1 => {
            let keys = cast(&keys, &DataType::Int32).expect("few");
            Arc::new(DictionaryArray::new(
                keys.as_primitive::<Int32Type>().clone(),
                dictionary,
            ))
        }
        _ => {
            let keys = cast(&keys, &DataType::UInt16).expect("few");
            Arc::new(DictionaryArray::new(
                keys.as_primitive::<UInt16Type>().clone(),
                dictionary,
            ))
        }
    })
}

fn shown(column: &ArrayRef) -> Vec<String> {
    let format = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::new().with_null("NULL"))
        .expect("a format");
    // -0.0 is 0.0 for a GROUP BY.
    (0..column.len())
        .map(|row| format.value(row).to_string())
        .map(|v| if v == "-0.0" { "0.0".into() } else { v })
        .collect()
}

type Rows = BTreeMap<Vec<String>, (i64, Option<i64>)>;

/// The specification.
fn twin(keys: &[ArrayRef], values: &Int64Array, filter: &BooleanArray) -> Rows {
    let shown: Vec<_> = keys.iter().map(shown).collect();
    let mut groups = Rows::new();
    for row in 0..values.len() {
        let key = shown.iter().map(|column| column[row].clone()).collect();
        let (count, sum) = groups.entry(key).or_insert((0, None));
        *count += 1;
        if filter.is_valid(row) && filter.value(row) && values.is_valid(row) {
            *sum = Some(sum.unwrap_or(0) + values.value(row));
        }
    }
    groups
}

struct Case {
    keys: Vec<ArrayRef>,
    /// Strings come as codes of dictionaries, each of which lives for some batches, where the table takes them.
    coded: bool,
    known: Vec<KeyValues>,
    values: Int64Array,
    filter: BooleanArray,
}

struct How {
    table: TableKind,
    sizes: Sizes,
    workers: usize,
    batch_rows: usize,
}

struct Nameless;

impl Disk for Nameless {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        Ok((Box::new(tempfile::tempfile()?), "a file".to_string()))
    }
}

/// What one execution may use.
struct Means {
    budget: Arc<dyn Budget>,
    spill: Arc<Spill>,
}

impl Means {
    fn unlimited() -> Means {
        Means {
            budget: Arc::new(Unlimited),
            spill: Arc::new(Spill::new(Nameless, true)),
        }
    }

    fn grant(&self) -> Grant {
        Grant::new(Arc::clone(&self.budget))
    }
}

fn spec(case: &Case, how: &How) -> Result<Arc<Spec>, Error> {
    let fields: Vec<FieldRef> = case
        .keys
        .iter()
        .enumerate()
        .map(|(at, key)| Arc::new(Field::new(format!("k{at}"), key.data_type().clone(), true)))
        .collect();
    let aggregates = vec![
        count("count(*)").expect("native"),
        sum("sum(v)", &DataType::Int64, &DataType::Int64).expect("native"),
    ];
    let keys = KeyLayout::knowing(&fields, &case.known, how.table)?;
    Ok(Arc::new(Spec::new(keys, aggregates, how.sizes)))
}

/// The `rows` rows of a case from `start` on, whose keys are these.
fn batch(case: &Case, keys: Vec<ArrayRef>, start: usize, rows: usize) -> Batch {
    let all = Arguments::default();
    let some = Arguments {
        columns: vec![Arc::new(case.values.slice(start, rows))],
        filter: Some(case.filter.slice(start, rows)),
    };
    Batch::new(rows, keys, vec![all, some])
}

fn build(case: &Case, how: &How, means: &Means) -> Result<(Arc<Spec>, Vec<Built>), Error> {
    let spec = spec(case, how)?;
    let is_coded = case.coded && spec.keys.takes_codes();
    let mut windows: Vec<ArrayRef> = Vec::new();
    let mut builds = (0..how.workers)
        .map(|_| Build::new(spec.clone(), means.grant(), Some(means.spill.clone())))
        .collect::<Result<Vec<_>, _>>()?;
    for (at, start) in (0..case.values.len()).step_by(how.batch_rows).enumerate() {
        let rows = how.batch_rows.min(case.values.len() - start);
        let window_rows = DICTIONARY_BATCHES * how.batch_rows;
        if start % window_rows == 0 {
            let window = |key: &ArrayRef| {
                let strings = key.slice(start, window_rows.min(key.len() - start));
                let coded = is_coded.then(|| coded(&strings, at / DICTIONARY_BATCHES));
                coded.flatten().unwrap_or(strings)
            };
            windows = case.keys.iter().map(window).collect();
        }
        let key = |window: &ArrayRef| window.slice(start % window_rows, rows);
        let keys = windows.iter().map(key).collect();
        let workers = builds.len();
        builds[at % workers].push(&batch(case, keys, start, rows))?;
    }
    let built = builds.into_iter().map(Build::finish);
    Ok((spec, built.collect::<Result<_, _>>()?))
}

fn run(case: &Case, how: &How, means: &Means) -> Result<Rows, Error> {
    merged(build(case, how, means)?, means).map(|(groups, _)| groups)
}

/// The groups, and how many tasks memory had no room for.
fn merged((spec, built): (Arc<Spec>, Vec<Built>), means: &Means) -> Result<(Rows, u64), Error> {
    let merge = Merge::new(spec, built.into_iter().collect(), Some(means.spill.clone()));
    let mut worker = merge.worker(means.grant())?;
    let mut groups = Rows::new();
    while let Some(task) = merge.next()? {
        collect(worker.run(&merge, &task, &|| false)?, &mut groups)?;
    }
    Ok((groups, worker.counters().repartitioned))
}

/// The groups of a task, none of which may be there.
fn collect(merged: Merged, groups: &mut Rows) -> Result<(), Error> {
    let mut finished = match merged {
        Merged::Groups(finished) => finished,
        Merged::Repartitioned | Merged::Piece => return Ok(()),
        Merged::Cancelled => panic!("nobody cancels"),
    };
    while let Some(emitted) = finished.next(7)? {
        let shown: Vec<_> = emitted.columns.iter().map(shown).collect();
        for row in 0..emitted.rows {
            let mut cells: Vec<String> = shown.iter().map(|column| column[row].clone()).collect();
            let sum = cells.pop().expect("a sum").parse().ok();
            let count = cells.pop().expect("a count").parse().expect("a number");
            let before = groups.insert(cells, (count, sum));
            assert!(before.is_none(), "a group came out twice");
        }
    }
    Ok(())
}

fn ours(case: &Case, how: &How) -> Rows {
    run(case, how, &Means::unlimited()).expect("no fault")
}

fn check(case: &Case, how: &How) {
    assert_eq!(
        ours(case, how),
        twin(&case.keys, &case.values, &case.filter)
    );
}

fn case(kinds: &[usize], rows: usize, distinct: u64, nulls: bool, seed: u64) -> Case {
    let key =
        |(at, &kind): (usize, &usize)| column(kind, rows, distinct, nulls, seed + 97 * at as u64);
    let values = column(0, rows, 1000, nulls, seed + 7);
    let filter = column(4, rows, 2, nulls, seed + 13);
    Case {
        coded: false,
        known: vec![KeyValues::Any; kinds.len()],
        keys: kinds.iter().enumerate().map(key).collect(),
        values: values
            .as_any()
            .downcast_ref::<Int64Array>()
            .expect("integers")
            .clone(),
        filter: filter
            .as_any()
            .downcast_ref::<BooleanArray>()
            .expect("booleans")
            .clone(),
    }
}

/// The true bounds of integers; of other types wrong ones, which nobody may use.
fn bounds_of(column: &ArrayRef) -> KeyValues {
    let wrong = KeyBounds {
        least: 0,
        greatest: 0,
    };
    let integers = match column.data_type() {
        DataType::Date32 => cast(column, &DataType::Int32).expect("days"),
        kind if kind.is_integer() || matches!(kind, DataType::Decimal128(..)) => column.clone(),
        _ => return KeyValues::Within(wrong),
    };
    let wide = cast(&integers, &DataType::Decimal128(38, 10)).expect("38 digits");
    let wide = wide.as_primitive::<Decimal128Type>();
    let of = |value: i128| match column.data_type() {
        DataType::Decimal128(..) => value,
        _ => value / 10_i128.pow(10),
    };
    match (min(wide), max(wide)) {
        (Some(least), Some(greatest)) => KeyValues::Within(KeyBounds {
            least: of(least),
            greatest: of(greatest),
        }),
        _ => KeyValues::Any,
    }
}

/// Two keys of which the second has been promised to be at most 9.
fn promised(second: Int64Array) -> Result<Rows, Error> {
    let rows = second.len();
    let first: ArrayRef = Arc::new(Int64Array::from_iter_values(
        (0..rows as i64).map(|row| row % 3),
    ));
    let bounds = |greatest| KeyValues::Within(KeyBounds { least: 0, greatest });
    let case = Case {
        keys: vec![first, Arc::new(second)],
        known: vec![bounds(2), bounds(9)],
        ..case(&[], rows, 1, true, 5)
    };
    let how = How {
        table: TableKind::Packed,
        sizes: normal(),
        workers: 1,
        batch_rows: 100,
    };
    let found = run(&case, &how, &Means::unlimited())?;
    assert_eq!(found, twin(&case.keys, &case.values, &case.filter));
    Ok(found)
}

#[test]
fn a_value_beyond_its_bounds_is_an_error_that_names_it() {
    let values =
        |last: i64| Int64Array::from_iter_values((0..50).map(|row| row % 10).chain([last]));
    assert_eq!(promised(values(9)).expect("within").len(), 30);
    for beyond in [16, -1, i64::MIN, i64::MAX] {
        let error = promised(values(beyond)).expect_err("beyond").to_string();
        assert!(
            error.contains(&format!("k1 has the value {beyond},")),
            "{error}"
        );
    }
}

#[test]
fn what_lies_under_a_null_has_no_bounds() {
    let values = ScalarBuffer::from(vec![3, i64::MAX, 4, i64::MIN, 3, 77]);
    let valid = NullBuffer::from(vec![true, false, true, false, true, false]);
    let second = Int64Array::new(values, Some(valid));
    assert_eq!(promised(second).expect("within").len(), 6);
}

fn normal() -> Sizes {
    Sizes::for_machine(2, 1 << 20)
}

/// Any table that takes keys of all kinds, or falls back to one that does.
fn any_table() -> impl Strategy<Value = TableKind> {
    prop_oneof![
        Just(TableKind::Auto),
        Just(TableKind::Direct),
        Just(TableKind::Packed),
        Just(TableKind::Bytes),
        Just(TableKind::Row)
    ]
}

fn any_sizes() -> impl Strategy<Value = Sizes> {
    prop_oneof![Just(normal()), Just(Sizes::tiny()), Just(Sizes::spilling())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn equals_the_twin(
        kinds in proptest::collection::vec(0..KINDS, 1..4),
        rows in 0usize..1500,
        distinct in prop_oneof![Just(1u64), Just(3), Just(40), Just(1_000_000)],
        nulls in any::<bool>(),
        seed in any::<u32>(),
        table in any_table(),
        sizes in any_sizes(),
        workers in 1usize..5,
        batch_rows in prop_oneof![Just(1usize), Just(50), Just(333)],
        bounded in any::<bool>(),
    ) {
        let mut case = case(&kinds, rows, distinct, nulls, u64::from(seed) + 1);
        if bounded {
            case.known = case.keys.iter().map(bounds_of).collect();
        }
        check(&case, &How { table, sizes, workers, batch_rows });
    }

    #[test]
    fn codes_equal_the_twin(
        kinds in prop_oneof![
            Just(vec![8]), Just(vec![9]), Just(vec![11]), Just(vec![9, 10]), Just(vec![8, 2]), Just(vec![6, 9, 4]),
            Just(vec![9, 9]), Just(vec![9, 5]), Just(vec![9, 0, 8]), Just(vec![9, 9, 9, 0])
        ],
        rows in 0usize..1500,
        distinct in prop_oneof![Just(1u64), Just(3), Just(12), Just(40), Just(1_000_000)],
        nulls in any::<bool>(),
        seed in any::<u32>(),
        table in prop_oneof![Just(TableKind::Auto), Just(TableKind::Direct), Just(TableKind::Packed)],
        sizes in any_sizes(),
        workers in 1usize..3,
        batch_rows in prop_oneof![Just(1usize), Just(50), Just(333)],
        coded in prop_oneof![3 => Just(true), 1 => Just(false)],
        are_few in any::<bool>(),
    ) {
        let case = case(&kinds, rows, distinct, nulls, u64::from(seed) + 1);
        let known = if are_few { KeyValues::Few } else { KeyValues::Any };
        check(&Case { coded, known: vec![known; kinds.len()], ..case }, &How { table, sizes, workers, batch_rows });
    }
}

#[test]
fn without_rows_keys_give_no_group_and_no_keys_give_one() {
    let how = How {
        table: TableKind::Auto,
        sizes: normal(),
        workers: 2,
        batch_rows: 10,
    };
    assert!(ours(&case(&[0], 0, 1, false, 1), &how).is_empty());
    let one = ours(&case(&[], 0, 1, false, 1), &how);
    assert_eq!(one, Rows::from([(vec![], (0, None))]));
}

#[test]
fn without_keys_all_rows_are_one_group() {
    let how = How {
        table: TableKind::Auto,
        sizes: normal(),
        workers: 3,
        batch_rows: 100,
    };
    let case = case(&[], 1000, 1, true, 5);
    let expected: Rows = twin(&[], &case.values, &case.filter);
    assert_eq!(ours(&case, &how), expected);
}

/// A range that widens batch by batch, below and above, and then outgrows the array.
#[test]
fn a_direct_table_follows_a_moving_range() {
    let keys: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter((0..200).map(|v| Some(100 + v % 7)))),
        Arc::new(Int64Array::from_iter(
            (0..200).map(|v| (v % 11 != 0).then_some(90 - v % 30)),
        )),
        Arc::new(Int64Array::from_iter((0..200).map(|v| Some(v * 1_000_003)))),
        Arc::new(Int64Array::from_iter((0..200).map(|v| Some(i64::MIN + v)))),
    ];
    let refs: Vec<&dyn Array> = keys.iter().map(|key| key.as_ref()).collect();
    let key = concat(&refs).expect("one column");
    let rows = key.len();
    let filler = case(&[], rows, 1, false, 3);
    let case = Case {
        keys: vec![key],
        known: vec![KeyValues::Any],
        ..filler
    };
    for sizes in [normal(), Sizes::tiny(), Sizes::spilling()] {
        check(
            &case,
            &How {
                table: TableKind::Direct,
                sizes,
                workers: 2,
                batch_rows: 40,
            },
        );
    }
}

/// Groups whose numbers are their addresses, until a key leaves a gap or comes before all others; in 1, 4 and 8 bytes.
#[test]
fn keys_in_order_need_no_lookup_until_they_are_not() {
    let orders: [fn(i64) -> i64; 4] = [
        |row| row % 60,
        |row| if row < 300 { row % 50 } else { 60 + row % 20 },
        |row| if row < 300 { row % 50 } else { -1 - row % 50 },
        |row| if row % 120 == 119 { 100 } else { row % 40 },
    ];
    for (order, data_type) in orders.into_iter().zip([
        DataType::Int8,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
    ]) {
        let key = Int64Array::from_iter_values((0..600).map(order));
        let key = cast(&key, &data_type).expect("they fit");
        let filler = case(&[], key.len(), 1, false, 3);
        let case = Case {
            keys: vec![key],
            known: vec![KeyValues::Any],
            ..filler
        };
        for sizes in [normal(), Sizes::tiny(), Sizes::spilling()] {
            let how = How {
                table: TableKind::Direct,
                sizes,
                workers: 2,
                batch_rows: 60,
            };
            check(&case, &how);
        }
    }
}

/// The address of NULL is below the first value's, where a value before that one would be.
#[test]
fn a_value_before_the_first_is_not_null() {
    let with_nulls = (0..120).map(|row| (row % 3 > 0).then_some(row % 3));
    let key = Int64Array::from_iter(with_nulls.chain((0..60).map(|row| Some(row % 3))));
    let second: ArrayRef = Arc::new(Int64Array::from_iter_values((0..180).map(|row| row % 2)));
    let key: ArrayRef = Arc::new(key);
    for keys in [vec![Arc::clone(&key)], vec![key, second]] {
        let case = Case {
            known: vec![KeyValues::Any; keys.len()],
            keys,
            ..case(&[], 180, 1, false, 3)
        };
        let how = How {
            table: TableKind::Direct,
            sizes: normal(),
            workers: 1,
            batch_rows: 60,
        };
        check(&case, &how);
    }
}

/// Keys of a range that no cache holds go by at first, and address an array after so many rows that it is worth it.
/// A range that is too large never does.
#[test]
fn a_large_array_is_used_after_many_rows() {
    const ROWS: i64 = 40_000;
    let sizes = Sizes::tiny();
    for (range, many_nulls, is_used) in [(150, false, true), (150, true, true), (300, false, false)]
    {
        let key = |row: i64| (!many_nulls || row % 10 != 3).then_some(row % range - 20);
        let key: ArrayRef = Arc::new(Int64Array::from_iter((0..ROWS).map(key)));
        let filler = case(&[], key.len(), 1, false, 3);
        let case = Case {
            keys: vec![key],
            known: vec![KeyValues::Any],
            ..filler
        };
        let how = How {
            table: TableKind::Auto,
            sizes,
            workers: 2,
            batch_rows: 40,
        };
        check(&case, &how);
        let means = Means::unlimited();
        let built = build(&case, &how, &means).expect("memory");
        let bypassed: u64 = built.1.iter().map(|part| part.counters.bypassed_rows).sum();
        assert_eq!(bypassed < ROWS as u64 / 4, is_used, "{range}: {bypassed}");
    }
}

/// All that a worker holds at its end is on disk, and partitions that are too large for the merge are cut.
#[test]
fn past_its_bound_a_worker_writes_everything_and_the_merge_cuts_partitions() {
    for kinds in [vec![0], vec![9], vec![0, 9, 5], vec![13]] {
        let case = case(&kinds, 30_000, 1_000_000, true, 17);
        let how = How {
            table: TableKind::Auto,
            sizes: Sizes::spilling(),
            workers: 2,
            batch_rows: 100,
        };
        let means = Means::unlimited();
        let (spec, built) = build(&case, &how, &means).expect("no fault");
        for part in &built {
            assert!(part.blocks().all(|stored| stored.is_on_disk()));
            assert!(part.counters.spilled_bytes > 10_000 && part.counters.spills > 1);
        }
        let (groups, parted) = merged((spec, built), &means).expect("no fault");
        assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
        assert!(parted > 8, "{kinds:?}: {parted}");
    }
}

/// Gives memory until it is told not to.
struct Switched(AtomicBool);

impl Budget for Switched {
    fn grow(&self, _bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match self.0.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("no more".into()),
        }
    }

    fn insist(&self, _bytes: usize) {}

    fn shrink(&self, _bytes: usize) {}

    fn free(&self) -> usize {
        usize::MAX
    }
}

/// What comes of a merge that is refused memory: the groups, and how many tasks had no room.
fn merged_without_memory(case: &Case, how: &How) -> (Rows, u64) {
    let budget = Arc::new(Switched(AtomicBool::new(true)));
    let means = Means {
        budget: budget.clone(),
        ..Means::unlimited()
    };
    let built = build(case, how, &means).expect("memory");
    budget.0.store(false, Ordering::Relaxed);
    merged(built, &means).expect("parts that fit")
}

/// All tuples are in memory and one task, whose table is refused: it goes to disk in parts.
#[test]
fn a_merge_in_memory_parts_what_is_refused() {
    let case = case(&[0], 300_000, 10_000_000, false, 23);
    let how = How {
        table: TableKind::Auto,
        sizes: Sizes {
            task_tuples: 1 << 20,
            ..normal()
        },
        workers: 2,
        batch_rows: 8192,
    };
    let (groups, parted) = merged_without_memory(&case, &how);
    assert!(parted > 0);
    assert_eq!(groups, twin(&case.keys, &case.values, &case.filter));
}

/// Keys of every type at once, twice: rows of more than 96 bytes and more than 16 columns.
#[test]
fn keys_of_many_columns_equal_the_twin() {
    let kinds: Vec<usize> = (0..KINDS).chain(0..KINDS).collect();
    for (distinct, nulls) in [(1, false), (2, true), (40, false), (1_000_000, true)] {
        let case = case(&kinds, 700, distinct, nulls, 11);
        for sizes in [normal(), Sizes::tiny(), Sizes::spilling()] {
            let how = How {
                table: TableKind::Auto,
                sizes,
                workers: 2,
                batch_rows: 99,
            };
            check(&case, &how);
        }
    }
}

/// Any columns in any order, keys and results, whatever the encoding of the keys.
#[test]
fn only_the_columns_that_are_asked_for_come_out() {
    for (kinds, table) in [
        (vec![0, 9, 5], TableKind::Packed),
        (vec![0, 9, 5], TableKind::Row),
        (vec![9], TableKind::Bytes),
    ] {
        let case = case(&kinds, 500, 40, true, 3);
        let results = kinds.len();
        for emitted in [vec![results, 0], vec![], vec![kinds.len() - 1, results]] {
            let (rows, types) = narrowed(&case, table, &emitted);
            assert_eq!(rows, twin(&case.keys, &case.values, &case.filter).len());
            let expected = |&at: &usize| match case.keys.get(at) {
                Some(key) => key.data_type().clone(),
                None => DataType::Int64,
            };
            let expected: Vec<DataType> = emitted.iter().map(expected).collect();
            assert!(types.iter().all(|types| *types == expected), "{types:?}");
        }
    }
}

/// Rows in all, and the types of each batch.
fn narrowed(case: &Case, table: TableKind, emitted: &[usize]) -> (usize, Vec<Vec<DataType>>) {
    let field = |key: &ArrayRef| Arc::new(Field::new("k", key.data_type().clone(), true));
    let fields: Vec<FieldRef> = case.keys.iter().map(field).collect();
    let aggregates = vec![count("count(*)").expect("native")];
    let keys = KeyLayout::new(&fields, table).expect("a layout");
    let spec = Spec::new(keys, aggregates, normal());
    let spec = Arc::new(spec.emitting(emitted.to_vec()));
    let grant = || Grant::new(Arc::new(Unlimited));
    let mut build = Build::new(spec.clone(), grant(), None).expect("a build");
    let batch = Batch::new(
        case.values.len(),
        case.keys.clone(),
        vec![Arguments::default()],
    );
    build.push(&batch).expect("a push");
    let built = build.finish().expect("a finish");
    let merge = Merge::new(spec, [built].into_iter().collect(), None);
    let mut worker = merge.worker(grant()).expect("a worker");
    let (mut rows, mut types) = (0, Vec::new());
    while let Some(task) = merge.next().expect("blocks") {
        let finished = worker.run(&merge, &task, &|| false).expect("a merge");
        let mut finished = finished.groups().expect("all in memory");
        while let Some(batch) = finished.next(100).expect("a batch") {
            rows += batch.rows;
            let each = batch.columns.iter();
            types.push(each.map(|column| column.data_type().clone()).collect());
        }
    }
    (rows, types)
}

/// Values that lie under a NULL must not tell two NULL keys apart.
#[test]
fn whatever_lies_under_a_null_is_one_key() {
    let nulls = Some(arrow::buffer::NullBuffer::from(vec![false; 64]));
    let numbers = Int64Array::new((0..64).collect::<Vec<i64>>().into(), nulls.clone());
    let strings = StringArray::from_iter_values((0..64).map(|v| format!("hidden {v}")));
    let strings = StringArray::new(strings.offsets().clone(), strings.values().clone(), nulls);
    let filler = case(&[], 64, 1, false, 3);
    for keys in [
        vec![Arc::new(numbers.clone()) as ArrayRef],
        vec![Arc::new(strings.clone()) as ArrayRef],
        vec![
            Arc::new(numbers.clone()) as ArrayRef,
            Arc::new(numbers.clone()) as ArrayRef,
        ],
        vec![Arc::new(numbers) as ArrayRef, Arc::new(strings) as ArrayRef],
    ] {
        let case = Case {
            coded: false,
            known: vec![KeyValues::Any; keys.len()],
            keys,
            values: filler.values.clone(),
            filter: filler.filter.clone(),
        };
        for table in [TableKind::Packed, TableKind::Row, TableKind::Bytes] {
            let how = How {
                table,
                sizes: normal(),
                workers: 1,
                batch_rows: 10,
            };
            assert_eq!(ours(&case, &how).len(), 1);
            check(&case, &how);
        }
    }
}
