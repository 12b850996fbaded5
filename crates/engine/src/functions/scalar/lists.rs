//! Functions of lists, structs and maps that DuckDB has.
//!
//! In: lists, structs, maps. Out: lists, values, numbers.
//! Invariant: places count from 1; a NULL list gives NULL.
//! Not here: aggregates of lists (list_aggregates.rs), functions that take a lambda, `range`, `unnest`.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, ListArray, MapArray, StringViewArray, UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{SortOptions, cast, sort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::core::get_field;
use datafusion::functions_nested::expr_fn::{
    array_compact, array_distinct, array_element, array_min, array_position, cosine_distance,
    inner_product, make_array, map_keys, map_values,
};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, ScalarUDF, cast as cast_to, lit, when};

use super::definition::{CallArguments, CallForm, Definition, only, rows, stands, two};
use super::kinds::{ParameterKind, list_of};
use crate::functions::casts::map_keys::MapParts;
use crate::functions::equal_values::sortable;
use crate::functions::list_membership::has;

const LIST: &[CallForm] = &[&[ParameterKind::List]];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let all = sorted()
        .into_iter()
        .chain(chosen())
        .chain(made())
        .chain(vectors());
    all.chain(structs_and_maps()).map(ScalarUDF::from).collect()
}

fn same(types: &[DataType]) -> Result<DataType> {
    Ok(types[0].clone())
}

fn sorted() -> Vec<Definition> {
    let reversed = rows("list_reverse_sort", LIST, same, |call| {
        each_list(call, |values, _| in_order(values, DESCENDING))
    });
    let grades = rows(
        "list_grade_up",
        LIST,
        |_| Ok(list_of(DataType::Int64)),
        |call| {
            each_list(call, |values, _| {
                let order = sort_to_indices(&sortable(values)?, Some(ASCENDING), None)?;
                let places = order.values().iter().map(|place| i64::from(*place) + 1);
                Ok(Arc::new(Int64Array::from_iter_values(places)))
            })
        },
    );
    let sorted = list_sort_definition();
    vec![
        reversed.also("array_reverse_sort"),
        reversed,
        sorted.also("array_sort"),
        sorted,
        grades.also("array_grade_up"),
        grades.also("grade_up"),
        grades,
    ]
}

fn list_sort_definition() -> Definition {
    const FORMS: &[CallForm] = &[
        &[ParameterKind::List],
        &[ParameterKind::List, ParameterKind::Word],
        &[
            ParameterKind::List,
            ParameterKind::Word,
            ParameterKind::Word,
        ],
    ];
    rows("list_sort", FORMS, same, |call| {
        each_list(call, |values, row| in_order(values, options(call, row)?))
    })
}

/// A list in the order of a sort key.
pub(crate) fn list_in_order(list: Expr, key: &Sort) -> Expr {
    let order = if key.asc { "ASC" } else { "DESC" };
    let nulls = if key.nulls_first { "FIRST" } else { "LAST" };
    let nulls = format!("NULLS {nulls}");
    ScalarUDF::from(list_sort_definition()).call(vec![list, lit(order), lit(nulls)])
}

/// The values of a list as ORDER BY sorts them.
fn in_order(values: &ArrayRef, options: SortOptions) -> Result<ArrayRef> {
    let order = sort_to_indices(&sortable(values)?, Some(options), None)?;
    Ok(take(values, &order, None)?)
}

/// What the second and the third argument say.
fn options(call: &CallArguments, row: usize) -> Result<SortOptions> {
    let mut options = ASCENDING;
    for (at, words) in call.args.iter().enumerate().skip(1) {
        let words = cast(words, &DataType::Utf8View)?;
        let word = words.as_string_view().value(row);
        match (at, word.to_uppercase().as_str()) {
            (1, "ASC") => options.descending = false,
            (1, "DESC") => options.descending = true,
            (2, "NULLS FIRST") => options.nulls_first = true,
            (2, "NULLS LAST") => options.nulls_first = false,
            (1, _) => {
                return Err(call.invalid(format!("the order is 'ASC' or 'DESC', not '{word}'")));
            }
            _ => {
                return Err(call.invalid(format!(
                    "NULL comes 'NULLS FIRST' or 'NULLS LAST', not '{word}'"
                )));
            }
        }
    }
    Ok(options)
}

