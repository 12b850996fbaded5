//! `x BETWEEN low AND high` where x may differ each time it is computed.
//!
//! In: three values. Out: whether the first lies between the others.
//! Invariant: x is computed once; DataFusion makes two comparisons of it, each with an x of its own.
//! Not here: BETWEEN of anything else, which scans can compare.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::compute::and_kleene;
use datafusion::arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::null_as_args;

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

static BETWEEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(Between {
        signature: Signature::user_defined(Volatility::Immutable),
    }))
});

/// `x BETWEEN low AND high`.
pub(crate) fn between(x: Expr, low: Expr, high: Expr) -> Expr {
    BETWEEN.call(vec![x, low, high])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Between {
    signature: Signature,
}

impl ScalarUDFImpl for Between {
    function_methods!("between");

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [x, low, high] = types else {
            return plan_err!("BETWEEN compares one value with two");
        };
        let common = comparison_coercion(x, low);
        match common.and_then(|common| comparison_coercion(&common, high)) {
            Some(common) => Ok(vec![common; 3]),
            None => plan_err!("BETWEEN cannot compare {x} with {low} and {high}"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), DataType::Boolean, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = |at: usize| args.args[at].to_array(args.number_rows);
        let (x, low, high) = (value(0)?, value(1)?, value(2)?);
        let between = and_kleene(&gt_eq(&x, &low)?, &lt_eq(&x, &high)?)?;
        Ok(ColumnarValue::Array(Arc::new(between)))
    }
}

portable!(Between, "between"; signature: Signature::user_defined(Volatility::Immutable));
