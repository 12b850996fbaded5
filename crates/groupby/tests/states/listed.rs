//! All rows of each group in an order against a sort that keeps ties as they come.
//!
//! In: the columns, groups and paths of the other aggregates, an order of two columns. Out: equal lists, strings and n-th values.
//! Invariant: batches reach the states in their order, so that rows that tie have an answer, too.

use arrow::array::DynComparator;
use arrow::compute::SortOptions;
use grouse_groupby::states::{ListedRows, Listing, NullRows, listed};

use super::first_last::{compare, order_of, rows_of};
use super::*;

const NTH: [i64; 6] = [1, 2, 5, -1, -3, i64::MIN];

/// What is listed of each group, shown one by one; `None` for NULL.
type Found = BTreeMap<u32, Option<Vec<Option<String>>>>;

/// What the twin makes of the rows of a group in their order.
type Twin<'a> = &'a dyn Fn(&[usize]) -> Option<Vec<Option<String>>>;

fn shown(column: &ArrayRef) -> Vec<Option<Vec<Option<String>>>> {
    let Some(lists) = column.as_list_opt::<i32>() else {
        return strings(column)
            .into_iter()
            .map(|string| string.map(|string| vec![Some(string)]))
            .collect();
    };
    let lists = lists.iter().map(|list| list.map(|list| strings(&list)));
    lists.collect()
}

fn check_listing(
    aggregate: &dyn Aggregate,
    input: &Input,
    nulls: NullRows,
    by: &[DynComparator],
    batch_rows: usize,
    twin: Twin<'_>,
) {
    for input in [input.clone(), input.in_one_group()] {
        let expected = rows_of(&input, nulls).into_iter().map(|(group, mut rows)| {
            rows.sort_by(|left, right| compare(by, *left, *right));
            (group, twin(&rows))
        });
        let expected: Found = expected.collect();
        for path in [Path::Direct, Path::Partial, Path::Mixed] {
            let (keys, column) = run(aggregate, &input, batch_rows, path).unwrap();
            assert_eq!(column.data_type(), &aggregate.result_type());
            let found: Found = keys.into_iter().zip(shown(&column)).collect();
            assert_eq!(found, expected, "{aggregate:?}, {nulls:?}, {path:?}");
        }
    }
}

fn nth(n: i64, rows: &[usize]) -> Option<usize> {
    let n = usize::try_from(n.unsigned_abs()).ok()?;
    match rows.len().checked_sub(n) {
        Some(from_start) if n > 0 => Some(rows[from_start]),
        _ => None,
    }
}

proptest! {
    // Each case runs all types.
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn distinct_rows_in_their_order((rows, filtered, batch_rows) in table()) {
        // Small ones, of which many are the same.
        let words: Vec<_> = rows.iter().map(|row| row.0.map(|word| word % 8)).collect();
        for (at, value_type) in ordered_types().iter().enumerate() {
            let values = column(&words, value_type);
            let options = SortOptions { descending: at % 2 == 0, nulls_first: at % 4 < 2 };
            let (order, by) = order_of(&[&values], options);
            let shown = strings(&values);
            let all = input(&rows, filtered, vec![Arc::clone(&values), values]);
            let item = Arc::new(Field::new_list_field(value_type.clone(), true));
            for nulls in [NullRows::Respected, NullRows::Ignored] {
                let listing = Listing::Array(Arc::clone(&item));
                let kind = (ListedRows::Distinct, nulls);
                let aggregate = listed("listed(x)", listing, kind, &order, value_type).unwrap();
                check_listing(&*aggregate, &all, nulls, &by, batch_rows, &|rows| {
                    let equal = rows.chunk_by(|left, right| compare(&by, *left, *right).is_eq());
                    let items = equal.map(|rows| shown[rows[0]].clone());
                    (!rows.is_empty()).then(|| items.collect())
                });
            }
        }
    }

    /// Without an order, plain and, strings, as codes.
    #[test]
    fn rows_as_they_come((rows, filtered, batch_rows) in table()) {
        let words: Vec<_> = rows.iter().map(|row| row.0.map(|word| word % 8)).collect();
        for value_type in ordered_types() {
            let values = column(&words, &value_type);
            let shown = strings(&values);
            let are_strings = matches!(value_type, DataType::Utf8View | DataType::BinaryView);
            let codes = |code| DataType::Dictionary(Box::new(code), Box::new(value_type.clone()));
            let coded = |code| arrow::compute::cast(&values, &codes(code)).expect("codes");
            let mut columns = vec![Arc::clone(&values)];
            if are_strings {
                columns.extend([coded(DataType::UInt32), coded(DataType::Int16)]);
            }
            for values in columns {
                let all = input(&rows, filtered, vec![values]);
                let check = |listing: Listing, nulls, twin: Twin<'_>| {
                    let kind = (ListedRows::All, nulls);
                    let aggregate = listed("listed(x)", listing, kind, &[], &value_type).unwrap();
                    check_listing(&*aggregate, &all, nulls, &[], batch_rows, twin);
                };
                let item = Arc::new(Field::new_list_field(value_type.clone(), true));
                for nulls in [NullRows::Respected, NullRows::Ignored] {
                    check(Listing::Array(Arc::clone(&item)), nulls, &|rows| {
                        let items = rows.iter().map(|row| shown[*row].clone());
                        (!rows.is_empty()).then(|| items.collect())
                    });
                }
                if value_type.is_string() {
                    check(Listing::Joined(", ".into()), NullRows::Ignored, &|rows| {
                        let parts: Vec<_> = rows.iter().filter_map(|row| shown[*row].clone()).collect();
                        (!parts.is_empty()).then(|| vec![Some(parts.join(", "))])
                    });
                }
            }
        }
    }

    #[test]
    fn rows_in_an_order((rows, filtered, batch_rows) in table(), skip in 0usize..26) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        let others: Vec<_> = rows.iter().map(|row| row.1).collect();
        let small: Vec<_> = others.iter().map(|word| word.map(|word| word % 2)).collect();
        let small = column(&small, &DataType::Int64);
        let types = ordered_types();
        let by_types = types.iter().cycle().skip(skip);
        for (at, (value_type, by_type)) in types.iter().zip(by_types).enumerate() {
            let (values, by) = (column(&words, value_type), column(&others, by_type));
            let options = SortOptions { descending: at % 2 == 0, nulls_first: at % 4 < 2 };
            let (order, comparators) = order_of(&[&small, &by], options);
            let shown = strings(&values);
            let all = input(&rows, filtered, vec![values, Arc::clone(&small), by]);
            let check = |listing: Listing, nulls, twin: Twin<'_>| {
                let aggregate = listed("listed(x)", listing, (ListedRows::All, nulls), &order, value_type);
                check_listing(&*aggregate.unwrap(), &all, nulls, &comparators, batch_rows, twin);
            };
            let item = Arc::new(Field::new_list_field(value_type.clone(), true));
            for nulls in [NullRows::Respected, NullRows::Ignored] {
                check(Listing::Array(Arc::clone(&item)), nulls, &|rows| {
                    let items = rows.iter().map(|row| shown[*row].clone());
                    (!rows.is_empty()).then(|| items.collect())
                });
            }
            for n in NTH {
                check(Listing::Nth(n), NullRows::Respected, &|rows| {
                    let mut rows = rows.to_vec();
                    if n > 0 {
                        rows.reverse();
                    }
                    nth(n, &rows).and_then(|row| shown[row].clone()).map(|string| vec![Some(string)])
                });
            }
            if value_type.is_string() {
                check(Listing::Joined(", ".into()), NullRows::Ignored, &|rows| {
                    let parts: Vec<_> = rows.iter().filter_map(|row| shown[*row].clone()).collect();
                    (!parts.is_empty()).then(|| vec![Some(parts.join(", "))])
                });
            }
        }
    }
}