const DESCENDING: SortOptions = SortOptions {
    descending: true,
    nulls_first: false,
};

const ASCENDING: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// A list per row, made of the list that the first argument has there.
fn each_list(
    call: &CallArguments,
    mut made: impl FnMut(&ArrayRef, usize) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let (lists, nulls) = (call.lists(0), call.nulls());
    let mut parts: Vec<ArrayRef> = Vec::with_capacity(call.rows);
    let mut lengths = Vec::with_capacity(call.rows);
    for row in 0..call.rows {
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        if is_null {
            lengths.push(0);
            continue;
        }
        let part = made(&lists.value(row), row)?;
        lengths.push(part.len());
        parts.push(part);
    }
    let DataType::List(item) = call.returns else {
        return Err(call.invalid("its result is a list"));
    };
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
    let values = match parts.is_empty() {
        true => datafusion::arrow::array::new_empty_array(item.data_type()),
        false => datafusion::arrow::compute::concat(&parts)?,
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(item),
        offsets,
        values,
        nulls,
    )?))
}

fn chosen() -> Vec<Definition> {
    let selected = rows(
        "list_select",
        &[&[ParameterKind::List, ParameterKind::List]],
        same,
        |call| {
            each_list(call, |values, row| {
                let places = call.lists(1).value(row);
                let places = cast(&places, &DataType::Int64)?;
                let places = places.as_primitive::<Int64Type>().iter().map(|place| {
                    let place = usize::try_from(place? - 1).ok()?;
                    (place < values.len()).then_some(place as u32)
                });
                Ok(take(values, &places.collect::<UInt32Array>(), None)?)
            })
        },
    );
    let kept = rows(
        "list_where",
        &[&[ParameterKind::List, ParameterKind::List]],
        same,
        |call| {
            each_list(call, |values, row| {
                let booleans = call.lists(1).value(row);
                let booleans = cast(&booleans, &DataType::Boolean)?;
                let places =
                    booleans
                        .as_boolean()
                        .iter()
                        .enumerate()
                        .filter_map(|(place, is_kept)| {
                            (is_kept == Some(true) && place < values.len()).then_some(place as u32)
                        });
                Ok(take(values, &UInt32Array::from_iter_values(places), None)?)
            })
        },
    );
    let unique = rows(
        "list_unique",
        LIST,
        |_| Ok(DataType::Int64),
        |call| {
            let lists = call.lists(0);
            call.each::<Int64Array, _>(|row| {
                let values = sortable(&lists.value(row))?;
                let mut known = std::collections::HashSet::new();
                for place in (0..values.len()).filter(|place| values.is_valid(*place)) {
                    known.insert(ScalarValue::try_from_array(&values, place)?);
                }
                Ok(Some(known.len() as i64))
            })
        },
    );
    vec![
        selected.also("array_select"),
        selected,
        kept.also("array_where"),
        kept,
        unique.also("array_unique"),
        unique,
        stands("list_min", LIST, |args| Ok(array_min(only(args)))),
        // NULL is no value that a list has.
        stands("list_distinct", LIST, |args| {
            Ok(array_compact(array_distinct(only(args))))
        }),
    ]
}

fn made() -> Vec<Definition> {
    const FORMS: &[CallForm] = &[&[], &[ParameterKind::Any, ParameterKind::Dots]];
    let list = stands("list_value", FORMS, |args| Ok(make_array(args)));
    vec![list.also("list_pack"), list.also("array_value"), list]
}

fn vectors() -> Vec<Definition> {
    const TWO: &[CallForm] = &[&[ParameterKind::List, ParameterKind::List]];
    let product = stands("list_dot_product", TWO, |args| {
        let [a, b] = two(args);
        Ok(inner_product(a, b))
    });
    let similarity = stands("list_cosine_similarity", TWO, |args| {
        let [a, b] = two(args);
        Ok(lit(1.0) - cosine_distance(a, b))
    });
    let distance = stands("list_cosine_distance", TWO, |args| {
        let [a, b] = two(args);
        Ok(cosine_distance(a, b))
    });
    vec![
        product.also("list_inner_product"),
        product.also("array_dot_product"),
        product.also("array_inner_product"),
        product,
        similarity.also("array_cosine_similarity"),
        similarity,
        distance.also("array_cosine_distance"),
        distance,
    ]
}

