//! CASE and UNION have the type of all their branches, and rows that are written the types of their columns, before anything
//! looks at these types.
//!
//! In: a plan as it was planned. Out: the same plan with the casts that DataFusion's type coercion would add later.
//! Invariant: names stay; a plan whose branches have one type is not touched. DataFusion's planner takes the type of a CASE from
//! its first branch and that of a UNION from its first input. So a cast to it was no cast, did not round, and rows of another
//! type were stored in a table.
//! Not here: which type branches have in common (compared.rs, meanings.rs, DataFusion's rule).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Case, DmlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, WriteOp,
};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

use crate::optimizer::fixes::meanings::as_branches;
use crate::optimizer::fixes::types::beside_integers;
use crate::optimizer::fixes::types::compared::{align_case, in_scope};
use crate::optimizer::fixes::types::decimal_columns;
use crate::optimizer::fixes::types::outer_types;
use crate::optimizer::fixes::{each_named, each_plan};

/// The rule.
pub(in crate::optimizer) fn analyze(
    plan: LogicalPlan,
    config: &ConfigOptions,
) -> Result<LogicalPlan> {
    // What a subquery refers to around it may have got another type.
    outer_types::analyze(each_plan(plan, settled)?, config)
}

fn settled(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        // DataFusion adds a column of ORDER BY to those inputs whose tables have it.
        LogicalPlan::Union(union) if is_uneven(&union) => {
            plan_err!("ORDER BY of a UNION names a column that its result does not have")
        }
        LogicalPlan::Union(union) if is_mixed(&union) => {
            let union = decimal_columns::in_union(beside_integers::in_union(union)?)?;
            TypeCoercionRewriter::coerce_union(union).map(Transformed::yes)
        }
        LogicalPlan::Values(mut values) => match beside_integers::among_values(&mut values)? {
            true => Ok(Transformed::yes(LogicalPlan::Values(values))),
            false => decimal_columns::among_values(values),
        },
        LogicalPlan::Dml(written) => as_columns(written),
        plan => {
            let mut has_case = false;
            plan.apply_expressions(|expr| {
                has_case = has_case || expr.exists(|part| Ok(matches!(part, Expr::Case(_))))?;
                Ok(TreeNodeRecursion::Continue)
            })?;
            if !has_case {
                return Ok(Transformed::no(plan));
            }
            let schema = in_scope(&plan)?;
            each_named(plan, |part| in_case(part, &schema))
        }
    }
}

fn is_uneven(union: &Union) -> bool {
    let columns = union.schema.fields().len();
    let mut inputs = union.inputs.iter();
    inputs.any(|input| input.schema().fields().len() != columns)
}

fn is_mixed(union: &Union) -> bool {
    let types = |plan: &LogicalPlan| -> Vec<DataType> {
        let fields = plan.schema().fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    };
    let own: Vec<DataType> = union
        .schema
        .fields()
        .iter()
        .map(|field| field.data_type().clone())
        .collect();
    union.inputs.iter().any(|input| types(input) != own)
}

fn in_case(part: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match part {
        Expr::Case(mut case) if has_types(&case, schema) => {
            let whens = case.when_then_expr.iter_mut().map(|(_, then)| then);
            let branches = whens.chain(case.else_expr.as_mut());
            as_branches(branches.map(|branch| branch.as_mut()), schema)?;
            align_case(&mut case, schema)?;
            TypeCoercionRewriter::new(schema).f_up(Expr::Case(case))
        }
        part => Ok(Transformed::no(part)),
    }
}

/// A CASE that is an operand has the type of all its branches while the operation is planned.
#[derive(Debug)]
pub(in crate::optimizer) struct SettleOperands;

impl ExprPlanner for SettleOperands {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        for operand in [&mut expr.left, &mut expr.right] {
            if let Expr::Case(_) = operand {
                let case = std::mem::take(operand);
                *operand = in_case(case, schema)?.data;
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Whether the branches of a CASE have several types; not so where one has none yet, as a parameter.
fn has_types(case: &Case, schema: &DFSchema) -> bool {
    let whens = case.when_then_expr.iter().map(|(_, then)| then);
    let branches = whens.chain(case.else_expr.as_ref());
    let types: Result<Vec<DataType>> = branches.map(|branch| branch.get_type(schema)).collect();
    types.is_ok_and(|types| types.windows(2).any(|two| two[0] != two[1]))
}

/// Rows as the columns of the table that they are for.
fn as_columns(mut written: DmlStatement) -> Result<Transformed<LogicalPlan>> {
    let columns = written.target.schema();
    let schema = Arc::clone(written.input.schema());
    let is_written = matches!(written.op, WriteOp::Insert(_) | WriteOp::Update);
    let pairs = || schema.fields().iter().zip(columns.fields());
    let is_settled = pairs().all(|(field, column)| field.data_type() == column.data_type());
    if !is_written || is_settled || schema.fields().len() != columns.fields().len() {
        return Ok(Transformed::no(LogicalPlan::Dml(written)));
    }
    let values = schema.columns().into_iter().zip(pairs());
    let values = values.map(|(value, (field, column))| {
        let value = Expr::Column(value);
        Ok(value
            .cast_to(column.data_type(), &schema)?
            .alias(field.name()))
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    let typed = LogicalPlanBuilder::from(Arc::unwrap_or_clone(written.input)).project(values)?;
    written.input = Arc::new(typed.build()?);
    Ok(Transformed::yes(LogicalPlan::Dml(written)))
}
