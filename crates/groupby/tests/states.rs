//! Every native aggregate against a `BTreeMap` twin.
//!
//! In: random columns, groups, filters and ways to spread rows over instances. Out: equal results.
//! Invariant: the twin keeps one plain value list per group and knows nothing of batches, states
//! or merges.
//! Not here: the tables that number groups, DataFusion.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::array::{StructArray, new_empty_array, types};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit, i256};
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use grouse_groupby::Error;
use grouse_groupby::keys::GroupId;
use grouse_groupby::keys::row::canonical_values;
use grouse_groupby::states::{Aggregate, Extreme, GroupStates, Groups};
use grouse_groupby::states::{arg_extreme, avg, count, min_max, sum, uniq};
use proptest::prelude::*;

#[path = "states/codes.rs"]
mod codes;
#[path = "states/first_last.rs"]
mod first_last;
#[path = "states/formats.rs"]
mod formats;
#[path = "states/listed.rs"]
mod listed;
#[path = "states/moments.rs"]
mod moments;
#[path = "states/quantiles.rs"]
mod quantiles;
#[path = "states/top_rows.rs"]
mod top_rows;

/// One batch: argument columns, filter and the group of each row, numbered in order of appearance.
#[derive(Debug, Clone)]
struct Input {
    columns: Vec<ArrayRef>,
    filter: Option<BooleanArray>,
    groups: Vec<u32>,
}

impl Input {
    fn slice(&self, from: usize, to: usize) -> Self {
        Self {
            columns: self
                .columns
                .iter()
                .map(|c| c.slice(from, to - from))
                .collect(),
            filter: self.filter.as_ref().map(|f| f.slice(from, to - from)),
            groups: self.groups[from..to].to_vec(),
        }
    }

    fn in_one_group(&self) -> Self {
        Self {
            groups: vec![0; self.groups.len()],
            ..self.clone()
        }
    }

    /// Rows that count, by group; groups without such rows are there, too.
    fn live_rows(&self) -> BTreeMap<u32, Vec<usize>> {
        let mut rows = BTreeMap::<u32, Vec<usize>>::new();
        for (row, group) in self.groups.iter().enumerate() {
            let passes = self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            let rows = rows.entry(*group).or_default();
            if passes && self.columns.iter().all(|column| column.is_valid(row)) {
                rows.push(row);
            }
        }
        rows
    }
}

/// How rows reach the final states.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Path {
    /// One instance sees all batches.
    Direct,
    /// Each batch is aggregated by itself, one instance merges.
    Partial,
    /// Both in turn on one instance.
    Mixed,
}

/// An instance with its own numbering of groups, as a key table would give it.
struct Table {
    states: Box<dyn GroupStates>,
    ids: BTreeMap<u32, u32>,
    keys: Vec<u32>,
}

impl Table {
    fn new(aggregate: &dyn Aggregate) -> Self {
        Self {
            states: aggregate.states().unwrap(),
            ids: BTreeMap::new(),
            keys: vec![],
        }
    }

    fn assign(&mut self, groups: &[u32]) -> Vec<GroupId> {
        let mut ids = vec![];
        for group in groups {
            let next = self.ids.len() as u32;
            let id = *self.ids.entry(*group).or_insert(next);
            if id == next {
                self.keys.push(*group);
            }
            ids.push(GroupId(id));
        }
        ids
    }

    fn update(&mut self, input: &Input) {
        let ids = self.assign(&input.groups);
        let (groups, total) = (Groups::Ids(&ids), self.keys.len());
        self.states
            .update(&input.columns, input.filter.as_ref(), groups, total)
            .unwrap();
    }

    fn merge(&mut self, keys: &[u32], partial: &[ArrayRef]) {
        let ids = self.assign(keys);
        self.states
            .merge(partial, Groups::Ids(&ids), self.keys.len())
            .unwrap();
    }

    fn drain_partial(&mut self) -> (Vec<u32>, Vec<ArrayRef>) {
        self.ids.clear();
        let keys = std::mem::take(&mut self.keys);
        let partial = self.states.drain_partial(keys.len()).unwrap();
        (keys, partial)
    }

    fn drain_final(&mut self) -> Result<(Vec<u32>, ArrayRef), Error> {
        self.ids.clear();
        let keys = std::mem::take(&mut self.keys);
        let result = self.states.drain_final(keys.len())?;
        assert_eq!(result.len(), keys.len());
        Ok((keys, result))
    }
}