fn structs_and_maps() -> Vec<Definition> {
    const MAP_KEY: &[CallForm] = &[&[ParameterKind::Map, ParameterKind::Any]];
    // DataFusion has a list of NULL for a key that is not there.
    let extracted = stands("map_extract", MAP_KEY, |args| {
        let [map, key] = two(args);
        let is_there = has(map_keys(map.clone()), key.clone());
        when(is_there, make_array(vec![value_of_key(map, key)])).otherwise(make_array(Vec::new()))
    });
    vec![
        stands(
            "struct_extract",
            &[&[ParameterKind::Struct, ParameterKind::Word]],
            |args| {
                let [of, name] = two(args);
                Ok(get_field().call(vec![of, name]))
            },
        ),
        rows(
            "struct_keys",
            &[&[ParameterKind::Struct]],
            |_| Ok(list_of(DataType::Utf8View)),
            struct_keys,
        ),
        stands("map_contains", MAP_KEY, |args| {
            let [map, key] = two(args);
            Ok(has(map_keys(map), key))
        }),
        extracted.also("element_at"),
        extracted,
        stands("map_extract_value", MAP_KEY, |args| {
            let [map, key] = two(args);
            Ok(value_of_key(map, key))
        }),
        rows("map_from_entries", LIST, map_type, map_from_entries),
    ]
}

/// A map's value of a key, found as a list's items are: of another number type, and -0.0 where the map has 0.0.
pub(crate) fn value_of_key(map: Expr, key: Expr) -> Expr {
    let place = array_position(map_keys(map.clone()), key, lit(1_i64));
    array_element(map_values(map), cast_to(place, DataType::Int64))
}

fn struct_keys(call: &CallArguments) -> Result<ArrayRef> {
    let DataType::Struct(fields) = call.args[0].data_type() else {
        return Err(call.invalid("it takes a struct"));
    };
    let names: ArrayRef = Arc::new(StringViewArray::from_iter_values(
        fields.iter().map(|field| field.name()),
    ));
    let parts: Vec<&dyn Array> = (0..call.rows).map(|_| names.as_ref()).collect();
    let values = match parts.is_empty() {
        true => datafusion::arrow::array::new_empty_array(&DataType::Utf8View),
        false => datafusion::arrow::compute::concat(&parts)?,
    };
    let offsets = OffsetBuffer::from_lengths((0..call.rows).map(|_| names.len()));
    let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
    Ok(Arc::new(ListArray::try_new(
        item,
        offsets,
        values,
        call.nulls(),
    )?))
}

/// The map whose entries a list of structs of two fields has.
fn map_type(types: &[DataType]) -> Result<DataType> {
    let DataType::List(item) = &types[0] else {
        return Ok(DataType::Null);
    };
    let DataType::Struct(fields) = item.data_type() else {
        return Err(not_entries());
    };
    let [key, value] = fields.as_ref() else {
        return Err(not_entries());
    };
    let key = Field::new("key", key.data_type().clone(), false);
    let value = Field::new("value", value.data_type().clone(), true);
    let entries = DataType::Struct(vec![key, value].into());
    Ok(DataType::Map(
        Arc::new(Field::new("entries", entries, false)),
        false,
    ))
}

fn not_entries() -> datafusion::common::DataFusionError {
    crate::error::Error::wrong_type(
        "function 'map_from_entries' takes a list of structs of a key and a value".to_owned(),
    )
    .into()
}

fn map_from_entries(call: &CallArguments) -> Result<ArrayRef> {
    let DataType::Map(entries, is_sorted) = call.returns else {
        return Err(not_entries());
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(not_entries());
    };
    let lists = call.lists(0);
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    let columns = lists.values().as_struct().columns().to_vec();
    if columns[0].null_count() > 0 || lists.values().null_count() > 0 {
        return Err(call.invalid("a key or an entry is NULL"));
    }
    let values = datafusion::arrow::array::StructArray::try_new(fields.clone(), columns, None)?;
    let maps = MapArray::try_new(Arc::clone(entries), offsets, values, nulls, *is_sorted)?;
    MapParts::of(&maps)?.maps(entries, *is_sorted, false)
}
