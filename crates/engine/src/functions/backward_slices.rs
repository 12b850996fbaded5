//! Parts of lists with a step back, `list_slice(l, 3, 1, -1)`: the last element first.
//!
//! In: DataFusion's function. Out: the same, but where a step goes back the bounds end with the list, as they do where it goes forth.
//! Invariant: what DataFusion gets right stays. Of bounds beyond a list it makes the last or the first element, or none.
//! Not here: steps forth.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::functions_nested::extract::array_slice_udf;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::wrapped::as_wrapped;

static SLICES: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Slices(array_slice_udf()))));

/// Bounds and a step of which every list has nothing.
const NOTHING: [i64; 3] = [2, 1, 1];

/// The function.
pub(super) fn slices() -> ScalarUDF {
    SLICES.as_ref().clone()
}

/// `list[from:to:step]`.
pub(super) fn slice(list: Expr, [from, to, step]: [Expr; 3]) -> Expr {
    SLICES.call(vec![list, from, to, step])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Slices(Arc<ScalarUDF>);

impl ScalarUDFImpl for Slices {
    as_wrapped!(0: name, aliases, schema_name, signature, return_type, return_field_from_args);

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        if let [lists, from, to, step] = arrays.as_slice()
            && let Some(within) = within(lists, [from, to, step])?
        {
            args.args.truncate(1);
            args.args.extend(within.map(ColumnarValue::Array));
        }
        self.0.invoke_with_args(args)
    }
}

/// The bounds within the lists wherever a step goes back; `None` if all go forth.
fn within(lists: &ArrayRef, bounds: [&ArrayRef; 3]) -> Result<Option<[ArrayRef; 3]>> {
    let [from, to, step] = bounds.map(|of| of.as_primitive::<Int64Type>());
    if !step.iter().flatten().any(|step| step < 0) {
        return Ok(None);
    }
    let lengths = cast(&length(lists)?, &DataType::Int64)?;
    let lengths = lengths.as_primitive::<Int64Type>();
    let rows = from.iter().zip(to).zip(step).zip(lengths);
    let rows = rows.map(
        |(((from, to), step), length)| match (from, to, step, length) {
            (Some(from), Some(to), Some(step), Some(length)) if step < 0 => {
                backward([from, to, step], length).map(Some)
            }
            _ => [from, to, step],
        },
    );
    let rows: Vec<[Option<i64>; 3]> = rows.collect();
    let column = |at: usize| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row[at]).collect::<Int64Array>())
    };
    Ok(Some([column(0), column(1), column(2)]))
}

/// The bounds from the later place to the earlier, within a list of `length` elements.
fn backward([from, to, step]: [i64; 3], length: i64) -> [i64; 3] {
    let place = |bound: i64| match bound < 0 {
        true => bound.saturating_add(length + 1),
        false => bound,
    };
    let (from, to) = (place(from).min(length), place(to).max(1));
    match from < to {
        true => NOTHING,
        false => [from, to, step],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_end_with_the_list() {
        fn check(bounds: [i64; 3], length: i64, expected: [i64; 3]) {
            assert_eq!(backward(bounds, length), expected);
        }
        check([3, 1, -1], 2, [2, 1, -1]);
        check([-1, -5, -2], 3, [3, 1, -2]);
        check([-1, 3, -1], 1, NOTHING);
        check([0, 0, -1], 3, NOTHING);
        check([i64::MAX, i64::MIN, i64::MIN], 3, [3, 1, i64::MIN]);
        check([5, 1, -1], 0, NOTHING);
    }
}
