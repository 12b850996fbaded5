//! Values that SQL brings to one type, brought to the right one before DataFusion chooses.
//!
//! In: a plan before DataFusion's type coercion. Out: the same plan; operands of comparisons, IN, BETWEEN and CASE, its
//! results and the arguments of COALESCE and its kin have types that DataFusion compares without loss.
//! Invariant: names of columns stay; operands that DataFusion brings to one type without loss are not touched.
//! Not here: which type is right (decimals.rs, beside_integers.rs, rounded.rs, timestamps.rs); operands of arithmetic that is not
//! compared.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Case, DmlStatement, Expr, ExprSchemable, Join, LogicalPlan, Operator, not,
};

use crate::expr::columns::is_comparison;
use crate::optimizer::fixes::types::mixed_types::{refuse_assigned, refuse_compared, refuse_mixed};
use crate::optimizer::fixes::types::{
    beside_integers, decimal_columns, decimals, nested_literals, rounded, timestamps,
};
use crate::optimizer::fixes::{bare, each_plan};

/// Functions whose arguments are brought to one type.
const OF_ONE_TYPE: [&str; 6] = ["coalesce", "nullif", "nvl", "ifnull", "greatest", "least"];

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, fix)
}

fn fix(mut plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let has_new_keys = match &mut plan {
        LogicalPlan::Join(join) => {
            beside_integers::in_keys(join)? | decimal_columns::in_keys(join)?
        }
        _ => false,
    };
    let schema = in_scope(&plan)?;
    let names = NamePreserver::new(&plan);
    let settled = matches!(plan, LogicalPlan::Values(_));
    match &plan {
        LogicalPlan::Join(join) => refuse_keys(join)?,
        LogicalPlan::Dml(written) => refuse_written(written)?,
        _ => {}
    }
    let mut fixed = plan.map_expressions(|expr| match expr {
        // The sets have no names, their columns have.
        Expr::GroupingSet(_) => expr.map_children(|column| fix_named(column, &names, &schema)),
        _ if settled => expr.transform_up(|part| Ok(fix_settled(part, &schema))),
        _ => fix_named(expr, &names, &schema),
    })?;
    fixed.transformed |= has_new_keys;
    Ok(fixed)
}

/// The types of VALUES stand already; what is left are the casts to them, and calls that would lose theirs.
fn fix_settled(mut part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match &mut part {
        Expr::ScalarFunction(call) => {
            let changed = rounded::settle(call, schema);
            Transformed::new_transformed(part, changed)
        }
        _ => decimals::fix_cast(part),
    }
}

/// The columns that a plan's expressions see.
pub(in crate::optimizer::fixes) fn in_scope(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    // Only filters of a scan see columns, and a table may have thousands.
    if let LogicalPlan::TableScan(scan) = plan
        && !scan.filters.is_empty()
    {
        let source = scan.source.schema();
        schema.merge(&DFSchema::try_from_qualified_schema(
            scan.table_name.clone(),
            &source,
        )?);
    }
    Ok(schema)
}

fn fix_named(expr: Expr, names: &NamePreserver, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let name = names.save(&expr);
    let fixed = expr.transform_up(|part| fix_part(part, schema))?;
    Ok(fixed.update_data(|expr| name.restore(expr)))
}

fn fix_part(mut part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut part {
        Expr::BinaryExpr(binary) if is_comparison(binary.op) => {
            compare(&mut [&mut binary.left, &mut binary.right], schema)?
        }
        // The right side first: long sums grow on the left, and each look at their type is a walk.
        Expr::BinaryExpr(binary)
            if binary.op == Operator::Minus && is_temporal(&binary.right, schema) =>
        {
            timestamps::in_one_zone(&mut [&mut binary.left, &mut binary.right], schema)
        }
        Expr::Between(between) if timestamps::has_day_and_clock(between, schema) => {
            let [low, high] = timestamps::halves(between);
            let [low, high] = [fix_part(low, schema)?.data, fix_part(high, schema)?.data];
            let within = low.and(high);
            return Ok(Transformed::yes(match between.negated {
                true => not(within),
                false => within,
            }));
        }
        Expr::Between(between) => compare(
            &mut [&mut between.expr, &mut between.low, &mut between.high],
            schema,
        )?,
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => {
            let of = expr.get_type(schema)?;
            if let Some(field) = subquery.subquery.schema().fields().first() {
                refuse_compared(&[&of, field.data_type()])?;
            }
            beside_integers::beside_subquery(expr, subquery, schema)?
                || decimal_columns::beside_subquery(expr, subquery, schema)?
                || timestamps::beside_subquery(expr, subquery, schema)?
        }
        Expr::InList(list) => {
            let mut operands = vec![list.expr.as_mut()];
            operands.extend(list.list.iter_mut());
            compare(&mut operands, schema)?
        }
        Expr::Case(case) => align_case(case, schema)?,
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.func.name()) => {
            let mut operands: Vec<&mut Expr> = call.args.iter_mut().collect();
            align_results(&mut operands, schema)?
        }
        Expr::ScalarFunction(call) if call.func.name() == "make_array" => {
            let mut items: Vec<&mut Expr> = call.args.iter_mut().collect();
            decimals::align(&mut items, schema)
                || beside_integers::results(&mut items, schema)
                || decimals::align_signs(&mut items, schema)
        }
        Expr::ScalarFunction(call) => {
            beside_integers::in_elements(call, schema)? || rounded::settle(call, schema)
        }
        Expr::Cast(_) | Expr::TryCast(_) => return Ok(decimals::fix_cast(part)),
        _ => false,
    };
    Ok(match changed {
        true => Transformed::yes(part),
        false => Transformed::no(part),
    })
}