/// Runs batches of `batch_rows` rows down a path.
fn run(
    aggregate: &dyn Aggregate,
    input: &Input,
    batch_rows: usize,
    path: Path,
) -> Result<(Vec<u32>, ArrayRef), Error> {
    let mut total = Table::new(aggregate);
    let mut hot = Table::new(aggregate);
    let mut partial_types: Option<Vec<DataType>> = None;
    for (at, from) in (0..input.groups.len()).step_by(batch_rows).enumerate() {
        let batch = input.slice(from, (from + batch_rows).min(input.groups.len()));
        if path == Path::Direct || (path == Path::Mixed && at % 2 == 0) {
            total.update(&batch);
        } else {
            hot.update(&batch);
            let (keys, partial) = hot.drain_partial();
            let types: Vec<_> = partial.iter().map(|c| c.data_type().clone()).collect();
            assert_eq!(*partial_types.get_or_insert_with(|| types.clone()), types);
            // As the merge sees them: a slice that starts somewhere in a block.
            let shifted: Vec<_> = partial
                .iter()
                .map(|c| {
                    concat(&[c.slice(0, 1).as_ref(), c.as_ref()])
                        .unwrap()
                        .slice(1, c.len())
                })
                .collect();
            total.merge(&keys, &shifted);
        }
    }
    let result = total.drain_final();
    // Groups that are gone leave nothing behind, and the instance works again.
    assert_eq!(total.states.drain_final(0).unwrap().len(), 0);
    result
}

/// `expected(rows)` is the twin: the result as text for the live rows of a group, `None` for NULL,
/// or `Err` where a group's result does not fit.
fn check(
    aggregate: &dyn Aggregate,
    input: &Input,
    batch_rows: usize,
    expected: impl Fn(&[usize]) -> Result<Option<String>, ()>,
) {
    let twin: Result<BTreeMap<_, _>, ()> = input
        .live_rows()
        .into_iter()
        .map(|(group, rows)| Ok((group, expected(&rows)?)))
        .collect();
    for path in [Path::Direct, Path::Partial, Path::Mixed] {
        let result = run(aggregate, input, batch_rows, path);
        let Ok(twin) = &twin else {
            assert!(
                matches!(result, Err(Error::Overflow { .. })),
                "{aggregate:?}: {result:?}"
            );
            continue;
        };
        let (keys, column) = result.unwrap();
        assert_eq!(column.data_type(), &aggregate.result_type());
        let found: BTreeMap<_, _> = keys.into_iter().zip(strings(&column)).collect();
        assert_eq!(&found, twin, "{aggregate:?}, {path:?}");
    }
    check_one_group(aggregate, input, batch_rows, &expected);
    check_groups_without_rows(aggregate, input, &expected);
}

/// Groups that states were never told of, at the end, are empty ones.
fn check_groups_without_rows(
    aggregate: &dyn Aggregate,
    input: &Input,
    expected: impl Fn(&[usize]) -> Result<Option<String>, ()>,
) {
    let one = input.in_one_group();
    let rows = vec![GroupId(0); one.groups.len()];
    let groups: Vec<_> = (0..4).map(GroupId).collect();
    let told = || {
        let mut states = aggregate.states().unwrap();
        let filter = one.filter.as_ref();
        let updated = states.update(&one.columns, filter, Groups::Ids(&rows), 1);
        updated.map(|()| states)
    };
    let merged = |partial: Vec<ArrayRef>| {
        let mut states = aggregate.states().unwrap();
        let merged = states.merge(&partial, Groups::Ids(&groups), 4);
        merged.and_then(|()| states.drain_final(4))
    };
    let by_states = told().and_then(|mut states| states.drain_final(4));
    let by_partials = told().and_then(|mut states| states.drain_partial(4));
    let empty = expected(&[]).unwrap();
    for column in [by_states, by_partials.and_then(merged)] {
        match column {
            Ok(column) => assert_eq!(
                strings(&column)[1..],
                [&empty; 3].map(Clone::clone),
                "{aggregate:?}"
            ),
            Err(error) => assert!(
                matches!(error, Error::Overflow { .. }),
                "{aggregate:?}: {error}"
            ),
        }
    }
}

