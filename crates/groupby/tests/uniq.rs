//! `uniq` against exact counts.
//!
//! In: values of known distinct counts, in groups, batches, types and ways through partial states.
//! Out: the exact count of few values, one close to it of many, and the same one on every way.
//! Not here: random small inputs of every type (`states`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Float64Array};
use arrow::array::{Int32Array, Int64Array, StringArray, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, UInt64Type};
use grouse_groupby::Error;
use grouse_groupby::keys::GroupId;
use grouse_groupby::states::{GroupStates, Groups, uniq};

/// Rows of a batch.
const BATCH: usize = 8192;
/// As many values are counted exactly.
const LISTED_MAX: u64 = 6144;
const REGISTERS_BYTES: usize = 32 << 10;

fn states(types: &[DataType]) -> Box<dyn GroupStates> {
    uniq("uniq(x)", types).unwrap().states().unwrap()
}

fn counts(states: &mut Box<dyn GroupStates>, total: usize) -> Vec<u64> {
    let counts = states.drain_final(total).unwrap();
    counts.as_primitive::<UInt64Type>().values().to_vec()
}

/// Values and their groups, in batches.
fn update(states: &mut Box<dyn GroupStates>, rows: &[(u32, u64)], total: usize) {
    for batch in rows.chunks(BATCH) {
        let values: ArrayRef = Arc::new(UInt64Array::from_iter_values(batch.iter().map(|r| r.1)));
        let ids: Vec<_> = batch.iter().map(|row| GroupId(row.0)).collect();
        states
            .update(&[values], None, Groups::Ids(&ids), total)
            .unwrap();
    }
}

