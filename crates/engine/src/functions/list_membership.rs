//! Whether a list has a value, `list_contains(l, x)`: false, not NULL, where a list with a NULL does not have it.
//!
//! In: DataFusion's function. Out: the same; constants and values that are never NULL are searched as IN searches them.
//! Invariant: the answer is NULL of a NULL list or value alone, whether the list is a constant or a column. DataFusion makes
//! `x IN (1, NULL)` of a constant list, which is NULL for another x, and of an empty one false also for NULL.
//! Not here: `x = ANY (list)`, which is NULL in the first case (any_equal.rs).

use std::sync::{Arc, LazyLock};

use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_nested::array_has::array_has_udf;
use datafusion::functions_nested::make_array::make_array_udf;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, in_list, lit,
};

use crate::functions::wrapped::as_wrapped;

static MEMBERSHIP: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Membership(array_has_udf()))));

/// The function.
pub(super) fn membership() -> ScalarUDF {
    MEMBERSHIP.as_ref().clone()
}

/// `list_contains(list, value)`.
pub(super) fn has(list: Expr, value: Expr) -> Expr {
    MEMBERSHIP.call(vec![list, value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Membership(Arc<ScalarUDF>);

impl ScalarUDFImpl for Membership {
    as_wrapped!(
        0: name, aliases, schema_name, signature, return_type, return_field_from_args,
        documentation
    );

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [list, value] = take_function_args(self.name(), args)?;
        if matches!(&list, Expr::Literal(constant, _) if constant.is_null()) {
            let unknown = lit(ScalarValue::Boolean(None));
            return Ok(ExprSimplifyResult::Simplified(unknown));
        }
        Ok(match searched(&list, info)? {
            Some(items) if !items.is_empty() => {
                ExprSimplifyResult::Simplified(in_list(value, items, false))
            }
            _ => ExprSimplifyResult::Original(vec![list, value]),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(args)
    }
}

/// The items that may be equal to a value: those of a constant list that are not NULL, and written ones if none can be.
fn searched(list: &Expr, info: &SimplifyContext) -> Result<Option<Vec<Expr>>> {
    match list {
        Expr::Literal(constant @ (ScalarValue::List(_) | ScalarValue::LargeList(_)), _) => {
            let rows = ScalarValue::convert_array_to_scalar_vec(&constant.to_array()?)?;
            let items = rows.into_iter().flatten().flatten();
            let items = items.filter(|item| !item.is_null());
            Ok(Some(items.map(lit).collect()))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func == &make_array_udf() => {
            for item in args {
                if info.nullable(item)? {
                    return Ok(None);
                }
            }
            Ok(Some(args.clone()))
        }
        _ => Ok(None),
    }
}
