//! The n first rows of each group against a sort.
//!
//! In: the columns, groups and paths of the other aggregates. Out: equal keys in equal order, of rows
//! that are the group's own.
//! Invariant: every row carries its number, so that a row that is kept twice or mixed up shows.

use arrow::compute::SortOptions;
use arrow::datatypes::Fields;
use grouse_groupby::keys::row::canonical_values;
use grouse_groupby::states::top_rows::{SortKey, TOP_ROWS_MAX, TopRows, top_rows};

use super::*;

/// Rows with their number, two columns of the given types, and an order of the two.
fn shape(types: [&DataType; 2], order: &[(usize, SortOptions)], rows_max: usize) -> TopRows {
    let field = |name: &str, data_type: &DataType| Field::new(name, data_type.clone(), true);
    TopRows {
        rows_max,
        columns: Fields::from(vec![
            field("row", &DataType::Int64),
            field("x", types[0]),
            field("y", types[1]),
        ]),
        // The last column only orders.
        results: 2,
        order: order
            .iter()
            .map(|(column, options)| SortKey {
                column: *column,
                options: *options,
            })
            .collect(),
    }
}

/// Sort keys of all rows as bytes.
fn sort_keys(input: &Input, shape: &TopRows) -> Vec<Vec<u8>> {
    if shape.order.is_empty() {
        return vec![vec![]; input.groups.len()];
    }
    let columns: Vec<_> = shape
        .order
        .iter()
        // Equal floats and intervals have one form.
        .map(|key| canonical_values(&input.columns[key.column]).unwrap())
        .collect();
    let fields = shape.order.iter().map(|key| {
        let data_type = shape.columns[key.column].data_type();
        SortField::new_with_options(data_type.clone(), key.options)
    });
    let converter = RowConverter::new(fields.collect()).unwrap();
    let rows = converter.convert_columns(&columns).unwrap();
    rows.iter().map(|row| row.data().to_vec()).collect()
}

fn check(input: &Input, shape: &TopRows, batch_rows: usize) {
    let aggregate = top_rows("top_rows", shape.clone()).expect("types that have an order");
    let keys = sort_keys(input, shape);
    let numbers = Input {
        columns: vec![],
        ..input.clone()
    };
    let twin: BTreeMap<u32, Vec<usize>> = numbers.live_rows();
    for path in [Path::Direct, Path::Partial, Path::Mixed] {
        let (groups, column) = run(&*aggregate, input, batch_rows, path).unwrap();
        assert_eq!(column.data_type(), &aggregate.result_type());
        assert_eq!(groups.len(), twin.len());
        for (at, group) in groups.iter().enumerate() {
            let rows = column.as_list::<i32>().value(at);
            let rows = rows.as_struct();
            let found = rows.column(0).as_primitive::<types::Int64Type>().values();
            let mut expected: Vec<_> = twin[group].iter().map(|row| &keys[*row]).collect();
            expected.sort();
            expected.truncate(shape.rows_max);
            let found_keys: Vec<_> = found.iter().map(|row| &keys[*row as usize]).collect();
            assert_eq!(found_keys, expected, "{shape:?}, {path:?}");
            let mut own: Vec<_> = found.iter().map(|row| *row as usize).collect();
            own.sort_unstable();
            own.dedup();
            assert_eq!(own.len(), found.len(), "a row twice: {path:?}");
            assert!(own.iter().all(|row| twin[group].contains(row)), "{path:?}");
            let given = found
                .iter()
                .map(|row| input.columns[1].slice(*row as usize, 1));
            for (row, given) in given.enumerate() {
                assert_eq!(&rows.column(1).slice(row, 1), &given, "{path:?}");
            }
            let placed: Vec<_> = (1..=found.len() as u64).collect();
            let places = rows.column(2).as_primitive::<types::UInt64Type>();
            assert_eq!(places.values().as_ref(), placed);
        }
    }
}

