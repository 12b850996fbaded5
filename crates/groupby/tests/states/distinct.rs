//! Counts of different values against sets of the texts of a group's values.
//!
//! In: as in the suite, types of every form that a pair of group and value has. Out: equal results.
//! Not here: the ways to spread rows (`states.rs`).

use arrow::array::{ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use grouse_groupby::states::count_distinct;

use super::*;

/// Few different values of every form: fixed width, short and long texts, nested, in a dictionary.
fn columns(words: &[Option<i64>]) -> Vec<ArrayRef> {
    let words: Vec<_> = words.iter().map(|word| word.map(|word| word % 7)).collect();
    let number = column(&words, &DataType::Int64);
    let short = cast(&number, &DataType::Utf8View).unwrap();
    let long = words
        .iter()
        .map(|word| word.map(|word| format!("a text that fits no view: {word}")));
    let long: ArrayRef = Arc::new(long.collect::<arrow::array::StringArray>());
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let fields = vec![Arc::new(Field::new("n", DataType::Int64, true))];
    let record = StructArray::new(
        fields.into(),
        vec![Arc::clone(&number)],
        number.nulls().cloned(),
    );
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let lengths = OffsetBuffer::from_lengths(std::iter::repeat_n(1, words.len()));
    let list = ListArray::new(item, lengths, Arc::clone(&number), number.nulls().cloned());
    vec![
        cast(&short, &dictionary).unwrap(),
        cast(&number, &DataType::Float64).unwrap(),
        cast(&number, &DataType::Decimal256(76, 2)).unwrap(),
        cast(&number, &DataType::Int16).unwrap(),
        number,
        short,
        long,
        Arc::new(record),
        Arc::new(list),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn different_values_are_counted_once((rows, filtered, batch_rows) in table()) {
        let words: Vec<_> = rows.iter().map(|row| row.0).collect();
        for values in columns(&words) {
            let input = input(&rows, filtered, vec![Arc::clone(&values)]);
            let aggregate = count_distinct("count(DISTINCT x)", values.data_type()).unwrap();
            let texts = texts(&values);
            check(&*aggregate, &input, batch_rows, |rows| {
                let different: BTreeSet<_> = rows.iter().map(|row| &texts[*row]).collect();
                Ok(Some(different.len().to_string()))
            });
        }
    }
}

#[test]
fn pairs_are_counted_until_they_are_drained() {
    let words: Vec<_> = (0..100_000i64).map(|row| Some(row % 50_000)).collect();
    let ids: Vec<_> = (0..100_000).map(|row| GroupId(row % 10)).collect();
    let values = column(&words, &DataType::Int64);
    let aggregate = count_distinct("count(DISTINCT x)", &DataType::Int64).unwrap();
    let mut states = aggregate.states().unwrap();
    states
        .update(&[values], None, Groups::Ids(&ids), 10)
        .unwrap();
    // Value, group and hash.
    assert!(states.appended_bytes() >= 20 * 50_000, "{}", states.bytes());
    assert!(states.bytes() >= states.appended_bytes() + states.used_bytes());
    let partial = states.drain_partial(10).unwrap();
    assert_eq!(states.appended_bytes(), 0);
    let ids: Vec<_> = (0..10).map(GroupId).collect();
    for _ in 0..2 {
        states.merge(&partial, Groups::Ids(&ids), 10).unwrap();
    }
    let counts = states.drain_final(10).unwrap();
    assert_eq!(texts(&counts), vec![Some("5000".to_owned()); 10]);
    assert_eq!(states.appended_bytes(), 0);
}
