//! Filters with loops of our own.
//!
//! In: a finished physical plan. Out: the same plan, with filters, keys, arguments and projections that are computed faster.
//! `text LIKE '%word%'` and its kin search strings as they lie in memory (searches.rs). In filters, values of one or two
//! bytes and short strings are compared with a literal (compared.rs). Filters below our operator hand on what is left of a batch
//! as it is, or select rows, where the operator counts and adds up.
//! Invariant: types, NULLs and results are DataFusion's, which also computes all that come in other forms.
//! Not here: the loops (kernels, `word`, `like` and `compare`); plans for DataFusion's operator. What is known of rows and scans follows
//! from the form of comparisons: the rule leaves those by which scans prune and which say what is constant.

mod searches;
mod compared;

use std::sync::Arc;

use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::exec::{GroupByExec, SelectingFilterExec};
use crate::expr::plan_expressions::exchanged;
use crate::expr::specialised::{Kernel, specialise};
use crate::runtime::options::{GroupByOperator, SessionOptions};
use compared::LiteralComparison;
use searches::{TextSearch, searched};

/// The rule.
pub(crate) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if SessionOptions::of(config).group_by_operator == GroupByOperator::DataFusion {
        return Ok(plan);
    }
    let plan = plan.transform_up(|node| match node.downcast_ref::<DataSourceExec>() {
        Some(scan) => Ok(match in_scan(scan)? {
            Some(scan) => Transformed::yes(scan),
            None => Transformed::no(node),
        }),
        None if node.is::<FilterExec>() => exchanged(node, &in_own_loops),
        None if node.is::<ProjectionExec>() => exchanged(node, &in_searches),
        None => Ok(Transformed::no(node)),
    });
    let plan = GroupByExec::exchanged_in(plan.data()?, |group_by, _| {
        group_by.with_expressions(&in_searches, &in_searches)
    });
    GroupByExec::exchanged_in(plan?, |group_by, node| {
        // DataFusion's states may keep columns as they come, and with these strings of rows that the filter has left out.
        let keeps_none = group_by.native().iter().all(|is_native| *is_native);
        let input = keeps_none.then(|| handing_on(group_by.children()[0]));
        let input = input.transpose()?.flatten();
        let input = input.map(|input| match group_by.takes_selections() {
            true => selecting(input),
            false => input,
        });
        let over = |input| replace_children_if_necessary(Arc::clone(node), vec![input]);
        input.map(over).transpose()
    })
}

/// Filters hand on half as many rows, or more, without waiting for others, which means copying them, strings included. Of twelve
/// queries five took 0.92 to 0.97 of the time, the others 0.98 to 1.02. Extremes of two strings where every eighth row is left
/// took 0.97; with half of these rows two of short columns took 1.02.
const HANDED_ON_SHARE: usize = 4;

/// The filter below projections so that it hands on smaller batches; none if there is no filter.
fn handing_on(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let rows = (filter.batch_size() / HANDED_ON_SHARE).max(1);
        return Ok(Some(Arc::new(filter.with_batch_size(rows)?)));
    }
    if !node.is::<ProjectionExec>() {
        return Ok(None);
    }
    let below = handing_on(node.children()[0])?;
    let over = |below| replace_children_if_necessary(Arc::clone(node), vec![below]);
    below.map(over).transpose()
}

/// The filter, and the projection above it, as one that selects rows; another node as it is.
fn selecting(node: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match SelectingFilterExec::replacing(&node) {
        Some(selecting) => Arc::new(selecting),
        None => node,
    }
}