fn is_temporal(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| of.is_temporal())
}

pub(in crate::optimizer::fixes) fn align_case(case: &mut Case, schema: &DFSchema) -> Result<bool> {
    let (mut compared, mut results) = (Vec::new(), Vec::new());
    let is_compared = case.expr.is_some();
    compared.extend(case.expr.as_deref_mut());
    for (when, then) in &mut case.when_then_expr {
        compared.extend(is_compared.then_some(when.as_mut()));
        results.push(then.as_mut());
    }
    results.extend(case.else_expr.as_deref_mut());
    let types: Vec<DataType> = results
        .iter()
        .filter_map(|result| result.get_type(schema).ok())
        .collect();
    refuse_mixed(&types.iter().collect::<Vec<_>>(), || "CASE".to_string())?;
    Ok(compare(&mut compared, schema)? | align_results(&mut results, schema)?)
}

/// Operands that are compared, the first with the others, and no result. A day that is far beyond all timestamps may be taken for
/// the last of them, and a literal for another number between the same integers.
fn compare(operands: &mut [&mut Expr], schema: &DFSchema) -> Result<bool> {
    Ok(align(operands, schema)?
        || beside_integers::compared(operands, schema)
        || decimals::align_signs(operands, schema)
        || nested_literals::compared(operands, schema)
        || timestamps::beside_days(operands, schema))
}

/// Results, of which a far day has to stay the day that it is.
fn align_results(results: &mut [&mut Expr], schema: &DFSchema) -> Result<bool> {
    Ok(align(results, schema)?
        || beside_integers::results(results, schema)
        || decimals::align_signs(results, schema)
        || timestamps::with_far_days(results, schema))
}

fn align(operands: &mut [&mut Expr], schema: &DFSchema) -> Result<bool> {
    if operands.len() < 2 {
        return Ok(false);
    }
    // The last first: long sums stand on the left, and each look at their type is a walk.
    let is_told = |of: DataType| of.is_numeric() || of.is_temporal();
    let last = operands.last().map(|operand| operand.get_type(schema));
    if last.is_some_and(|of| of.is_ok_and(is_told)) {
        let types = operands.iter();
        let types: Vec<_> = types
            .filter_map(|operand| operand.get_type(schema).ok())
            .collect();
        refuse_compared(&types.iter().collect::<Vec<_>>())?;
    }
    Ok(decimals::align(operands, schema)
        || timestamps::in_one_zone(operands, schema) | timestamps::align(operands, schema))
}

/// Keys of one type: DataFusion joins a date to the number of its day.
fn refuse_keys(join: &Join) -> Result<()> {
    for (left, right) in &join.on {
        let left = left.get_type(join.left.schema())?;
        let right = right.get_type(join.right.schema())?;
        refuse_compared(&[&left, &right])?;
    }
    Ok(())
}

/// Values of the types of their columns: DataFusion writes 5 into a column of dates as 1970-01-06.
fn refuse_written(written: &DmlStatement) -> Result<()> {
    let LogicalPlan::Projection(projection) = written.input.as_ref() else {
        return Ok(());
    };
    let refuse = |expr: &Expr, schema: &DFSchema| match bare(expr) {
        Expr::Cast(cast) => refuse_assigned(&cast.expr.get_type(schema)?, cast.field.data_type()),
        _ => Ok(()),
    };
    for expr in &projection.expr {
        refuse(expr, projection.input.schema())?;
    }
    if let LogicalPlan::Values(values) = projection.input.as_ref() {
        for value in values.values.iter().flatten() {
            refuse(value, &values.schema)?;
        }
    }
    Ok(())
}
