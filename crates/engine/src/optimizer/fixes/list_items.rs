//! `array_agg(DISTINCT x)[2]`: an item of a list that an aggregate makes.
//!
//! In: an access in brackets while DataFusion plans an expression. Out: `array_element` of the aggregate.
//! Invariant: DataFusion's way, `nth_value`, is taken where it has the same answer: of all values, at a place that is written and
//! not 0. It knows no DISTINCT, and a place 0 or a computed one is an error to it.
//! Not here: parts of strings and JSON (text_parts.rs).

use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, GetFieldAccess};

/// The planner of such accesses; it leaves others to DataFusion's.
#[derive(Debug)]
pub(in crate::optimizer) struct ListItems;

impl ExprPlanner for ListItems {
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        _: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        match (&access.expr, &access.field_access) {
            (Expr::AggregateFunction(list), GetFieldAccess::ListIndex { key })
                if list.func.name() == "array_agg" && (list.params.distinct || !is_place(key)) =>
            {
                let item = array_element(access.expr.clone(), key.as_ref().clone());
                Ok(PlannerResult::Planned(item))
            }
            _ => Ok(PlannerResult::Original(access)),
        }
    }
}

fn is_place(key: &Expr) -> bool {
    matches!(key, Expr::Literal(ScalarValue::Int64(Some(place)), _) if *place != 0)
}
