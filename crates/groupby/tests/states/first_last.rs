//! The first and the last row of each group against a walk over its rows.
//!
//! In: the columns, groups and paths of the other aggregates, orders of two columns and none. Out: equal values.
//! Invariant: batches reach the states in their order, so that rows that tie and rows without an order have an answer, too.

use arrow::array::{DynComparator, make_comparator};
use arrow::compute::SortOptions;
use grouse_groupby::states::{End, NullRows, first_last};

use super::*;

const OPTIONS: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

/// Rows that count, by group.
pub(super) fn rows_of(input: &Input, nulls: NullRows) -> BTreeMap<u32, Vec<usize>> {
    let mut rows = BTreeMap::<u32, Vec<usize>>::new();
    for (row, group) in input.groups.iter().enumerate() {
        let filter = input.filter.as_ref();
        let passes = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let is_row = nulls == NullRows::Respected || input.columns[0].is_valid(row);
        let rows = rows.entry(*group).or_default();
        rows.extend((passes && is_row).then_some(row));
    }
    rows
}

/// The order of some columns, and the twin's.
pub(super) fn order_of(
    columns: &[&ArrayRef],
    options: SortOptions,
) -> (Vec<SortField>, Vec<DynComparator>) {
    let each = columns.iter().map(|column| {
        let field = SortField::new_with_options(column.data_type().clone(), options);
        (field, make_comparator(column, column, options).unwrap())
    });
    each.unzip()
}

pub(super) fn compare(order: &[DynComparator], left: usize, right: usize) -> Ordering {
    let columns = order.iter().map(|column| column(left, right));
    columns.fold(Ordering::Equal, Ordering::then)
}

/// The row that comes first or last; of rows that tie the first, without an order the last for `last_value`.
fn picked(order: &[DynComparator], end: End, rows: &[usize]) -> Option<usize> {
    if order.is_empty() && end == End::Last {
        return rows.last().copied();
    }
    let beats = match end {
        End::First => Ordering::Less,
        End::Last => Ordering::Greater,
    };
    let rows = rows.iter().copied();
    rows.reduce(|best, row| match compare(order, row, best) == beats {
        true => row,
        false => best,
    })
}

fn check_ends(input: &Input, order: &[SortField], by: &[DynComparator], batch_rows: usize) {
    let (data_type, shown) = (input.columns[0].data_type(), strings(&input.columns[0]));
    for end in [End::First, End::Last] {
        for nulls in [NullRows::Respected, NullRows::Ignored] {
            let aggregate = first_last("end(x)", (end, nulls), order, data_type, data_type);
            let aggregate = aggregate.expect("native");
            for input in [input.clone(), input.in_one_group()] {
                let twin = rows_of(&input, nulls).into_iter().map(|(group, rows)| {
                    let row = picked(by, end, &rows);
                    (group, row.and_then(|row| shown[row].clone()))
                });
                let twin: BTreeMap<_, _> = twin.collect();
                for path in [Path::Direct, Path::Partial, Path::Mixed] {
                    let (keys, column) = run(&*aggregate, &input, batch_rows, path).unwrap();
                    assert_eq!(column.data_type(), data_type);
                    let found: BTreeMap<_, _> = keys.into_iter().zip(strings(&column)).collect();
                    assert_eq!(found, twin, "{end:?}, {nulls:?}, {order:?}, {path:?}");
                }
            }
        }
    }
}

proptest! {
    // Each case runs all types.
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn first_and_last_values((rows, filtered, batch_rows) in table(), skip in 0usize..26) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        let others: Vec<_> = rows.iter().map(|row| row.1).collect();
        let small: Vec<_> = others.iter().map(|word| word.map(|word| word % 2)).collect();
        let small = column(&small, &DataType::Int64);
        let types = ordered_types();
        let by_types = types.iter().cycle().skip(skip);
        for (at, (value_type, by_type)) in types.iter().zip(by_types).enumerate() {
            let (values, by) = (column(&words, value_type), column(&others, by_type));
            let unordered = input(&rows, filtered, vec![Arc::clone(&values)]);
            check_ends(&unordered, &[], &[], batch_rows);
            let (descending, nulls_first) = OPTIONS[at % OPTIONS.len()];
            let options = SortOptions { descending, nulls_first };
            let (order, comparators) = order_of(&[&small, &by], options);
            let ordered = input(&rows, filtered, vec![values, Arc::clone(&small), by]);
            check_ends(&ordered, &order, &comparators, batch_rows);
        }
    }
}
