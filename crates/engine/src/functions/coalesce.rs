//! `coalesce` of dates, times or booleans and strings.
//!
//! In: arguments of which some are strings. Out: what the others are: `coalesce(day, '2024-01-01')` is a day, as with `ifnull`.
//! Invariant: all else is DataFusion's, which finds no type for these.
//! Not here: a string that is no date, an error of its cast.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The function.
pub(super) fn own_coalesce() -> ScalarUDF {
    ScalarUDF::new_from_impl(Coalesce(coalesce()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce(Arc<ScalarUDF>);

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.0.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.0.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.0.short_circuits()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types).or_else(|error| {
            let others: Vec<DataType> = types
                .iter()
                .filter(|kind| !kind.is_string() && !kind.is_null())
                .cloned()
                .collect();
            match others.iter().all(is_read_from_text) && others.len() < types.len() {
                true => {
                    let common = self.0.coerce_types(&others)?.swap_remove(0);
                    Ok(vec![common; types.len()])
                }
                false => Err(error),
            }
        })
    }
}

fn is_read_from_text(kind: &DataType) -> bool {
    kind.is_temporal() || *kind == DataType::Boolean
}