#[test]
fn long_keys_with_a_common_start_are_told_apart() {
    let long = |row: usize| {
        format!(
            "a text of more than sixteen bytes, {:04}",
            row * 7919 % 1000
        )
    };
    let strings: ArrayRef = Arc::new(arrow::array::StringArray::from_iter_values(
        (0..1000).map(long),
    ));
    let order = [SortField::new(DataType::Utf8)];
    let string = DataType::Utf8;
    let item = Arc::new(Field::new_list_field(string.clone(), true));
    let aggregate = listed(
        "listed(x)",
        Listing::Array(item),
        (ListedRows::All, NullRows::Respected),
        &order,
        &string,
    );
    let all = Input {
        columns: vec![Arc::clone(&strings), Arc::clone(&strings)],
        filter: None,
        groups: vec![0; 1000],
    };
    for path in [Path::Direct, Path::Partial] {
        let (_, column) = run(&*aggregate.clone().unwrap(), &all, 100, path).unwrap();
        let found = shown(&column).remove(0).expect("rows");
        assert!(found.is_sorted() && found.len() == 1000);
    }
}

#[test]
fn what_cannot_be_listed_is_said_so() {
    let coded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let (int, order) = (DataType::Int64, [SortField::new(DataType::Int64)]);
    let listed = |listing, of: &DataType| {
        listed(
            "listed(x)",
            listing,
            (ListedRows::All, NullRows::Respected),
            &order,
            of,
        )
        .is_some()
    };
    assert!(!listed(Listing::Nth(0), &int));
    assert!(!listed(Listing::Nth(1), &coded));
    assert!(!listed(Listing::Joined(",".into()), &int));
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    assert!(!listed(Listing::Array(item), &int));
}

#[test]
fn rows_that_are_not_listed_leave() {
    let int = DataType::Int64;
    let order = [SortField::new(int.clone())];
    let item = Arc::new(Field::new_list_field(int.clone(), true));
    let cases = [
        (Listing::Array(item), ListedRows::Distinct),
        (Listing::Nth(-2), ListedRows::All),
    ];
    let words: Vec<_> = (0..300_000).map(|row| Some(row * 7919 % 50)).collect();
    let groups: Vec<u32> = (0..300_000).map(|row| row % 3).collect();
    let values = column(&words, &int);
    let all = Input {
        columns: vec![Arc::clone(&values), values],
        filter: None,
        groups,
    };
    for (listing, rows) in cases {
        let kind = (rows, NullRows::Respected);
        let aggregate = listed("listed(x)", listing, kind, &order, &int).unwrap();
        let mut table = Table::new(&*aggregate);
        for from in (0..300_000).step_by(8192) {
            table.update(&all.slice(from, (from + 8192).min(300_000)));
            assert!(table.states.bytes() < 8 << 20, "{}", table.states.bytes());
        }
        let (_, column) = table.drain_final().unwrap();
        for list in shown(&column) {
            let list = list.expect("rows");
            match rows {
                ListedRows::Distinct => assert_eq!(list.len(), 50),
                ListedRows::All => assert_eq!(list, [Some("49".to_string())]),
            }
        }
    }
}
