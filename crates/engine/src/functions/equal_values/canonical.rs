//! `canonical(x)`: x in the one form that all values equal to it have.
//!
//! In: values of any type. Out: the same, with one zero, one NaN, and intervals in months, days and time by their length.
//! Invariant: what is canonical already is handed on as it is; NULL stays NULL.
//! Not here: where values have to be canonical (equal_values.rs).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use grouse_groupby::keys::row::canonical_values;

use crate::error::to_datafusion;
use crate::expr::function_methods::function_methods;
use crate::wire::portable;

static CANONICAL: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Canonical::new())));

/// The expression in canonical form.
pub(crate) fn canonical(expr: Expr) -> Result<Expr> {
    Ok(match expr {
        Expr::Literal(value, metadata) => Expr::Literal(canonical_value(&value)?, metadata),
        other => CANONICAL.call(vec![other]),
    })
}

/// True of an expression whose values all are in canonical form.
pub(crate) fn is_canonical(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().is::<Canonical>(),
        Expr::Literal(value, _) => canonical_value(value).is_ok_and(|form| form == *value),
        Expr::Cast(Cast { expr, .. }) => expr.get_type(schema).is_ok_and(|from| from.is_integer()),
        _ => false,
    }
}

/// What a physical expression makes canonical, if it is no more than that.
pub(crate) fn plain(expr: &Arc<dyn PhysicalExpr>) -> Option<&Arc<dyn PhysicalExpr>> {
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match call.args() {
        [plain] if call.fun().inner().is::<Canonical>() => Some(plain),
        _ => None,
    }
}

fn canonical_value(value: &ScalarValue) -> Result<ScalarValue> {
    let column = canonical_values(&value.to_array()?).map_err(to_datafusion)?;
    ScalarValue::try_from_array(&column, 0)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Canonical {
    signature: Signature,
}

impl Canonical {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Canonical {
    function_methods!("canonical");

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = &args.arg_fields[0];
        let (data_type, nullable) = (field.data_type().clone(), field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), data_type, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(canonical_value(value)?),
            ColumnarValue::Array(column) => {
                ColumnarValue::Array(canonical_values(column).map_err(to_datafusion)?)
            }
        })
    }
}

portable!(Canonical, "canonical" => Canonical::new);