/// `sum / count` as decimal digits, which say too whether more follow, read as the nearest double.
fn long_division(sum: i128, count: i128) -> f64 {
    const DIGITS: u32 = 25;
    let (whole, rest) = (sum.abs() / count, sum.abs() % count);
    let scaled = rest * 10i128.pow(DIGITS);
    let (digits, follows) = (scaled / count, i32::from(scaled % count != 0));
    let sign = if sum < 0 { "-" } else { "" };
    let string = format!(
        "{sign}{whole}.{digits:0>width$}{follows}",
        width = DIGITS as usize
    );
    string.parse().unwrap()
}

/// What `column` makes of a word in a column of integers.
fn integer(word: i64, data_type: &DataType) -> i128 {
    match data_type {
        DataType::Int8 => (word as i8).into(),
        DataType::Int16 => (word as i16).into(),
        DataType::Int32 => (word as i32).into(),
        DataType::UInt8 => (word as u8).into(),
        DataType::UInt16 => (word as u16).into(),
        DataType::UInt32 => (word as u32).into(),
        DataType::UInt64 => (word as u64).into(),
        _ => word.into(),
    }
}

const INTEGERS: [DataType; 8] = [
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
];

/// Without GROUP BY: all rows in one group, batches one by one.
fn check_one_group(
    aggregate: &dyn Aggregate,
    input: &Input,
    batch_rows: usize,
    expected: impl Fn(&[usize]) -> Result<Option<String>, ()>,
) {
    let one = input.in_one_group();
    let rows = one.live_rows().remove(&0).unwrap_or_default();
    for result in run_one_group(aggregate, &one, batch_rows) {
        match (result, expected(&rows)) {
            (Ok(column), Ok(string)) => assert_eq!(strings(&column), [string], "{aggregate:?}"),
            (Err(Error::Overflow { .. }), Err(())) => {}
            (found, expected) => panic!("{aggregate:?}: {found:?} instead of {expected:?}"),
        }
    }
}

/// The result for all rows, from states that saw the rows and from states that saw those of each batch.
fn run_one_group(
    aggregate: &dyn Aggregate,
    input: &Input,
    batch_rows: usize,
) -> [Result<ArrayRef, Error>; 2] {
    let mut states = aggregate.states().unwrap();
    let mut merged = aggregate.states().unwrap();
    for from in (0..input.groups.len()).step_by(batch_rows) {
        let batch = input.slice(from, (from + batch_rows).min(input.groups.len()));
        let groups = Groups::One(batch.groups.len());
        states
            .update(&batch.columns, batch.filter.as_ref(), groups, 1)
            .unwrap();
        let mut hot = aggregate.states().unwrap();
        hot.update(&batch.columns, batch.filter.as_ref(), groups, 1)
            .unwrap();
        merged
            .merge(&hot.drain_partial(1).unwrap(), Groups::One(1), 1)
            .unwrap();
    }
    [states, merged].map(|mut states| states.drain_final(1))
}

/// A column as text, NaN with its sign and -0.0 told apart.
fn strings(column: &ArrayRef) -> Vec<Option<String>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).unwrap();
    let string = |row| match column.data_type() {
        DataType::Float64 => {
            let value = column.as_primitive::<types::Float64Type>().value(row);
            format!("{value} {}", value.is_sign_negative())
        }
        _ => formatter.value(row).to_string(),
    };
    (0..column.len())
        .map(|row| column.is_valid(row).then(|| string(row)))
        .collect()
}

/// Integers of which many are 0, extreme, or equal.
fn words() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => -5i64..5,
        1 => any::<i64>(),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(i64::MAX - 1), Just(0)],
    ]
}

/// Rows (value, second value, group, filter), at least some runs of equal groups.
type Row = (Option<i64>, Option<i64>, u32, Option<bool>);

fn table() -> impl Strategy<Value = (Vec<Row>, bool, usize)> {
    let nulls_percent = prop_oneof![Just(0u8), Just(10), Just(90)];
    let groups = prop_oneof![Just(1u32), Just(5), Just(1_000)];
    (nulls_percent, groups, any::<bool>(), 1usize..150).prop_flat_map(
        |(nulls_percent, groups, filtered, batch_rows)| {
            let value = move || {
                (words(), 0u8..100)
                    .prop_map(move |(word, at)| (at >= nulls_percent).then_some(word))
            };
            let keep = proptest::option::weighted(0.9, any::<bool>());
            let row = (value(), value(), 0..groups, keep);
            (
                proptest::collection::vec(row, 0..400),
                Just(filtered),
                Just(batch_rows),
            )
        },
    )
}