fn columns(rows: &[Row], types: [&DataType; 2]) -> Vec<ArrayRef> {
    let words: Vec<_> = rows.iter().map(|row| row.0).collect();
    let others: Vec<_> = rows.iter().map(|row| row.1).collect();
    let numbers = (0..rows.len() as i64).map(Some).collect::<Vec<_>>();
    vec![
        primitive::<types::Int64Type>(numbers.into_iter(), &DataType::Int64, |word| word),
        column(&words, types[0]),
        column(&others, types[1]),
    ]
}

fn options() -> impl Strategy<Value = SortOptions> {
    (any::<bool>(), any::<bool>()).prop_map(|(descending, nulls_first)| SortOptions {
        descending,
        nulls_first,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn first_rows_by_one_key(
        (rows, filtered, batch_rows) in table(),
        options in options(),
        rows_max in prop_oneof![Just(1), Just(2), Just(7), Just(TOP_ROWS_MAX)],
    ) {
        for data_type in ordered_types() {
            let types = [&data_type, &DataType::Utf8];
            let shape = shape(types, &[(1, options)], rows_max);
            let input = input(&rows, filtered, columns(&rows, types));
            check(&input, &shape, batch_rows);
        }
    }

    #[test]
    fn first_rows_by_no_key_and_by_two(
        (rows, filtered, batch_rows) in table(),
        first in options(),
        second in options(),
        rows_max in 1usize..5,
    ) {
        let keys = [(1, first), (2, second)];
        for types in [
            [&DataType::Int64, &DataType::Float64],
            [&DataType::Utf8View, &DataType::Decimal128(20, 2)],
            [&DataType::Boolean, &DataType::Utf8],
        ] {
            let input = input(&rows, filtered, columns(&rows, types));
            for order in [&keys[..0], &keys[1..], &keys] {
                check(&input, &shape(types, order, rows_max), batch_rows);
            }
        }
    }
}

/// Rows that come in the worst order enter all, and those that they overtake are swept out.
#[test]
fn overtaken_rows_are_swept_out() {
    let (groups, rounds) = (500u32, 200i64);
    let types = [&DataType::Int64, &DataType::Utf8View];
    for order in [
        &[(1, SortOptions::default().desc())][..],
        &[
            (1, SortOptions::default().desc()),
            (2, SortOptions::default()),
        ],
    ] {
        let shape = shape(types, order, 3);
        let mut states = top_rows("top_rows", shape).unwrap().states().unwrap();
        let ids: Vec<_> = (0..groups).map(GroupId).collect();
        let mut bytes_max = 0;
        for round in 0..rounds {
            let words = vec![Some(round); groups as usize];
            let columns = vec![
                column(&words, &DataType::Int64),
                column(&words, types[0]),
                column(&words, types[1]),
            ];
            states
                .update(&columns, None, Groups::Ids(&ids), groups as usize)
                .unwrap();
            bytes_max = bytes_max.max(states.bytes());
        }
        // 1,500 live rows and some 11,000 that were overtaken, not 100,000.
        assert!(bytes_max < 3 << 20, "{bytes_max} bytes");
        let lists = states.drain_final(groups as usize).unwrap();
        let rows = lists.as_list::<i32>().values().clone();
        let best = rows
            .as_struct()
            .column(1)
            .as_primitive::<types::Int64Type>()
            .values()
            .to_vec();
        assert_eq!(best, [199, 198, 197].repeat(groups as usize));
        assert!(states.bytes() < 1 << 20);
    }
}

#[test]
fn what_cannot_be_copied_or_ordered_is_said_so() {
    let coded = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let nested = DataType::new_list(DataType::Utf8View, true);
    let by_x = [(1, SortOptions::default())];
    for refused in [&coded, &nested] {
        assert!(top_rows("top_rows", shape([&DataType::Int64, refused], &by_x, 1)).is_none());
    }
    let map = DataType::Map(
        Arc::new(Field::new_struct(
            "entries",
            vec![
                Field::new("keys", DataType::Utf8, false),
                Field::new("values", DataType::Utf8, true),
            ],
            false,
        )),
        false,
    );
    let unordered = shape([&map, &DataType::Int64], &by_x, 1);
    assert_eq!(
        top_rows("top_rows", unordered).is_some(),
        RowConverter::supports_fields(&[SortField::new(map)])
    );
}