/// A scan that itself holds rows against its predicate.
fn in_scan(scan: &DataSourceExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some((config, source)) = scan.downcast_to_file_source::<ParquetSource>() else {
        return Ok(None);
    };
    let options = &source.table_parquet_options().global;
    let Some(predicate) = source.filter().filter(|_| options.pushdown_filters) else {
        return Ok(None);
    };
    // By the form of a comparison a scan that opens a file leaves out what bounds and Bloom filters exclude.
    let prunes = options.pruning || options.enable_page_index || options.bloom_filter_on_read;
    let says_nothing = |of: &OwnLoop| match of {
        OwnLoop::Searched(search) => !search.follows_from_bounds(),
        OwnLoop::Compared(_) => false,
    };
    let is_free = |of: &OwnLoop| !prunes || says_nothing(of);
    let schema = source.table_schema().table_schema();
    let predicate = in_loops(predicate, schema, &is_free)?;
    if !predicate.transformed {
        return Ok(None);
    }
    let source = Arc::new(source.with_predicate(predicate.data));
    let config = FileScanConfigBuilder::from(config.clone()).with_source(source);
    Ok(Some(DataSourceExec::from_data_source(config.build())))
}

fn in_own_loops(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    in_loops(expr, schema, &|_| true)
}

/// Searches alone: other loops paid in filters only where they were measured.
fn in_searches(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    specialise(expr, |expr| {
        TextSearch::of(expr, Some(schema)).map(|search| OwnLoop::Searched(Box::new(search)))
    })
}

/// The same for some of the loops.
fn in_loops(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
    is_wanted: &dyn Fn(&OwnLoop) -> bool,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    match expr.downcast_ref::<BinaryExpr>().map(BinaryExpr::op) {
        Some(Operator::And) => expr.map_children(|part| in_loops(part, schema, is_wanted)),
        // Of what has to be true all equalities stay DataFusion's, which knows by them what is constant and so in order.
        Some(Operator::Eq) => Ok(Transformed::no(expr)),
        _ => specialise(expr, |expr| {
            OwnLoop::of(expr, Some(schema)).filter(is_wanted)
        }),
    }
}

#[derive(Debug)]
enum OwnLoop {
    Searched(Box<TextSearch>),
    Compared(LiteralComparison),
}

impl OwnLoop {
    /// The loop for an expression over a schema; without one, for what took the place of an expression that has a loop.
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: Option<&Schema>) -> Option<OwnLoop> {
        if let Some(search) = TextSearch::of(expr, schema) {
            return Some(OwnLoop::Searched(Box::new(search)));
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        LiteralComparison::of(binary, schema).map(OwnLoop::Compared)
    }
}

impl Kernel for OwnLoop {
    fn rebind(&self, datafusion: &Arc<dyn PhysicalExpr>) -> Option<OwnLoop> {
        OwnLoop::of(datafusion, None)
    }

    fn evaluate(
        &self,
        datafusion: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> Result<ColumnarValue> {
        // What is searched or compared stands first, the literal behind it.
        let subject = match self {
            OwnLoop::Searched(_) => searched(datafusion),
            OwnLoop::Compared(_) => datafusion.children()[0],
        };
        if let ColumnarValue::Array(column) = subject.evaluate(batch)? {
            let booleans = match self {
                OwnLoop::Searched(search) => search.booleans(&column),
                OwnLoop::Compared(compared) => compared.booleans(&column),
            };
            if let Some(booleans) = booleans {
                let booleans = BooleanArray::new(booleans, column.nulls().cloned());
                return Ok(ColumnarValue::Array(Arc::new(booleans)));
            }
        }
        datafusion.evaluate(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{DataType, Field};
    use datafusion::physical_expr::expressions::{col, is_not_null};
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::projection::ProjectionExec;

    #[test]
    fn filters_hand_on_smaller_batches_also_below_projections() -> Result<()> {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let input = Arc::new(EmptyExec::new(Arc::clone(&schema)));
        assert!(handing_on(&(Arc::clone(&input) as _))?.is_none());
        let filter = FilterExec::try_new(is_not_null(col("a", &schema)?)?, input)?;
        let rows = filter.batch_size();
        let named = vec![(col("a", &schema)?, "b".to_string())];
        let plan: Arc<dyn ExecutionPlan> =
            Arc::new(ProjectionExec::try_new(named, Arc::new(filter))?);
        let plan = handing_on(&plan)?.expect("a filter");
        let filter = plan.children()[0].downcast_ref::<FilterExec>();
        let handed_on = filter.expect("the same nodes").batch_size();
        assert_eq!(handed_on, rows / HANDED_ON_SHARE);
        Ok(())
    }
}