fn input(rows: &[Row], filtered: bool, columns: Vec<ArrayRef>) -> Input {
    Input {
        columns,
        filter: filtered.then(|| rows.iter().map(|row| row.3).collect()),
        groups: rows.iter().map(|row| row.2).collect(),
    }
}

/// A primitive column from 64-bit words.
fn primitive<T: ArrowPrimitiveType>(
    words: impl Iterator<Item = Option<i64>>,
    data_type: &DataType,
    of: impl Fn(i64) -> T::Native,
) -> ArrayRef {
    let array: PrimitiveArray<T> = words.map(|word| word.map(&of)).collect();
    Arc::new(array.with_data_type(data_type.clone()))
}

/// A column of any type that min, max, min_by and max_by know. Words that are small become values
/// that often tie; strings get long common prefixes.
fn column(words: &[Option<i64>], data_type: &DataType) -> ArrayRef {
    use types::*;
    let all = words.iter().copied();
    let long = |word: i64| match word.rem_euclid(4) {
        0 => word.to_string(),
        1 => format!("{:\0<3}", word % 3),
        2 => format!("a long common prefix {word}"),
        _ => String::new(),
    };
    match data_type {
        DataType::Float64 => primitive::<Float64Type>(all, data_type, |word| match word {
            -5 => f64::NAN,
            -4 => -0.0,
            -3 => f64::NEG_INFINITY,
            4 => f64::INFINITY,
            3 => -f64::NAN,
            _ => word as f64 / 2.0,
        }),
        DataType::Float32 => primitive::<Float32Type>(all, data_type, |word| word as f32),
        DataType::Float16 => cast(&column(words, &DataType::Float32), data_type).unwrap(),
        DataType::Boolean => Arc::new(
            all.map(|word| word.map(|word| word > 0))
                .collect::<BooleanArray>(),
        ),
        DataType::Int8 => primitive::<Int8Type>(all, data_type, |word| word as i8),
        DataType::Int16 => primitive::<Int16Type>(all, data_type, |word| word as i16),
        DataType::Int32 => primitive::<Int32Type>(all, data_type, |word| word as i32),
        DataType::UInt8 => primitive::<UInt8Type>(all, data_type, |word| word as u8),
        DataType::UInt16 => primitive::<UInt16Type>(all, data_type, |word| word as u16),
        DataType::UInt32 => primitive::<UInt32Type>(all, data_type, |word| word as u32),
        DataType::UInt64 => primitive::<UInt64Type>(all, data_type, |word| word as u64),
        DataType::Date32 => primitive::<Date32Type>(all, data_type, |word| word as i32 / 1_000),
        DataType::Decimal32(..) => primitive::<Decimal32Type>(all, data_type, |w| w as i32),
        DataType::Decimal64(..) => primitive::<Decimal64Type>(all, data_type, |word| word),
        DataType::Decimal128(..) => {
            primitive::<Decimal128Type>(all, data_type, |word| i128::from(word) << 60)
        }
        DataType::Decimal256(..) => {
            let of = |word: i64| i256::from_i128(i128::from(word) << 60);
            primitive::<Decimal256Type>(all, data_type, of)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let of = |w: i64| IntervalMonthDayNano::new((w % 3) as i32, w as i32 % 100, w % 5);
            primitive::<IntervalMonthDayNanoType>(all, data_type, of)
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let of = |word: i64| IntervalDayTime::new((word % 3) as i32, (word % 5) as i32);
            primitive::<IntervalDayTimeType>(all, data_type, of)
        }
        DataType::FixedSizeBinary(_) => {
            let strings = all.map(|word| word.map(|word| word.to_be_bytes()));
            let array =
                arrow::array::FixedSizeBinaryArray::try_from_sparse_iter_with_size(strings, 8);
            Arc::new(array.unwrap())
        }
        DataType::Utf8 => Arc::new(
            all.map(|word| word.map(long))
                .collect::<arrow::array::StringArray>(),
        ),
        DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => cast(&column(words, &DataType::Utf8), data_type).unwrap(),
        _ => {
            let int64 = primitive::<Int64Type>(all, &DataType::Int64, |word| word);
            cast(&int64, data_type).unwrap()
        }
    }
}

fn ordered_types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Int64,
        Int8,
        UInt32,
        UInt64,
        Float64,
        Float32,
        Float16,
        Boolean,
        Date32,
        Decimal32(9, 2),
        Decimal64(18, 2),
        Decimal128(38, 3),
        Decimal256(76, 5),
        Timestamp(TimeUnit::Microsecond, Some("+01:00".into())),
        Timestamp(TimeUnit::Second, None),
        Time64(TimeUnit::Nanosecond),
        Duration(TimeUnit::Millisecond),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(8),
    ]
}

