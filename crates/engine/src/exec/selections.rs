//! A filter below a group-by that says which rows it leaves, where they are most of a batch, instead of copying them.
//!
//! In: a filter of DataFusion's, perhaps with a projection above it. Out: to the group-by, batches with one more column, which
//! says of each row whether the filter leaves it; to anybody else what DataFusion's nodes hand out.
//! Invariant: an error in what is computed of a row that the filter leaves out is none. Of batches of which fewer rows are
//! left, copies come as from DataFusion's filter, several of them as one batch.
//! Not here: who has a filter select rows (filters.rs), what becomes of the others (`grouse_groupby`, build/pre_aggregation.rs).
//!
//! Where rows are added up by code, those that nobody wants get a code of their own, which costs less than copying all others.
//! A count and a sum by a short string, of whose four values a filter leaves one out, take 0.9 of the time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{HigherOrderFunctionExpr, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::coalesce::LimitedBatchCoalescer;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, RatioMetrics,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{Stream, StreamExt};

use super::recording_filter::RecordedPredicate;
use crate::expr::columns::without_nulls;
use crate::expr::distinct_values::{is_coded, is_once_per_value};
use crate::expr::plan_nodes::node_methods;
use crate::scan::parquet::recording::ScanRecording;

/// A batch of which less than one in so many rows is left is copied: what is evaluated of the others would be in vain.
const LEFT_MIN: usize = 2;

/// A filter that can select the rows it leaves, instead of copying them.
#[derive(Debug)]
pub(crate) struct SelectingFilterExec {
    filter: Arc<FilterExec>,
    /// The projection above the filter.
    computed: Option<Arc<ProjectionExec>>,
    /// What is evaluated: the filter's predicate, perhaps recorded.
    predicate: Arc<dyn PhysicalExpr>,
    metrics: ExecutionPlanMetricsSet,
}

