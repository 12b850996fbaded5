//! A UNION or CASE of numbers and dates is an error.
//!
//! In: a plan before DataFusion's type coercion. Out: the same plan, or the error.
//! Invariant: the error names the place and both types.
//! DataFusion takes 1 for the day after 1970-01-01 where another branch has a date.
//! Not here: other types that have none in common, which DataFusion refuses.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{LogicalPlan, Union};
use datafusion::optimizer::AnalyzerRule;

use crate::error::types::type_name;

/// The rule.
#[derive(Debug)]
pub(in crate::optimizer) struct RefuseMixedUnions;

impl AnalyzerRule for RefuseMixedUnions {
    fn name(&self) -> &str {
        "refuse_mixed_unions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|part| {
            if let LogicalPlan::Union(union) = part {
                check(union)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(plan)
    }
}

fn check(union: &Union) -> Result<()> {
    for index in 0..union.schema.fields().len() {
        let inputs = union.inputs.iter();
        let fields = inputs.filter_map(|input| input.schema().fields().get(index));
        let types: Vec<&DataType> = fields.map(|field| field.data_type()).collect();
        refuse_mixed(&types, || format!("column {} of the UNION", index + 1))?;
    }
    Ok(())
}

/// An error if there are numbers and dates among `types`.
pub(super) fn refuse_mixed(types: &[&DataType], place: impl Fn() -> String) -> Result<()> {
    let number = types.iter().find(|kind| kind.is_numeric());
    let date = types.iter().find(|kind| is_date(kind));
    match (number, date) {
        (Some(number), Some(date)) => plan_err!(
            "{} is {} in one branch and {} in another; cast one of them",
            place(),
            type_name(number),
            type_name(date)
        ),
        _ => Ok(()),
    }
}

fn is_date(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
    )
}