/// Floats as `min` and `max` order them.
fn one_nan(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value }
}

/// Floats as `min_by` and `max_by` order them: one NaN, one zero.
fn tied(column: &ArrayRef) -> ArrayRef {
    canonical_values(column).unwrap()
}

/// Structs of the values, NULL where they are.
fn nested(column: &ArrayRef) -> ArrayRef {
    let field = Field::new("of", column.data_type().clone(), true);
    let columns = vec![Arc::clone(column)];
    let nulls = column.logical_nulls();
    Arc::new(StructArray::new(vec![field].into(), columns, nulls))
}

fn mapped(column: &ArrayRef, map: impl Fn(f64) -> f64) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => {
            let column = column.as_primitive::<types::Float64Type>();
            Arc::new(column.unary::<_, types::Float64Type>(map))
        }
        _ => Arc::clone(column),
    }
}

/// The row that is first in the order of `column`; ties go to the earlier row.
fn best_row(column: &ArrayRef, extreme: Extreme, rows: &[usize]) -> Option<usize> {
    let field = SortField::new(column.data_type().clone());
    let sortable = RowConverter::new(vec![field]).unwrap();
    let keys = sortable
        .convert_columns(std::slice::from_ref(column))
        .unwrap();
    let beats = match extreme {
        Extreme::Min => Ordering::Less,
        Extreme::Max => Ordering::Greater,
    };
    rows.iter().copied().reduce(|best, row| {
        if keys.row(row).cmp(&keys.row(best)) == beats {
            row
        } else {
            best
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn counts((rows, filtered, batch_rows) in table()) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        let others: Vec<_> = rows.iter().map(|row| row.1).collect();
        let columns = [
            vec![],
            vec![column(&words, &DataType::Int64)],
            vec![column(&words, &DataType::Utf8), column(&others, &DataType::Float64)],
        ];
        for columns in columns {
            let input = input(&rows, filtered, columns);
            let aggregate = count("count").unwrap();
            check(&*aggregate, &input, batch_rows, |rows| Ok(Some(rows.len().to_string())));
        }
    }

    #[test]
    fn integer_sums((rows, filtered, batch_rows) in table()) {
        for data_type in INTEGERS.into_iter().chain([DataType::Duration(TimeUnit::Second)]) {
            let words: Vec<_> = rows.iter().map(|row| row.0).collect();
            let unsigned = data_type.is_unsigned_integer();
            let result_type = match &data_type {
                DataType::Duration(_) => data_type.clone(),
                _ if unsigned => DataType::UInt64,
                _ => DataType::Int64,
            };
            let values = if data_type == DataType::Duration(TimeUnit::Second) {
                cast(&column(&words, &DataType::Int64), &data_type).unwrap()
            } else {
                column(&words, &data_type)
            };
            let input = input(&rows, filtered, vec![values]);
            let aggregate = sum("sum(x)", &data_type, &result_type).unwrap();
            check(&*aggregate, &input, batch_rows, |rows| {
                let sum: i128 = rows.iter().map(|row| integer(words[*row].unwrap(), &data_type)).sum();
                let fits = if unsigned { u64::try_from(sum).is_ok() } else { i64::try_from(sum).is_ok() };
                if !fits {
                    return Err(());
                }
                let string = match &data_type {
                    DataType::Duration(_) => {
                        let one = primitive::<types::DurationSecondType>(
                            [Some(sum as i64)].into_iter(), &data_type, |word| word,
                        );
                        strings(&one).remove(0).unwrap()
                    }
                    _ => sum.to_string(),
                };
                Ok((!rows.is_empty()).then_some(string))
            });
        }
    }

    #[test]
    fn decimal_sums_and_averages((rows, filtered, batch_rows) in table(), shift in 0u32..64) {
        // (type, result of sum, result of avg, bits a value may take)
        let cases = [
            (DataType::Decimal32(9, 2), DataType::Decimal32(9, 2), DataType::Decimal32(9, 4)),
            (DataType::Decimal64(12, 2), DataType::Decimal64(18, 2), DataType::Decimal64(16, 6)),
            (DataType::Decimal64(12, 2), DataType::Decimal128(22, 2), DataType::Decimal128(16, 6)),
            (DataType::Decimal128(38, 3), DataType::Decimal128(38, 3), DataType::Decimal128(38, 7)),
            (DataType::Decimal256(76, 5), DataType::Decimal256(76, 5), DataType::Decimal256(76, 9)),
        ];
        let small: Vec<_> = rows.iter().map(|row| row.0.map(|word| word >> shift)).collect();
        for (data_type, sum_type, avg_type) in cases {
            let values = column(&small, &data_type);
            let wide = cast(&values, &DataType::Decimal256(76, scale(&data_type))).unwrap();
            let wide = wide.as_primitive::<types::Decimal256Type>().clone();
            let total = |rows: &[usize]| {
                rows.iter().fold(i256::ZERO, |sum, row| sum + wide.value(*row))
            };
            let input = input(&rows, filtered, vec![values]);
            let aggregate = sum("sum(x)", &data_type, &sum_type).unwrap();
            check(&*aggregate, &input, batch_rows, |rows| {
                decimal_string(total(rows), &sum_type, rows)
            });
            let aggregate = avg("avg(x)", &data_type, &avg_type).unwrap();
            check(&*aggregate, &input, batch_rows, |rows| {
                let digits = scale(&avg_type) - scale(&data_type);
                let factor = i256::from_i128(10i128.pow(digits as u32));
                let count = i256::from_i128(rows.len().max(1) as i128);
                let sum = total(rows) * factor;
                let (mean, rest) = (sum / count, (sum % count).wrapping_abs());
                // Halves away from zero.
                let mean = if rest >= count - rest { mean + sum.signum() } else { mean };
                decimal_string(mean, &avg_type, rows)
            });
        }
    }

    #[test]
    fn float_sums_and_averages((rows, filtered, batch_rows) in table()) {
        // Small integers: exact in any order, so that the twin needs no tolerance.
        let words: Vec<_> = rows.iter().map(|row| row.0.map(|word| word % 1_000)).collect();
        let values = primitive::<types::Float64Type>(
            words.iter().copied(), &DataType::Float64, |word| word as f64,
        );
        let input = input(&rows, filtered, vec![values]);
        let total = |rows: &[usize]| rows.iter().map(|row| words[*row].unwrap() as f64).sum::<f64>() + 0.0;
        let string = |value: f64| format!("{value} {}", value.is_sign_negative());
        let aggregate = sum("sum(x)", &DataType::Float64, &DataType::Float64).unwrap();
        check(&*aggregate, &input, batch_rows, |rows| {
            Ok((!rows.is_empty()).then(|| string(total(rows))))
        });
        let aggregate = avg("avg(x)", &DataType::Float64, &DataType::Float64).unwrap();
        check(&*aggregate, &input, batch_rows, |rows| {
            Ok((!rows.is_empty()).then(|| string(total(rows) / rows.len() as f64)))
        });
    }

    #[test]
    fn integer_averages((rows, filtered, batch_rows) in table(), shift in 0u32..64) {
        let words: Vec<_> = rows.iter().map(|row| row.0.map(|word| word >> shift)).collect();
        for data_type in INTEGERS {
            let value = |row: usize| integer(words[row].unwrap(), &data_type);
            let values = column(&words, &data_type);
            let input = input(&rows, filtered, vec![values]);
            let aggregate = avg("avg(x)", &data_type, &DataType::Float64).unwrap();
            check(&*aggregate, &input, batch_rows, |rows| {
                let sum = rows.iter().map(|row| value(*row)).sum();
                let mean = (!rows.is_empty()).then(|| long_division(sum, rows.len() as i128));
                Ok(mean.map(|mean| format!("{mean} {}", mean.is_sign_negative())))
            });
        }
    }

    #[test]
    fn duration_averages((rows, filtered, batch_rows) in table()) {
        let data_type = DataType::Duration(TimeUnit::Nanosecond);
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        let values = cast(&column(&words, &DataType::Int64), &data_type).unwrap();
        let input = input(&rows, filtered, vec![values]);
        let aggregate = avg("avg(x)", &data_type, &data_type).unwrap();
        check(&*aggregate, &input, batch_rows, |rows| {
            let sum: i128 = rows.iter().map(|row| i128::from(words[*row].unwrap())).sum();
            let count = rows.len().max(1) as i128;
            // Halves away from zero.
            let mean = sum / count + if 2 * (sum % count).abs() >= count { sum.signum() } else { 0 };
            let one = primitive::<types::DurationNanosecondType>(
                [Some(mean as i64)].into_iter(), &data_type, |word| word,
            );
            Ok((!rows.is_empty()).then(|| strings(&one).remove(0).unwrap()))
        });
    }
}

proptest! {
    // Each case runs all types.
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn extremes((rows, filtered, batch_rows) in table()) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        for data_type in ordered_types() {
            let values = column(&words, &data_type);
            let ordered = mapped(&values, one_nan);
            let shown = strings(&ordered);
            let input = input(&rows, filtered, vec![Arc::clone(&values)]);
            for extreme in [Extreme::Min, Extreme::Max] {
                let aggregate = min_max("extreme(x)", extreme, &data_type, &data_type).unwrap();
                check(&*aggregate, &input, batch_rows, |rows| {
                    Ok(best_row(&ordered, extreme, rows).and_then(|row| shown[row].clone()))
                });
            }
        }
    }

    #[test]
    fn uniqs((rows, filtered, batch_rows) in table()) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        for data_type in ordered_types() {
            let values = column(&words, &data_type);
            // As bytes: far timestamps have no string of their own.
            let sortable = RowConverter::new(vec![SortField::new(data_type.clone())]).unwrap();
            // Intervals of one length are brought to one form before.
            let tied = mapped(&values, |value| one_nan(value) + 0.0);
            let bytes = sortable.convert_columns(&[tied]).unwrap();
            let input = input(&rows, filtered, vec![values]);
            let aggregate = uniq("uniq(x)", std::slice::from_ref(&data_type)).unwrap();
            check(&*aggregate, &input, batch_rows, |rows| {
                let distinct: BTreeSet<_> = rows.iter().map(|row| bytes.row(*row)).collect();
                Ok(Some(distinct.len().to_string()))
            });
        }
    }

    #[test]
    fn extremes_by((rows, filtered, batch_rows) in table(), skip in 0usize..26) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        let others: Vec<_> = rows.iter().map(|row| row.1).collect();
        let types = ordered_types();
        let by_types = types.iter().cycle().skip(skip);
        for (value_type, by_type) in types.iter().zip(by_types) {
            let (values, by) = (column(&words, value_type), column(&others, by_type));
            let best = tied(&by);
            for columns in [vec![Arc::clone(&values), Arc::clone(&by)], vec![nested(&values), nested(&by)]] {
                let shown = strings(&columns[0]);
                let (of, by) = (columns[0].data_type().clone(), columns[1].data_type().clone());
                let live = input(&rows, filtered, columns);
                for extreme in [Extreme::Min, Extreme::Max] {
                    let aggregate = arg_extreme("by(x, y)", extreme, &of, &by, &of).unwrap();
                    check(&*aggregate, &live, batch_rows, |rows| {
                        Ok(best_row(&best, extreme, rows).and_then(|row| shown[row].clone()))
                    });
                }
            }
        }
    }
}

