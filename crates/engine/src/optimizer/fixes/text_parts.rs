//! Parts of strings by place: `s[1]`, `s[-1]`, `s[2:3]`, as of lists; parts of JSON, `json(s)[0]`.
//!
//! In: an access in brackets while DataFusion plans an expression. Out: for a text, calls of `substr`, for JSON the arrow.
//! Invariant: places count characters from 1, negative ones from the end; what lies outside is the empty text. Items of JSON count
//! from 0, as the arrow counts them.
//! Not here: lists, structs and maps, which DataFusion plans.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions::unicode::expr_fn::{character_length, substring};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, cast, lit, when};

use crate::functions::{is_json, json_part};

/// The planner of such accesses; it leaves others to DataFusion's.
#[derive(Debug)]
pub(in crate::optimizer) struct TextParts;

impl ExprPlanner for TextParts {
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let is_text = |expr: &Expr| match expr.get_type(schema) {
            Ok(DataType::Dictionary(_, values)) => values.is_string(),
            Ok(data_type) => data_type.is_string(),
            Err(_) => false,
        };
        if !is_text(&access.expr) {
            return Ok(PlannerResult::Original(access));
        }
        let RawFieldAccessExpr { field_access, expr } = access;
        if is_json(&expr) {
            return match field_access {
                GetFieldAccess::ListIndex { key } => {
                    Ok(PlannerResult::Planned(json_part(expr, *key)))
                }
                GetFieldAccess::NamedStructField { name } => {
                    let name = Expr::Literal(name, None);
                    Ok(PlannerResult::Planned(json_part(expr, name)))
                }
                GetFieldAccess::ListRange { .. } => {
                    plan_err!("JSON takes no slices; cast it to a list or to VARCHAR")
                }
            };
        }
        Ok(match field_access {
            GetFieldAccess::ListIndex { key } => {
                PlannerResult::Planned(between(&expr, (*key).clone(), *key)?)
            }
            GetFieldAccess::ListRange {
                start,
                stop,
                stride,
            } => {
                if !matches!(
                    stride.as_ref(),
                    Expr::Literal(ScalarValue::Int64(Some(1)), _)
                ) {
                    return plan_err!("a slice of a text takes no step");
                }
                PlannerResult::Planned(between(&expr, *start, *stop)?)
            }
            other => PlannerResult::Original(RawFieldAccessExpr {
                field_access: other,
                expr,
            }),
        })
    }
}

/// The characters of `text` from one place to another.
fn between(text: &Expr, first: Expr, last: Expr) -> Result<Expr> {
    let first = from_start(text, first)?;
    let last = from_start(text, last)?;
    // Negative counts are errors; a text that begins behind its end has none.
    let count = last - first.clone() + lit(1_i64);
    let count = when(count.clone().lt(lit(0_i64)), lit(0_i64)).otherwise(count)?;
    Ok(substring(text.clone(), first, count))
}

/// A place counted from the start.
fn from_start(text: &Expr, place: Expr) -> Result<Expr> {
    let length = || cast(character_length(text.clone()), DataType::Int64);
    match place {
        Expr::Literal(ScalarValue::Int64(Some(0..)), _) => Ok(place),
        Expr::Literal(ScalarValue::Int64(Some(place)), _) => Ok(length() + lit(place) + lit(1_i64)),
        place => {
            let place = cast(place, DataType::Int64);
            when(
                place.clone().lt(lit(0_i64)),
                length() + place.clone() + lit(1_i64),
            )
            .otherwise(place)
        }
    }
}
