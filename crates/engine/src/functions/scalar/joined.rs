//! Structs and maps put together: `struct_concat`, `map_concat`.
//!
//! In: structs, or maps of one type. Out: a struct with the fields of all, a map with the entries of all.
//! Invariant: a field or key that occurs twice in structs is an error. Of a key in several maps the last value counts, at the
//! place of the first. A NULL map has no entries.
//! Not here: struct_pack and struct_insert, which are written by these (sql/short_forms.rs).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, MapArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{interleave, nullif};
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::ScalarUDF;

use super::definition::{CallArguments, rows};
use super::kinds::ParameterKind;

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let structs = rows(
        "struct_concat",
        &[&[ParameterKind::Struct, ParameterKind::Dots]],
        fields_of_all,
        struct_concat,
    );
    let maps = rows(
        "map_concat",
        &[&[ParameterKind::Map, ParameterKind::Dots]],
        type_of_all,
        map_concat,
    );
    vec![structs.into(), maps.into()]
}

fn fields_of_all(types: &[DataType]) -> Result<DataType> {
    let mut all: Vec<Arc<Field>> = Vec::new();
    for of in types {
        let DataType::Struct(fields) = of else {
            return plan_err!("struct_concat takes structs");
        };
        for field in fields {
            if all
                .iter()
                .any(|other| other.name().eq_ignore_ascii_case(field.name()))
            {
                return plan_err!(
                    "struct_concat: the field '{}' is in two structs",
                    field.name()
                );
            }
            // Of a NULL struct every field is.
            all.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        }
    }
    Ok(DataType::Struct(Fields::from(all)))
}

fn struct_concat(call: &CallArguments) -> Result<ArrayRef> {
    let DataType::Struct(fields) = call.returns else {
        return Err(call.invalid("it makes a struct"));
    };
    let mut columns = Vec::with_capacity(fields.len());
    for of in &call.args {
        let of = of.as_struct();
        for column in of.columns() {
            columns.push(match of.nulls() {
                Some(valid) => nullif(column, &BooleanArray::new(!valid.inner(), None))?,
                None => Arc::clone(column),
            });
        }
    }
    let whole = StructArray::try_new_with_length(fields.clone(), columns, None, call.rows)?;
    Ok(Arc::new(whole))
}

fn type_of_all(types: &[DataType]) -> Result<DataType> {
    let [first, others @ ..] = types else {
        return plan_err!("map_concat takes maps");
    };
    match others.iter().find(|of| !of.equals_datatype(first)) {
        None => Ok(first.clone()),
        Some(_) => plan_err!("map_concat takes maps of one type; cast their values to one"),
    }
}

fn map_concat(call: &CallArguments) -> Result<ArrayRef> {
    let maps: Vec<&MapArray> = call.args.iter().map(|map| map.as_map()).collect();
    let (mut places, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..call.rows {
        let start = places.len();
        let mut known: HashMap<ScalarValue, usize> = HashMap::new();
        for (of, map) in maps.iter().enumerate().filter(|(_, map)| map.is_valid(row)) {
            let ends = map.value_offsets();
            for entry in ends[row] as usize..ends[row + 1] as usize {
                match known.entry(ScalarValue::try_from_array(map.keys(), entry)?) {
                    Entry::Occupied(known) => places[*known.get()] = (of, entry),
                    Entry::Vacant(new) => {
                        new.insert(places.len());
                        places.push((of, entry));
                    }
                }
            }
        }
        lengths.push(places.len() - start);
        valid.push(maps.iter().any(|map| map.is_valid(row)));
    }
    let DataType::Map(entries, is_sorted) = call.returns else {
        return Err(call.invalid("it makes a map"));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(call.invalid("it makes a map"));
    };
    let keys: Vec<&dyn Array> = maps.iter().map(|map| map.keys().as_ref()).collect();
    let values: Vec<&dyn Array> = maps.iter().map(|map| map.values().as_ref()).collect();
    let columns = vec![interleave(&keys, &places)?, interleave(&values, &places)?];
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries),
        OffsetBuffer::from_lengths(lengths),
        StructArray::try_new(fields.clone(), columns, None)?,
        Some(NullBuffer::from(valid)),
        *is_sorted,
    )?))
}
