//! DECIMALs and doubles in one column: of a UNION, of VALUES, of a subquery that is compared; in the keys of a join.
//!
//! In: such a column before DataFusion's type coercion. Out: the same as doubles, as operands of comparisons are (decimals.rs).
//! Invariant: literals that a decimal of 15 digits before and after its point holds are no doubles here.
//! DataFusion brings both to DECIMAL(30, 15): 1e-20 is 0 there, and 1e15, NaN and infinity are errors.
//! Not here: columns of decimals, and of doubles, alone.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::logical_plan::Subquery;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, Join, LogicalPlan, Union, Values};

use crate::optimizer::fixes::bare;
use crate::optimizer::fixes::types::decimals::{WrittenNumber, decimal_size};

/// Digits before and after the point of the decimal that DataFusion takes a double for.
const DIGITS: u8 = 15;

/// A literal that loses nothing as that decimal.
fn is_exact(expr: &Expr) -> bool {
    let written = WrittenNumber::of(bare(expr));
    written.is_some_and(|written| written.whole_digits() <= DIGITS && written.scale() <= DIGITS)
}

fn is_decimal(kind: &DataType) -> bool {
    decimal_size(kind).is_some()
}

/// Whether a column of a plan has doubles that are no exact literals.
fn has_doubles(plan: &LogicalPlan, at: usize) -> bool {
    let is_literal = match plan {
        LogicalPlan::Projection(projection) => projection.expr.get(at).is_some_and(is_exact),
        _ => false,
    };
    plan.schema().field(at).data_type().is_floating() && !is_literal
}

/// What a decimal is beside these: of single precision only where no other is there.
fn float_beside(kinds: &[DataType]) -> DataType {
    match kinds.contains(&DataType::Float64) {
        true => DataType::Float64,
        false => DataType::Float32,
    }
}

/// The schema in which these columns are doubles.
fn with_doubles(schema: &DFSchema, columns: &[usize]) -> Result<DFSchema> {
    with_type(schema, columns, &DataType::Float64)
}

/// The schema in which these columns have this type.
pub(super) fn with_type(schema: &DFSchema, columns: &[usize], to: &DataType) -> Result<DFSchema> {
    let fields = schema.iter().enumerate().map(|(at, (table, field))| {
        let field: FieldRef = match columns.contains(&at) {
            true => Arc::new(field.as_ref().clone().with_data_type(to.clone())),
            false => Arc::clone(field),
        };
        (table.cloned(), field)
    });
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())
}

/// A UNION whose inputs have doubles in each column in which one of them has.
pub(in crate::optimizer::fixes) fn in_union(union: Union) -> Result<Union> {
    let columns = 0..union.schema.fields().len();
    // The type of a UNION of UNIONs is that of the innermost first input.
    let decimals = |at: usize| {
        let inputs = union.inputs.iter().map(|input| input.schema());
        let mut schemas = inputs.chain([&union.schema]);
        schemas.any(|schema| is_decimal(schema.field(at).data_type()))
    };
    let is_mixed = |at: &usize| {
        let mut inputs = union.inputs.iter();
        decimals(*at) && inputs.any(|input| has_doubles(input, *at))
    };
    let mixed: Vec<usize> = columns.filter(is_mixed).collect();
    if mixed.is_empty() {
        return Ok(union);
    }
    let inputs = union.inputs.into_iter().map(|input| {
        let schema = with_doubles(input.schema(), &mixed)?;
        coerce_plan_expr_for_schema(Arc::unwrap_or_clone(input), &schema).map(Arc::new)
    });
    Ok(Union {
        inputs: inputs.collect::<Result<_>>()?,
        schema: Arc::new(with_doubles(&union.schema, &mixed)?),
    })
}

/// VALUES whose rows have been cast already.
pub(in crate::optimizer::fixes) fn among_values(
    mut values: Values,
) -> Result<Transformed<LogicalPlan>> {
    let nothing = DFSchema::empty();
    let cast_of = |cell: &Expr, kind: &DataType| match bare(cell) {
        Expr::Cast(cast) if cast.field.data_type() == kind => cast
            .expr
            .get_type(&nothing)
            .ok()
            .map(|of| (of, is_exact(&cast.expr))),
        _ => None,
    };
    let is_mixed = |at: &usize| {
        let kind = values.schema.field(*at).data_type();
        let rows = values.values.iter();
        let mut cells = rows.filter_map(|row| cast_of(row.get(*at)?, kind));
        is_decimal(kind) && cells.any(|(of, is_exact)| of.is_floating() && !is_exact)
    };
    let mixed: Vec<usize> = (0..values.schema.fields().len()).filter(is_mixed).collect();
    if mixed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Values(values)));
    }
    for row in &mut values.values {
        for &at in &mixed {
            let value = match std::mem::take(&mut row[at]) {
                Expr::Cast(cast) => *cast.expr,
                other => other,
            };
            row[at] = Expr::Cast(Cast::new(Box::new(value), DataType::Float64));
        }
    }
    values.schema = Arc::new(with_doubles(&values.schema, &mixed)?);
    Ok(Transformed::yes(LogicalPlan::Values(values)))
}

/// Keys of a join, as those of INTERSECT and EXCEPT are; whether one was changed.
pub(in crate::optimizer::fixes) fn in_keys(join: &mut Join) -> Result<bool> {
    let mut changed = false;
    for (left, right) in &mut join.on {
        let kinds = [
            left.get_type(join.left.schema())?,
            right.get_type(join.right.schema())?,
        ];
        if !kinds.iter().any(DataType::is_floating) {
            continue;
        }
        let to = float_beside(&kinds);
        for (key, kind) in [left, right].into_iter().zip(&kinds) {
            if is_decimal(kind) {
                let decimal = Box::new(std::mem::take(key));
                *key = Expr::Cast(Cast::new(decimal, to.clone()));
                changed = true;
            }
        }
    }
    Ok(changed)
}

/// A decimal beside a subquery of doubles, or the other way round; whether one was changed.
pub(in crate::optimizer::fixes) fn beside_subquery(
    expr: &mut Expr,
    subquery: &mut Subquery,
    schema: &DFSchema,
) -> Result<bool> {
    let of = expr.get_type(schema)?;
    let plan = &subquery.subquery;
    let Some(column) = plan.schema().fields().first() else {
        return Ok(false);
    };
    if is_decimal(&of) && has_doubles(plan, 0) {
        let to = float_beside(std::slice::from_ref(column.data_type()));
        let decimal = Box::new(std::mem::take(expr));
        *expr = Expr::Cast(Cast::new(decimal, to));
        return Ok(true);
    }
    if !of.is_floating() || is_exact(expr) || !is_decimal(column.data_type()) {
        return Ok(false);
    }
    let doubles = with_type(plan.schema(), &[0], &float_beside(&[of]))?;
    let plan = coerce_plan_expr_for_schema(plan.as_ref().clone(), &doubles)?;
    subquery.subquery = Arc::new(plan);
    Ok(true)
}