impl SelectingFilterExec {
    /// In the place of a filter, or of a projection with a filter below; none in that of another node.
    pub fn replacing(node: &Arc<dyn ExecutionPlan>) -> Option<SelectingFilterExec> {
        let computed = node.downcast_ref::<ProjectionExec>();
        let filter = computed.map_or(node, ProjectionExec::input);
        let filter = filter.downcast_ref::<FilterExec>();
        let filter = filter.filter(|filter| filter.fetch().is_none())?;
        let mut computing = computed.into_iter().flat_map(ProjectionExec::expr);
        if !computing.all(|of| suits_others(&of.expr)) {
            return None;
        }
        Some(SelectingFilterExec {
            filter: Arc::new(filter.clone()),
            computed: computed.map(|computed| Arc::new(computed.clone())),
            predicate: Arc::clone(filter.predicate()),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same that tells `recording` what it selects.
    pub fn recorded(&self, recording: &Arc<ScanRecording>) -> SelectingFilterExec {
        let predicate = RecordedPredicate::new(self.filter.predicate(), recording);
        SelectingFilterExec {
            filter: Arc::clone(&self.filter),
            computed: self.computed.clone(),
            predicate: Arc::new(predicate),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// DataFusion's node that it stands for.
    pub fn top(&self) -> Arc<dyn ExecutionPlan> {
        match &self.computed {
            Some(computed) => Arc::clone(computed) as _,
            None => Arc::clone(&self.filter) as _,
        }
    }

    /// Batches of its columns, and perhaps one more, which [`split_selection`] takes off.
    pub(super) fn execute_selecting(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SelectedBatches> {
        let schema = self.schema();
        let selection = Field::new("is_left", DataType::Boolean, false);
        let fields = schema.fields().iter().map(Arc::clone);
        let fields: Vec<FieldRef> = fields.chain([Arc::new(selection)]).collect();
        let rows = self.filter.batch_size();
        let projection = self.filter.projection().as_ref();
        Ok(SelectedBatches {
            input: Some(self.filter.input().execute(partition, context)?),
            predicate: Arc::clone(&self.predicate),
            projection: projection.map(|places| places.to_vec()),
            computed: self.computed.clone(),
            schema: Arc::new(Schema::new(fields)),
            copies: LimitedBatchCoalescer::new(self.filter.schema(), rows, None),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            selectivity: MetricBuilder::new(&self.metrics).ratio_metrics("selectivity", partition),
        })
    }
}

/// True of an expression that may be computed of rows that nobody wants: it is the same whoever else is there, and costs little
/// whatever they have. Of functions a WHERE may be what keeps them from values that are dear, as of `repeat(text, n)`.
pub(super) fn suits_others(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let is_function =
        expr.is::<ScalarFunctionExpr>() || expr.is::<HigherOrderFunctionExpr>() || is_coded(expr);
    let is_cheap = || !is_function && expr.children().into_iter().all(suits_others);
    !is_volatile(expr) && (is_once_per_value(expr) || is_cheap())
}

/// The columns of a batch, and which of its rows are left, if it has a selection beside its `columns` columns.
pub(super) fn split_selection(
    batch: RecordBatch,
    columns: usize,
) -> Result<(RecordBatch, Option<BooleanArray>)> {
    if batch.num_columns() == columns {
        return Ok((batch, None));
    }
    let left = batch.column(columns).as_boolean().clone();
    let places: Vec<usize> = (0..columns).collect();
    Ok((batch.project(&places)?, Some(left)))
}

/// The batches of one partition; copies may come after batches that were read later.
pub(super) struct SelectedBatches {
    /// None when it has ended.
    input: Option<SendableRecordBatchStream>,
    predicate: Arc<dyn PhysicalExpr>,
    projection: Option<Vec<usize>>,
    computed: Option<Arc<ProjectionExec>>,
    /// The columns with the selection.
    schema: SchemaRef,
    /// Rows that are left where they are few, before anything is computed of them.
    copies: LimitedBatchCoalescer,
    metrics: BaselineMetrics,
    selectivity: RatioMetrics,
}

impl SelectedBatches {
    /// The batch, perhaps with a selection, and how many rows are left; none if they are copied.
    fn selected_batch(&mut self, batch: RecordBatch) -> Result<Option<(RecordBatch, usize)>> {
        let rows = batch.num_rows();
        let booleans = self.predicate.evaluate(&batch)?.into_array(rows)?;
        let Some(booleans) = booleans.as_boolean_opt() else {
            return internal_err!("a filter by {}", booleans.data_type());
        };
        let is_left = without_nulls(booleans);
        let batch = match &self.projection {
            Some(places) => batch.project(places)?,
            None => batch,
        };
        let left = is_left.true_count();
        self.selectivity.add_total(rows);
        self.selectivity.add_part(left);
        if left == rows {
            return Ok(Some((self.computed(&batch)?, left)));
        }
        // Where what is computed fails, it may be for the others.
        if left * LEFT_MIN >= rows
            && let Ok(batch) = self.computed(&batch)
            && let Ok(batch) = self.with_selection(&batch, &is_left)
        {
            return Ok(Some((batch, left)));
        }
        let copy = filter_record_batch(&batch, &is_left)?;
        self.copies.push_batch(copy)?;
        Ok(None)
    }

    fn with_selection(&self, batch: &RecordBatch, is_left: &BooleanArray) -> Result<RecordBatch> {
        let selection: ArrayRef = Arc::new(is_left.clone());
        let columns = batch.columns().iter().map(Arc::clone);
        let columns = columns.chain([selection]).collect();
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// What the projection makes of a batch.
    fn computed(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let Some(computed) = &self.computed else {
            return Ok(batch.clone());
        };
        let rows = batch.num_rows();
        let columns = computed.expr().iter();
        let columns = columns.map(|of| of.expr.evaluate(batch)?.into_array(rows));
        let columns = columns.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = computed.schema();
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

impl Stream for SelectedBatches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let timer = self.metrics.elapsed_compute().clone();
        loop {
            if let Some(copies) = self.copies.next_completed_batch() {
                self.metrics.record_output(copies.num_rows());
                let _timer = timer.timer();
                return Poll::Ready(Some(self.computed(&copies)));
            }
            let Some(input) = &mut self.input else {
                return Poll::Ready(None);
            };
            let Some(batch) = ready!(input.poll_next_unpin(context)) else {
                // What it holds is free from now on.
                self.input = None;
                self.copies.finish()?;
                continue;
            };
            let _timer = timer.timer();
            if let Some((batch, left)) = self.selected_batch(batch?)? {
                self.metrics.record_output(left);
                return Poll::Ready(Some(Ok(batch)));
            }
        }
    }
}

impl DisplayAs for SelectingFilterExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_as(format, f)?;
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                if let Some(computed) = &self.computed {
                    let columns = computed.expr().iter().map(ToString::to_string);
                    let columns: Vec<_> = columns.collect();
                    write!(f, ", expr=[{}]", columns.join(", "))?;
                }
                f.write_str(", selection=true")
            }
            DisplayFormatType::TreeRender => Ok(()),
        }
    }
}

impl ExecutionPlan for SelectingFilterExec {
    node_methods!(with_new_children, metrics);

    fn name(&self) -> &'static str {
        "SelectingFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        match &self.computed {
            Some(computed) => computed.properties(),
            None => self.filter.properties(),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.filter.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let recursion = self.filter.apply_expressions(f)?;
        match (&self.computed, recursion) {
            (None, _) | (_, TreeNodeRecursion::Stop) => Ok(recursion),
            (Some(computed), _) => computed.apply_expressions(f),
        }
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.filter.maintains_input_order()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut top = Arc::clone(&self.filter).replace_children(children, options)?;
        if let Some(computed) = &self.computed {
            top = Arc::clone(computed).replace_children(vec![top], options)?;
        }
        match SelectingFilterExec::replacing(&top) {
            Some(selecting) => Ok(Arc::new(selecting)),
            None => internal_err!("DataFusion's filter became another node"),
        }
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // Whoever knows no selections.
        self.top().execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.filter.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        input: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let filtered = self.filter.statistics_from_inputs(input, args)?;
        match &self.computed {
            Some(computed) => computed.statistics_from_inputs(&[filtered], args),
            None => Ok(filtered),
        }
    }
}