fn scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        other => panic!("{other} has no scale"),
    }
}

fn decimal_string(value: i256, data_type: &DataType, rows: &[usize]) -> Result<Option<String>, ()> {
    let precision = match data_type {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision, _) => *precision,
        other => panic!("{other} has no precision"),
    };
    let digits = value.to_string();
    if digits.trim_start_matches('-').len() > precision.into() {
        return Err(());
    }
    let one = PrimitiveArray::<types::Decimal256Type>::from(vec![value]);
    let one: ArrayRef = Arc::new(one.with_data_type(DataType::Decimal256(76, scale(data_type))));
    Ok((!rows.is_empty()).then(|| strings(&one).remove(0).unwrap()))
}

#[test]
fn an_overflow_names_the_aggregate_and_the_way_out() {
    let aggregate = sum("sum(t.x)", &DataType::Int64, &DataType::Int64).unwrap();
    let mut states = aggregate.states().unwrap();
    let column = column(&[Some(i64::MAX), Some(1)], &DataType::Int64);
    states.update(&[column], None, Groups::One(2), 1).unwrap();
    let message = states.drain_final(1).unwrap_err().to_string();
    assert_eq!(
        message,
        "sum(t.x) does not fit Int64: cast the argument to DECIMAL(38, 0)"
    );
}

