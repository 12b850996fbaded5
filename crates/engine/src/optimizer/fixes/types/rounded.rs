//! `round(decimal, places)` has one type from the first rule to the last.
//!
//! In: a call, before anything beside it is brought to its type. Out: the same call. A literal for the places is an INT, as
//! DataFusion would cast it; for other places it is a `round` whose type does not ask what they are.
//! Invariant: the type is the one that the call has in the plan of the statement. DataFusion's type follows places that are a
//! literal. Its type coercion casts the literal, so that it is none, and folds the cast later. So it is DECIMAL(10, 1), then
//! DECIMAL(11, 2), then DECIMAL(10, 1), while what stands beside the call was brought to the second. `1 + 0` and columns of
//! an inner query become literals in the same way.
//! Not here: `round` of other types, `trunc`, `ceil` and `floor`, whose types do not ask for literals.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, ReturnFieldArgs, ScalarUDF, ScalarUDFImpl};

use crate::functions::wrapped::as_wrapped;
use crate::wire::portable;

/// Settles the type of a call. False if it is left to DataFusion.
pub(in crate::optimizer::fixes) fn settle(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let [value, places] = call.args.as_mut_slice() else {
        return false;
    };
    if call.func.name() != "round" || !is_decimal(value, schema) {
        return false;
    }
    match places {
        Expr::Literal(ScalarValue::Int32(_), _) => false,
        Expr::Literal(literal, _) => match literal.cast_to(&DataType::Int32) {
            Ok(int) if is_count(literal) => {
                *literal = int;
                true
            }
            _ => false,
        },
        _ if call.func.inner().downcast_ref::<FixedRound>().is_some() => false,
        _ => {
            let fixed = FixedRound(Arc::clone(&call.func));
            call.func = Arc::new(ScalarUDF::new_from_impl(fixed));
            true
        }
    }
}

fn is_decimal(value: &Expr, schema: &DFSchema) -> bool {
    let kind = value.get_type(schema);
    kind.is_ok_and(|kind| kind.is_decimal())
}

fn is_count(literal: &ScalarValue) -> bool {
    let kind = literal.data_type();
    kind.is_integer() || kind.is_null()
}

/// DataFusion's `round` of places that differ by row, also where they turn out not to.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct FixedRound(Arc<ScalarUDF>);

impl ScalarUDFImpl for FixedRound {
    as_wrapped!(0: name, signature, is_strict, return_type, invoke_with_args, output_ordering);

    /// As if no argument were a literal.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let unknown = vec![None; args.arg_fields.len()];
        self.0.return_field_from_args(ReturnFieldArgs {
            arg_fields: args.arg_fields,
            scalar_arguments: &unknown,
        })
    }
}

portable!(FixedRound, "fixed_round", 0: scalar_function);
