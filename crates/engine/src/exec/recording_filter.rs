//! A filter that tells the condition cache what it leaves of each piece of a file.
//!
//! In: a filter of DataFusion's directly above a scan that is recorded. Out: what DataFusion's filter hands out.
//! Invariant: plans see DataFusion's filter; what its form says of rows (equalities are constants) is not lost.
//! Not here: what is made of it (scan/parquet/recording.rs).
//!
//! It costs one look at the filter's bits per batch.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::expr::plan_nodes::node_methods;
use crate::scan::parquet::recording::ScanRecording;

/// A predicate whose answers are recorded.
#[derive(Debug)]
pub(super) struct RecordedPredicate {
    predicate: Arc<dyn PhysicalExpr>,
    recording: Arc<ScanRecording>,
}

impl RecordedPredicate {
    pub fn new(
        predicate: &Arc<dyn PhysicalExpr>,
        recording: &Arc<ScanRecording>,
    ) -> RecordedPredicate {
        RecordedPredicate {
            predicate: Arc::clone(predicate),
            recording: Arc::clone(recording),
        }
    }
}

impl PartialEq for RecordedPredicate {
    fn eq(&self, other: &Self) -> bool {
        self.predicate.eq(&other.predicate)
    }
}

impl Eq for RecordedPredicate {}

impl Hash for RecordedPredicate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.predicate.hash(state);
    }
}

impl fmt::Display for RecordedPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.predicate.fmt(f)
    }
}

/// Whether a condition holds for any row; what is no answer may.
fn has_true(value: &ColumnarValue) -> bool {
    match value {
        ColumnarValue::Array(array) => array.as_boolean_opt().is_none_or(|of| of.has_true()),
        ColumnarValue::Scalar(ScalarValue::Boolean(holds)) => *holds == Some(true),
        ColumnarValue::Scalar(_) => true,
    }
}

impl PhysicalExpr for RecordedPredicate {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.predicate.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.predicate.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.predicate.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let holds = self.predicate.evaluate(batch)?;
        self.recording.saw(batch, has_true(&holds));
        Ok(holds)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.predicate]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match children.as_slice() {
            [predicate] => Ok(Arc::new(RecordedPredicate::new(predicate, &self.recording))),
            _ => internal_err!("a recorded predicate of {} parts", children.len()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.predicate.fmt_sql(f)
    }
}

/// DataFusion's filter, recorded.
#[derive(Debug)]
pub(crate) struct RecordingFilterExec {
    filter: Arc<FilterExec>,
    /// The same that evaluates a recorded predicate.
    recorded: Arc<FilterExec>,
    recording: Arc<ScanRecording>,
}

impl RecordingFilterExec {
    /// In the place of `filter`.
    pub fn new(filter: &FilterExec, recording: &Arc<ScanRecording>) -> Result<RecordingFilterExec> {
        let predicate = RecordedPredicate::new(filter.predicate(), recording);
        let recorded = FilterExecBuilder::from(filter).with_predicate(Arc::new(predicate));
        Ok(RecordingFilterExec {
            filter: Arc::new(filter.clone()),
            recorded: Arc::new(recorded.build()?),
            recording: Arc::clone(recording),
        })
    }

    /// DataFusion's node that it stands for.
    pub fn top(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.filter) as _
    }
}

impl DisplayAs for RecordingFilterExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_as(format, f)
    }
}

impl ExecutionPlan for RecordingFilterExec {
    node_methods!(with_new_children);

    fn name(&self) -> &'static str {
        "FilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.filter.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.filter.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.filter.apply_expressions(f)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.filter.maintains_input_order()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filter = Arc::clone(&self.filter).replace_children(children, options)?;
        match filter.downcast_ref::<FilterExec>() {
            Some(filter) => Ok(Arc::new(RecordingFilterExec::new(filter, &self.recording)?)),
            None => internal_err!("DataFusion's filter became another node"),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.filter.cardinality_effect()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.recorded.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.recorded.metrics()
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.filter.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.filter.statistics_from_inputs(input, args)
    }
}