#[test]
fn a_sum_that_overflows_only_on_its_way_is_right() {
    for data_type in [
        DataType::Int64,
        DataType::Decimal128(38, 0),
        DataType::Decimal256(76, 0),
    ] {
        let max = match data_type {
            DataType::Int64 => i64::MAX,
            // Shifted by 60 bits: near 10^38, and 600 of them leave 128 bits.
            _ => 80_000_000_000_000_000,
        };
        let words: Vec<_> = [max, -max]
            .iter()
            .flat_map(|word| vec![Some(*word); 2_000])
            .chain([Some(7)])
            .collect();
        let values = column(&words, &data_type);
        let expected = strings(&values).pop().unwrap();
        let groups = (0..words.len() as u32).map(|row| row % 3 / 2).collect();
        let input = Input {
            columns: vec![values],
            filter: None,
            groups,
        };
        let one = input.in_one_group();
        let aggregate = sum("sum(x)", &data_type, &data_type).unwrap();
        for path in [Path::Direct, Path::Partial, Path::Mixed] {
            let (_, sum) = run(&*aggregate, &one, 100, path).unwrap();
            assert_eq!(
                strings(&sum),
                std::slice::from_ref(&expected),
                "{data_type}, {path:?}"
            );
        }
    }
}

#[test]
fn many_groups_and_none() {
    let groups: Vec<u32> = (0..100_000).map(|row| row % 50_000).collect();
    let words: Vec<_> = groups
        .iter()
        .map(|group| (group % 7 > 0).then_some(i64::from(*group)))
        .collect();
    for data_type in [DataType::Int64, DataType::Utf8View] {
        let values = column(&words, &data_type);
        let shown = strings(&values);
        let input = Input {
            columns: vec![values],
            filter: None,
            groups: groups.clone(),
        };
        let aggregate = min_max("min(x)", Extreme::Min, &data_type, &data_type).unwrap();
        let (keys, found) = run(&*aggregate, &input, 8_192, Path::Mixed).unwrap();
        assert_eq!(keys.len(), 50_000);
        for (key, string) in keys.iter().zip(strings(&found)) {
            assert_eq!(string, shown[*key as usize]);
        }
        let mut states = aggregate.states().unwrap();
        let nothing = new_empty_array(&data_type);
        states
            .update(&[nothing], None, Groups::Ids(&[]), 0)
            .unwrap();
        assert_eq!(states.drain_partial(0).unwrap()[0].len(), 0);
        assert_eq!(strings(&states.drain_final(1).unwrap()), [None]);
    }
}