fn merge(states: &mut Box<dyn GroupStates>, partial: &[ArrayRef]) {
    let ids: Vec<_> = (0..partial[0].len() as u32).map(GroupId).collect();
    states.merge(partial, Groups::Ids(&ids), ids.len()).unwrap();
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

/// One row for each of `distinct` values of a group, and some again.
fn group(random: &mut Random, id: u32, distinct: u64, rows: &mut Vec<(u32, u64)>) {
    let (first, step) = (random.next(), 1u64 << (random.next() % 40));
    let step = step * [1, 3, 10, 1000][random.next() as usize % 4];
    for at in 0..distinct {
        rows.push((id, first.wrapping_add(at.wrapping_mul(step))));
        if random.next().is_multiple_of(4) {
            let again = random.next() % (at + 1);
            rows.push((id, first.wrapping_add(again.wrapping_mul(step))));
        }
    }
}

/// Values in regular steps are what hashes fail on: 99 of 100 counts have to be within 2 %.
#[test]
fn counts_are_close() {
    let mut errors = Vec::new();
    // 1,024 groups. Lists are exact but where two values have one code, as in one group of a hundred with 6,144 of them; in none
    // of these.
    for (mut random, rounds) in [(Random(7), 24), (Random(12), 40)] {
        for round in 0..rounds {
            let sizes: Vec<u64> = match round % 4 {
                0 => (0..40).map(|_| 1 + random.next() % 20_000).collect(),
                1 => (0..20).map(|_| 1 + random.next() % 60_000).collect(),
                2 => (0..3).map(|_| 1 + random.next() % 300_000).collect(),
                _ => vec![700_000 + random.next() % 300_000],
            };
            let mut rows = Vec::new();
            for (id, size) in sizes.iter().enumerate() {
                group(&mut random, id as u32, *size, &mut rows);
            }
            for at in (1..rows.len()).rev() {
                rows.swap(at, random.next() as usize % (at + 1));
            }
            let mut states = states(&[DataType::UInt64]);
            update(&mut states, &rows, sizes.len());
            for (count, exact) in counts(&mut states, sizes.len()).into_iter().zip(sizes) {
                if exact <= LISTED_MAX {
                    assert_eq!(count, exact);
                } else {
                    errors.push(count as f64 / exact as f64 - 1.0);
                }
            }
        }
    }
    let far = errors.iter().filter(|error| error.abs() > 0.02).count();
    assert!(
        far * 100 <= errors.len(),
        "{far} of {} are off",
        errors.len()
    );
    let mean_square = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
    assert!(
        mean_square.sqrt() < 0.0065,
        "standard error {}",
        mean_square.sqrt()
    );
    let bias = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(bias.abs() < 0.0015, "bias {bias}");
}

/// The count is a function of the set of values: neither order, nor repeats, nor merges change it.
#[test]
fn every_way_gives_the_same_count() {
    let mut random = Random(1);
    let sizes = [
        0, 1, 3, 4, 6, 7, 12, 13, 100, 3000, 6143, 6144, 6145, 6500, 8192, 9000, 50_000,
    ];
    let mut rows = Vec::new();
    for (id, size) in sizes.iter().enumerate() {
        group(&mut random, id as u32, *size, &mut rows);
    }
    let total = sizes.len();
    let mut direct = states(&[DataType::UInt64]);
    update(&mut direct, &rows, total);
    let expected = counts(&mut direct, total);
    for (count, size) in expected.iter().zip(sizes) {
        if size <= LISTED_MAX {
            assert_eq!(*count, size);
        }
        assert!(count.abs_diff(size) * 50 <= size, "{count} of {size}");
    }
    for parts in [1, 2, 3, 40] {
        for at in (1..rows.len()).rev() {
            rows.swap(at, random.next() as usize % (at + 1));
        }
        let (mut merged, mut mixed) = (states(&[DataType::UInt64]), states(&[DataType::UInt64]));
        for (at, part) in rows.chunks(rows.len().div_ceil(parts)).enumerate() {
            let mut one = states(&[DataType::UInt64]);
            update(&mut one, part, total);
            // What overlaps counts once.
            update(&mut one, &rows[..rows.len() / 10], total);
            let partial = one.drain_partial(total).unwrap();
            merge(&mut merged, &partial);
            match at % 2 {
                0 => update(&mut mixed, part, total),
                _ => merge(&mut mixed, &partial),
            }
        }
        assert_eq!(counts(&mut merged, total), expected, "{parts} parts");
        assert_eq!(counts(&mut mixed, total), expected, "{parts} parts, mixed");
    }
    // Without GROUP BY, group by group.
    for (id, expected) in expected.iter().enumerate() {
        let mut one = states(&[DataType::UInt64]);
        let values = rows
            .iter()
            .filter(|row| row.0 == id as u32)
            .map(|row| row.1);
        let values: ArrayRef = Arc::new(UInt64Array::from_iter_values(values));
        let groups = Groups::One(values.len());
        one.update(&[values], None, groups, 1).unwrap();
        assert_eq!(counts(&mut one, 1), [*expected]);
    }
}

/// Few values many times over must neither grow their state nor lose one.
#[test]
fn repeats_take_no_memory() {
    for (distinct, bytes_max) in [
        (1u64, 64),
        (6, 64),
        (7, 256),
        (100, 2 << 10),
        (6144, 33 << 10),
    ] {
        let mut states = states(&[DataType::UInt64]);
        let groups = 10u64;
        let rows: Vec<_> = (0..distinct * groups * 20)
            .map(|at| ((at % groups) as u32, at / groups % distinct))
            .collect();
        update(&mut states, &rows, groups as usize);
        let partial = states.drain_partial(groups as usize).unwrap();
        let views = partial[0].as_binary_view();
        let longest = (0..views.len()).map(|row| views.value(row).len()).max();
        assert!(longest <= Some(bytes_max), "{distinct}: {longest:?}");
        merge(&mut states, &partial);
        assert_eq!(counts(&mut states, groups as usize), vec![distinct; 10]);
    }
}

#[test]
fn equal_values_count_once_in_every_form() {
    let strings: ArrayRef = Arc::new(StringArray::from(vec![
        Some("grouse"),
        None,
        Some("a string of more than twelve bytes"),
        Some(""),
        Some("grouse"),
    ]));
    let dictionary = DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into());
    let mut all = states(&[DataType::Utf8]);
    for data_type in [
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        dictionary,
    ] {
        let column = cast(&strings, &data_type).unwrap();
        let mut one = states(&[data_type]);
        one.update(&[column], None, Groups::One(5), 1).unwrap();
        let partial = one.drain_partial(1).unwrap();
        merge(&mut one, &partial);
        assert_eq!(counts(&mut one, 1), [3]);
        merge(&mut all, &partial);
    }
    assert_eq!(counts(&mut all, 1), [3]);
    let zeros_and_nans = [
        0.0,
        -0.0,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff8_0000_0000_0001),
    ];
    let floats: ArrayRef = Arc::new(Float64Array::from(zeros_and_nans.to_vec()));
    for data_type in [DataType::Float64, DataType::Float32, DataType::Float16] {
        let column = cast(&floats, &data_type).unwrap();
        let mut one = states(&[data_type]);
        one.update(&[column], None, Groups::One(5), 1).unwrap();
        assert_eq!(counts(&mut one, 1), [2]);
    }
}

