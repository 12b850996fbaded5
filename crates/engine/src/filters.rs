//! Filters with loops of our own.
//!
//! In: a finished physical plan. Out: the same plan, in whose filters `text LIKE '%word%'` and its NOT search views of texts as
//! they lie in memory (likes.rs), and values of one or two bytes and short texts are compared with a literal (compared.rs).
//! Invariant: types, NULLs and results are the host's, which also computes all that come in other forms.
//! Not here: the loops (kernels, `word` and `compare`); FILTER of aggregates; plans for the host's operator. What is known of
//! rows and scans follows from the form of comparisons: the rule leaves those by which scans prune and which say what is constant.

mod likes;
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
use datafusion::physical_expr::expressions::{BinaryExpr, LikeExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use grouse_kernels::word::Word;

use crate::instead::{Way, instead};
use crate::options::{GroupByOperator, SessionOptions};
use crate::rewrite::node_expressions::exchanged;
use compared::Compared;

/// The rule.
#[derive(Debug)]
pub(crate) struct OwnFilters;

impl PhysicalOptimizerRule for OwnFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if SessionOptions::of(config).group_by_operator == GroupByOperator::Host {
            return Ok(plan);
        }
        plan.transform_up(|node| match node.downcast_ref::<DataSourceExec>() {
            Some(scan) => Ok(match in_scan(scan)? {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(node),
            }),
            None if node.is::<FilterExec>() => exchanged(node, &in_own_loops),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "own_filters"
    }

    fn schema_check(&self) -> bool {
        true
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
    let is_free = |of: &OwnLoop| !prunes || matches!(of, OwnLoop::HasWord(..));
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

/// The same for some of the loops.
fn in_loops(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
    is_wanted: &dyn Fn(&OwnLoop) -> bool,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    match expr.downcast_ref::<BinaryExpr>().map(BinaryExpr::op) {
        Some(Operator::And) => expr.map_children(|part| in_loops(part, schema, is_wanted)),
        // Of what has to be true all equalities stay the host's, which knows by them what is constant and so in order.
        Some(Operator::Eq) => Ok(Transformed::no(expr)),
        _ => instead(expr, |expr| {
            OwnLoop::of(expr, Some(schema)).filter(is_wanted)
        }),
    }
}

#[derive(Debug)]
enum OwnLoop {
    /// With a NOT or without.
    HasWord(Box<Word>, bool),
    Compared(Compared),
}

impl OwnLoop {
    /// The loop for an expression over a schema; without one, for what took the place of an expression that has a loop.
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: Option<&Schema>) -> Option<OwnLoop> {
        if let Some(like) = expr.downcast_ref::<LikeExpr>() {
            let word = likes::word_of(like, schema)?;
            return Some(OwnLoop::HasWord(Box::new(word), like.negated()));
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        Compared::of(binary, schema).map(OwnLoop::Compared)
    }
}

impl Way for OwnLoop {
    fn of_other(&self, host: &Arc<dyn PhysicalExpr>) -> Option<OwnLoop> {
        OwnLoop::of(host, None)
    }

    fn computed(&self, host: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ColumnarValue> {
        // What is searched or compared stands first, the literal behind it.
        if let ColumnarValue::Array(column) = host.children()[0].evaluate(batch)? {
            let truths = match self {
                OwnLoop::HasWord(word, negated) => likes::truths(&column, word, *negated),
                OwnLoop::Compared(compared) => compared.truths(&column),
            };
            if let Some(truths) = truths {
                let truths = BooleanArray::new(truths, column.nulls().cloned());
                return Ok(ColumnarValue::Array(Arc::new(truths)));
            }
        }
        host.evaluate(batch)
    }

    fn is_bracketed(&self) -> bool {
        false
    }
}
