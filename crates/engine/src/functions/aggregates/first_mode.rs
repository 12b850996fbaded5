//! The most frequent item of a list; of items that are equally frequent the one that comes first.
//!
//! In: lists, such as `array_agg(x ORDER BY y)`. Out: an item of each; NULL of a list without any.
//! Invariant: NULL does not count; -0.0 is 0.0 and all NaN are one value.
//! Not here: `mode(x)`, whose result does not depend on an order (frequent.rs).

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, ListArray, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use grouse_groupby::keys::row::canonical_values;

use crate::error::to_datafusion;
use crate::expr::function_methods::function_methods;

/// The function's name, which nobody writes.
pub(crate) const FIRST_MODE: &str = "first mode";

/// The function, to be registered.
pub(in crate::functions) fn first_mode() -> ScalarUDF {
    ScalarUDF::from(FirstMode {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FirstMode {
    signature: Signature,
}

impl ScalarUDFImpl for FirstMode {
    function_methods!(FIRST_MODE);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::List(item)] => Ok(item.data_type().clone()),
            _ => plan_err!("the mode of an order is of a list"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = args.args[0].to_array(args.number_rows)?;
        let Some(lists) = lists.as_list_opt::<i32>() else {
            return exec_err!("the mode of an order is of a list");
        };
        let places = first_modes(lists)?;
        Ok(ColumnarValue::Array(take(lists.values(), &places, None)?))
    }
}

/// Where the item of each list lies.
fn first_modes(lists: &ListArray) -> Result<UInt64Array> {
    let items = lists.values();
    let nulls = items.logical_nulls();
    let field = SortField::new(items.data_type().clone());
    let values = canonical_values(items).map_err(to_datafusion)?;
    let rows = RowConverter::new(vec![field])?.convert_columns(&[values])?;
    let is_there = |place: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*place));
    let offsets = lists.value_offsets().windows(2).enumerate();
    let places = offsets.map(|(list, ends)| {
        if lists.is_null(list) {
            return None;
        }
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        // Of each value how often it is there, and where first.
        let mut counts: HashMap<&[u8], (u64, usize)> = HashMap::new();
        for place in (start..end).filter(is_there) {
            counts.entry(rows.row(place).data()).or_insert((0, place)).0 += 1;
        }
        let best = counts
            .into_values()
            .max_by(|(one, first), (other, second)| one.cmp(other).then(second.cmp(first)));
        best.map(|(_, place)| place as u64)
    });
    Ok(places.collect())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Float64Type;

    use super::*;

    #[test]
    fn the_first_of_the_most_frequent() {
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(vec![
                Some(3.0),
                Some(1.0),
                Some(1.0),
                Some(3.0),
                None,
                None,
                None,
            ]),
            Some(vec![Some(-0.0), Some(2.0), Some(0.0)]),
            Some(vec![None]),
            Some(vec![]),
            None,
            Some(vec![Some(9.0)]),
        ]);
        let places = first_modes(&lists).unwrap();
        let expected = [Some(0), Some(7), None, None, None, Some(11)];
        assert_eq!(places, UInt64Array::from(expected.to_vec()));
    }
}
