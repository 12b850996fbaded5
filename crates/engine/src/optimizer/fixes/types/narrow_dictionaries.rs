//! Aggregates and windows that keep values of a dictionary with small keys get the values instead.
//!
//! In: a plan before DataFusion's type coercion. Out: the same plan. An argument of `first_value` and its kin whose
//! dictionary has keys of 8 or 16 bits is cast to the type of the values. That is then the type of the result. So are all
//! arguments of a window, and an ORDER BY of the argument itself.
//! Invariant: the names of columns stay. DataFusion collects the groups' values of one batch in one dictionary of the same
//! kind. With keys of 8 bits it has room for the values of 128 groups and is an error beyond. A window gathers those of
//! all rows.
//! Not here: dictionaries with wider keys, which a batch never fills.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan};

use crate::optimizer::fixes::{each_named, each_plan};

/// The aggregates whose result holds values of their argument, gathered in one array.
const KEEP_VALUES: [&str; 4] = ["first_value", "last_value", "nth_value", "array_agg"];

/// The rule.
pub(in crate::optimizer) fn analyze(plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
    each_plan(plan, fix)
}

fn fix(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &plan {
        LogicalPlan::Aggregate(aggregate) => &aggregate.input,
        LogicalPlan::Window(window) => &window.input,
        _ => return Ok(Transformed::no(plan)),
    };
    let schema = input.schema().clone();
    each_named(plan, |part| unpack(part, &schema))
}

fn unpack(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::AggregateFunction(AggregateFunction { func, params })
            if KEEP_VALUES.contains(&func.name()) =>
        {
            unpack_arguments(&mut params.args, &mut params.order_by, schema)
        }
        Expr::WindowFunction(call) => unpack_arguments(&mut call.params.args, &mut [], schema),
        _ => false,
    };
    Ok(match changed {
        true => Transformed::yes(expr),
        false => Transformed::no(expr),
    })
}

/// Whether there was something to cast.
fn unpack_arguments(args: &mut [Expr], order: &mut [Sort], schema: &DFSchema) -> bool {
    let mut changed = false;
    for arg in args {
        if let Ok(DataType::Dictionary(keys, values)) = arg.get_type(schema)
            && is_narrow(&keys)
        {
            let packed = std::mem::take(arg);
            let values = Expr::Cast(Cast::new(Box::new(packed.clone()), *values));
            // With DISTINCT, an order has to be by what is gathered.
            for sort in order.iter_mut().filter(|sort| sort.expr == packed) {
                sort.expr = values.clone();
            }
            *arg = values;
            changed = true;
        }
    }
    changed
}

fn is_narrow(keys: &DataType) -> bool {
    matches!(
        keys,
        DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16
    )
}
