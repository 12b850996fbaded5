//! `tried(x)`: x, which may be NULL as far as anybody knows.
//!
//! In: a value. Out: the same.
//! Invariant: its name is that of the value; what is known of the value's NULLs is not known of it.
//! Not here: which values need it (optimizer/fixes/failing/tried.rs).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

static TRIED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Tried { signature }))
});

/// The value, which is computed wherever it is asked for.
pub(crate) fn tried(value: Expr) -> Expr {
    TRIED.call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Tried {
    signature: Signature,
}

impl ScalarUDFImpl for Tried {
    function_methods!("tried");

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kind = args.arg_fields[0].data_type().clone();
        Ok(Arc::new(Field::new(self.name(), kind, true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(value) => Ok(value),
            None => exec_err!("tried takes a value"),
        }
    }
}

portable!(Tried, "tried"; signature: Signature::any(1, Volatility::Immutable));
