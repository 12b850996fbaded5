//! Extremes of strings that come as codes: as of the strings.
//!
//! In: batches of dictionaries that change, with values twice, NULL by code and by value, a filter. Out: the same results and
//! partial states as those of the strings.
//! Not here: extremes of strings (`states`).

use arrow::array::{BooleanArray, DictionaryArray, Int32Array, StringArray, UInt8Array};
use arrow::compute::take;

use grouse_groupby::states::{End, NullRows, first_last};

use super::*;

const ROUNDS: usize = 12;

/// Rows of a batch: enough for ranks of a few values, or too few.
const BATCH_ROWS: [usize; 3] = [500, 40, 7];

struct Batch {
    coded: ArrayRef,
    strings: ArrayRef,
    groups: Vec<GroupId>,
    filter: Option<BooleanArray>,
}

fn dictionary(number: usize) -> ArrayRef {
    let long = format!("a text that is longer than a view, of {number}");
    let other = format!("{}", 7 * number % 5);
    let values = vec![
        Some("m"),
        Some(&*long),
        None,
        Some("m"),
        Some(&*other),
        Some(""),
    ];
    let values: ArrayRef = Arc::new(StringArray::from(values));
    match number % 3 {
        0 => values,
        1 => cast(&values, &DataType::Utf8View).expect("views"),
        _ => cast(&values, &DataType::LargeUtf8).expect("long offsets"),
    }
}

/// `groups` groups; each dictionary is of two batches.
fn batches(groups: usize) -> Vec<Batch> {
    let mut state = 7u64;
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut values = dictionary(0);
    let batch = |number: usize| {
        if number.is_multiple_of(2) {
            values = dictionary(number / 2);
        }
        let rows = BATCH_ROWS[number / 2 % BATCH_ROWS.len()];
        let codes: Vec<_> = (0..rows)
            .map(|_| (next(9) > 0).then(|| next(6) as u8))
            .collect();
        let coded: ArrayRef = match number % 4 {
            0 | 3 => Arc::new(DictionaryArray::new(
                UInt8Array::from(codes),
                Arc::clone(&values),
            )),
            _ => {
                let codes = codes.iter().map(|code| code.map(i32::from));
                Arc::new(DictionaryArray::new(
                    Int32Array::from_iter(codes),
                    Arc::clone(&values),
                ))
            }
        };
        let keys = coded.as_any_dictionary().keys();
        let strings = take(&values, keys, None).expect("values");
        let filter: BooleanArray = (0..rows)
            .map(|_| (next(10) > 0).then(|| next(4) > 0))
            .collect();
        Batch {
            strings: cast(&strings, &DataType::Utf8View).expect("views"),
            coded,
            groups: (0..rows).map(|_| GroupId(next(groups) as u32)).collect(),
            filter: number.is_multiple_of(3).then_some(filter),
        }
    };
    (0..ROUNDS).map(batch).collect()
}

/// The states that `of` makes for codes against those that it makes for strings.
fn check_codes(of: impl Fn(&DataType) -> Option<Arc<dyn Aggregate>>) {
    let coded_type = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    let string = DataType::Utf8View;
    let of = |from| of(from).expect("native").states().unwrap();
    for total in [1, 3, 30, 2000] {
        let (mut coded, mut plain) = (of(&coded_type), of(&string));
        for (number, batch) in batches(total).iter().enumerate() {
            let groups = match total {
                1 => Groups::One(batch.groups.len()),
                _ => Groups::Ids(&batch.groups),
            };
            let order: ArrayRef = Arc::new(Int32Array::from_iter_values(
                (0..batch.strings.len() as i32).map(|row| row * 37 % 11),
            ));
            for (states, column) in [(&mut coded, &batch.coded), (&mut plain, &batch.strings)] {
                let columns = [Arc::clone(column), Arc::clone(&order)];
                states
                    .update(&columns, batch.filter.as_ref(), groups, total)
                    .expect("memory");
                assert!(states.bytes() > 0);
            }
            // Tables are emptied between any two batches, and go on.
            if number == 4 {
                let of = |states: &mut Box<dyn GroupStates>| states.drain_partial(total).unwrap();
                assert_eq!(strings(&of(&mut coded)[0]), strings(&of(&mut plain)[0]));
            }
        }
        let of = |states: &mut Box<dyn GroupStates>| states.drain_final(total).unwrap();
        let (coded, plain) = (of(&mut coded), of(&mut plain));
        assert_eq!(coded.data_type(), &string);
        assert_eq!(&coded, &plain, "{total} groups");
    }
}

#[test]
fn extremes_of_codes_are_those_of_their_strings() {
    for extreme in [Extreme::Min, Extreme::Max] {
        check_codes(|from| min_max("extreme(x)", extreme, from, &DataType::Utf8View));
    }
}

#[test]
fn extremes_by_codes_are_those_by_their_strings() {
    for extreme in [Extreme::Min, Extreme::Max] {
        check_codes(|from| {
            arg_extreme(
                "by(x, y)",
                extreme,
                from,
                &DataType::Int32,
                &DataType::Utf8View,
            )
        });
    }
}

#[test]
fn first_and_last_codes_are_those_of_their_strings() {
    let by = [SortField::new(DataType::Int32)];
    for end in [End::First, End::Last] {
        for nulls in [NullRows::Respected, NullRows::Ignored] {
            for order in [&[], &by[..]] {
                check_codes(|from| {
                    first_last("end(x)", (end, nulls), order, from, &DataType::Utf8View)
                });
            }
        }
    }
}

#[test]
fn rows_that_skip_the_table_carry_strings() {
    let batch = &batches(3)[0];
    let aggregate = min_max(
        "min(x)",
        Extreme::Min,
        batch.coded.data_type(),
        &DataType::Utf8,
    );
    let aggregate = aggregate.expect("native");
    let arguments = grouse_groupby::Arguments {
        columns: vec![Arc::clone(&batch.coded)],
        filter: batch.filter.clone(),
    };
    assert!(!arguments.mix() && aggregate.carried_mix(&arguments));
    let carried = aggregate.carried(&arguments).expect("strings");
    assert_eq!(&carried.columns[0], &batch.strings);
    assert_eq!(carried.filter, batch.filter);
}

#[test]
fn codes_of_other_values_are_not_native() {
    let of = |values| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
    let is_native = |from: DataType, to| min_max("min(x)", Extreme::Min, &from, &to).is_some();
    assert!(!is_native(of(DataType::Int64), DataType::Int64));
    assert!(!is_native(of(DataType::Utf8), of(DataType::Utf8)));
    assert!(!is_native(of(DataType::Binary), DataType::Utf8));
    assert!(is_native(of(DataType::Binary), DataType::BinaryView));
}