#[test]
fn several_columns_count_as_tuples_without_nulls() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![
        Some(1),
        Some(1),
        Some(1),
        Some(2),
        None,
        Some(2),
    ]));
    let strings: ArrayRef = Arc::new(StringArray::from(vec![
        Some("a"),
        Some("b"),
        Some("a"),
        Some("a"),
        Some("c"),
        None,
    ]));
    let filter = BooleanArray::from(vec![
        Some(true),
        Some(true),
        None,
        Some(false),
        Some(true),
        Some(true),
    ]);
    let columns = [numbers, strings];
    for (filter, expected) in [(None, 3), (Some(&filter), 2)] {
        let mut states = states(&[DataType::Int32, DataType::Utf8]);
        states.update(&columns, filter, Groups::One(6), 1).unwrap();
        assert_eq!(counts(&mut states, 1), [expected]);
        let ids = [0, 0, 0, 0, 1, 1].map(GroupId);
        states
            .update(&columns, filter, Groups::Ids(&ids), 3)
            .unwrap();
        assert_eq!(counts(&mut states, 3), [expected, 0, 0]);
    }
}

/// Every value of one byte is counted: no two share a code.
#[test]
fn small_integers_have_codes_of_their_own() {
    let all: ArrayRef = Arc::new(Int64Array::from_iter_values(0..256));
    for data_type in [
        DataType::UInt8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
    ] {
        let mut states = states(std::slice::from_ref(&data_type));
        let column = cast(&all, &data_type).unwrap();
        states.update(&[column], None, Groups::One(256), 1).unwrap();
        assert_eq!(counts(&mut states, 1), [256], "{data_type}");
    }
}

/// States may be stored and merged later, elsewhere: these bytes are part of the format.
#[test]
fn bytes_never_change() {
    let state = |values: std::ops::Range<i64>| {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        let mut states = states(&[DataType::Int64]);
        let groups = Groups::One(column.len());
        states.update(&[column], None, groups, 1).unwrap();
        let partial = states.drain_partial(1).unwrap();
        partial[0].as_binary_view().value(0).to_vec()
    };
    assert_eq!(state(0..0), [0u8; 0]);
    let three = [28, 119, 153, 220, 218, 130, 27, 243, 16, 64, 77, 58];
    assert_eq!(state(0..3), three);
    let registers = state(0..100_000);
    assert_eq!(registers.len(), REGISTERS_BYTES);
    let sum = |bytes: &[u8]| {
        bytes.iter().enumerate().fold(0u64, |sum, (at, byte)| {
            sum.wrapping_mul(31)
                .wrapping_add(u64::from(*byte) + at as u64)
        })
    };
    assert_eq!(sum(&registers), 0xfb27_401f_a825_44df);
}

#[test]
fn bytes_of_something_else_are_refused() {
    let far = vec![200u8; REGISTERS_BYTES];
    for bytes in [&b"abc"[..], &[0; 8], &[0xff; 4], &far] {
        let mut states = states(&[DataType::Int64]);
        let column: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([bytes]));
        let error = states.merge(&[column], Groups::One(1), 1).unwrap_err();
        assert!(matches!(error, Error::Malformed("uniq")), "{error}");
    }
}

#[test]
fn bytes_grow_with_the_values_and_go_with_the_states() {
    let mut states = states(&[DataType::UInt64]);
    assert_eq!(states.bytes(), 0);
    let groups = 20;
    let mut held = 0;
    for values in [1u64, 100, 1000, 5000, 20_000] {
        let rows: Vec<_> = (0..groups * values)
            .map(|at| ((at % groups) as u32, at))
            .collect();
        update(&mut states, &rows, groups as usize);
        let bytes = states.bytes();
        assert!(bytes > held, "{bytes} bytes after {held}");
        // A list's block is at most four times as large as the list.
        let fair = 512 * 1024 + 2 * groups as usize * (16 * values as usize).min(40 << 10);
        assert!(bytes < fair, "{bytes} bytes for {values} values");
        assert_eq!(states.used_bytes(), 64 * groups as usize);
        held = bytes;
    }
    states.drain_partial(groups as usize).unwrap();
    assert_eq!(states.bytes(), 0);
}