#[test]
fn bytes_follow_what_is_held() {
    let types = [DataType::Int64, DataType::Utf8];
    let mut aggregates = vec![count("count").unwrap()];
    aggregates.push(sum("sum", &types[0], &types[0]).unwrap());
    aggregates.push(
        avg(
            "avg",
            &DataType::Decimal64(18, 2),
            &DataType::Decimal64(18, 6),
        )
        .unwrap(),
    );
    aggregates.push(uniq("uniq", &types[..1]).unwrap());
    for data_type in &types {
        aggregates.push(min_max("min", Extreme::Min, data_type, data_type).unwrap());
    }
    let words: Vec<_> = (0..10_000i64).map(|row| Some(row * 4 + 2)).collect();
    let ids: Vec<_> = (0..10_000).map(GroupId).collect();
    for aggregate in aggregates {
        let mut states = aggregate.states().unwrap();
        assert_eq!(states.bytes(), 0, "{aggregate:?}");
        let data_type = match aggregate.name() {
            "avg" => DataType::Decimal64(18, 2),
            "min" => aggregate.result_type(),
            _ => DataType::Int64,
        };
        let column = column(&words, &data_type);
        states
            .update(&[Arc::clone(&column)], None, Groups::Ids(&ids), ids.len())
            .unwrap();
        assert!(
            states.bytes() >= 8 * ids.len(),
            "{aggregate:?} holds {}",
            states.bytes()
        );
        states.drain_final(ids.len()).unwrap();
        assert_eq!(states.bytes(), 0, "{aggregate:?}");
    }
}

#[test]
fn what_is_not_native_is_said_so() {
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)));
    let interval = DataType::Interval(IntervalUnit::DayTime);
    assert!(sum("sum", &interval, &interval).is_none());
    assert!(sum("sum", &DataType::Int64, &DataType::Float64).is_none());
    assert!(sum("sum", &DataType::UInt32, &DataType::Int64).is_none());
    assert!(avg("avg", &DataType::Float32, &DataType::Float64).is_none());
    assert!(
        avg(
            "avg",
            &DataType::Decimal128(9, 4),
            &DataType::Decimal128(9, 2)
        )
        .is_none()
    );
    assert!(min_max("min", Extreme::Min, &list, &list).is_none());
}
