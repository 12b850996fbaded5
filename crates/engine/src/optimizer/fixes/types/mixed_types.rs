//! A UNION or CASE of numbers and dates is an error, and so are comparisons of them and values for columns of the other type.
//!
//! In: a plan before DataFusion's type coercion. Out: the same plan, or the error.
//! Invariant: the error names both types.
//! DataFusion takes 1 for the day after 1970-01-01 where the other side is a date.
//! Not here: other types that have none in common, which DataFusion refuses; casts that are written.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{LogicalPlan, Union};

use crate::error::Error;
use crate::error::types::type_name;

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    plan.apply_with_subqueries(|part| {
        if let LogicalPlan::Union(union) = part {
            check(union)?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(plan)
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

/// A number and a date among `types`, in their order.
fn mixed<'a>(types: &[&'a DataType]) -> Option<[&'a DataType; 2]> {
    let number = types.iter().position(|kind| kind.is_numeric())?;
    let date = types.iter().position(|kind| is_date(kind))?;
    Some([number.min(date), number.max(date)].map(|at| types[at]))
}

/// An error if values of `types` are compared and there are numbers and dates among them.
pub(in crate::optimizer::fixes) fn refuse_compared(types: &[&DataType]) -> Result<()> {
    match mixed(types) {
        Some([one, other]) => Err(DataFusionError::from(Error::wrong_type(format!(
            "{} and {}: these types cannot be compared; cast one side",
            type_name(one),
            type_name(other)
        )))),
        None => Ok(()),
    }
}

/// An error if a number is written into a column of dates, or a date into one of numbers.
pub(in crate::optimizer::fixes) fn refuse_assigned(
    value: &DataType,
    column: &DataType,
) -> Result<()> {
    match mixed(&[value, column]) {
        Some(_) => plan_err!(
            "Types don't match and no valid cast exists, received data of type {value} for field of type {column}"
        ),
        None => Ok(()),
    }
}

/// An error if there are numbers and dates among `types`.
pub(in crate::optimizer::fixes) fn refuse_mixed(
    types: &[&DataType],
    place: impl Fn() -> String,
) -> Result<()> {
    match mixed(types) {
        Some([number, date]) => plan_err!(
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
