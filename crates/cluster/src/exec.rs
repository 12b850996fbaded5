//! The nodes of a client's plan that say where the plan below them runs: on the cluster, or here after all.
//!
//! In: a plan that is distributed, and a connection; or a plan that is not, and why. Out: its rows.
//! Invariant: the plan below `ClusterExec` never runs here. It is there to be shown and encoded.
//! Not here: which of the two (placement.rs).

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::protobuf::operator_metric::Metric;
use ballista_core::serde::protobuf::{JobStageMetrics, KeyValuePair};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, Gauge, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec;
use futures::stream::{self, StreamExt, TryStreamExt};
use grouse::distribution::only_input;
use grouse::node_methods;

use crate::codec::codec;
use crate::scheduler::{Executors, Job, Scheduler, StagesOver};
use crate::stages::stages;

/// How many parts of a result are asked for at a time.
const PARTS_AHEAD: usize = 2;

/// A plan that the executors of a cluster run.
#[derive(Debug)]
pub struct ClusterExec {
    plan: Arc<dyn ExecutionPlan>,
    scheduler: Scheduler,
    settings: Arc<[KeyValuePair]>,
    figures: Figures,
    stages: usize,
    vcores: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// Whether somebody reads what the stages did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// EXPLAIN ANALYZE does.
    Wanted,
    /// Nobody.
    Unread,
}

impl Figures {
    /// Those of a statement's plan. DataFusion puts the node that shows figures above a plan after all rules.
    pub fn of(statement: &LogicalPlan) -> Figures {
        match statement {
            LogicalPlan::Analyze(_) => Figures::Wanted,
            _ => Figures::Unread,
        }
    }
}

impl ClusterExec {
    /// `plan` on the cluster of `scheduler`, whose executors have so many vcores.
    pub fn new(
        plan: Arc<dyn ExecutionPlan>,
        scheduler: Scheduler,
        vcores: usize,
        settings: Arc<[KeyValuePair]>,
        figures: Figures,
    ) -> ClusterExec {
        let properties = plan.properties();
        // Parts of a result come one after the other: with one, its order stays.
        let equivalences = match properties.output_partitioning().partition_count() {
            1 => properties.equivalence_properties().clone(),
            _ => EquivalenceProperties::new(plan.schema()),
        };
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        ClusterExec {
            stages: stages(&plan),
            plan,
            scheduler,
            settings,
            figures,
            vcores,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for ClusterExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClusterExec { stages, vcores, .. } = self;
        let address = self.scheduler.address();
        write!(
            f,
            "ClusterExec: address={address}, vcores={vcores}, stages={stages}"
        )
    }
}

impl ExecutionPlan for ClusterExec {
    node_methods!(with_new_children, no_expressions);

    fn name(&self) -> &'static str {
        "ClusterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(ClusterExec::new(
            only_input(self.name(), children)?,
            self.scheduler.clone(),
            self.vcores,
            Arc::clone(&self.settings),
            self.figures,
        )))
    }

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("ClusterExec has one partition, not {}", partition + 1);
        }
        let plan = Arc::clone(&self.plan);
        let plan = physical_plan_to_bytes_with_extension_codec(plan, codec().as_ref())?.to_vec();
        let running = Running {
            scheduler: self.scheduler.clone(),
            settings: self.settings.to_vec(),
            figures: self.figures,
            stages: self.stages,
            metrics: self.metrics.clone(),
            schema: self.schema(),
        };
        let rows = stream::once(running.rows(plan)).try_flatten();
        let schema = self.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// One execution.
struct Running {
    scheduler: Scheduler,
    settings: Vec<KeyValuePair>,
    figures: Figures,
    stages: usize,
    metrics: ExecutionPlanMetricsSet,
    schema: SchemaRef,
}

impl Running {
    async fn rows(
        self,
        plan: Vec<u8>,
    ) -> Result<impl stream::Stream<Item = Result<RecordBatch>> + Send> {
        let gauge = |name| MetricBuilder::new(&self.metrics).global_gauge(name);
        let (stages, over) = (gauge("stages"), gauge("stages_over"));
        stages.set(self.stages);
        let mut job = self.scheduler.submit(plan, self.settings).await?;
        let places = job.run(|so_far| show(so_far, &stages, &over)).await?;
        over.set(stages.value());
        if self.figures == Figures::Wanted {
            for stage in job.figures().await {
                count(&stage, &self.metrics);
            }
        }
        let output = BaselineMetrics::new(&self.metrics, 0);
        let (job, executors) = (Arc::new(job), Arc::new(Executors::default()));
        let parts = stream::iter(places).map(move |place| {
            let (job, executors) = (Arc::clone(&job), Arc::clone(&executors));
            async move { Ok::<_, DataFusionError>(kept(job.rows(&executors, place).await?, job)) }
        });
        let schema = self.schema;
        Ok(parts.buffered(PARTS_AHEAD).try_flatten().map(move |batch| {
            let batch = under(&schema, &batch?)?;
            output.record_output(batch.num_rows());
            Ok(batch)
        }))
    }
}

/// The rows, and their job as long as they are read.
fn kept(
    rows: SendableRecordBatchStream,
    job: Arc<Job>,
) -> impl stream::Stream<Item = Result<RecordBatch>> + Send {
    rows.map(move |batch| {
        let _kept = &job;
        batch
    })
}

/// The batch as the plan says it is: the wire leaves out what a schema says of itself.
fn under(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().to_vec();
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

fn show(so_far: StagesOver, stages: &Gauge, over: &Gauge) {
    stages.set(so_far.stages);
    over.set(so_far.over);
}

/// What a stage did, as figures of the node: EXPLAIN ANALYZE shows them.
fn count(stage: &JobStageMetrics, metrics: &ExecutionPlanMetricsSet) {
    let add = |what: &str, figure: u64| {
        let name = format!("stage{}_{what}", stage.stage_id);
        let figure = usize::try_from(figure).unwrap_or(usize::MAX);
        MetricBuilder::new(metrics).global_counter(name).add(figure);
    };
    let all = stage.operators.iter().flat_map(|of| &of.metrics);
    let sum = |of: fn(&Metric) -> Option<u64>| -> u64 {
        let figures = all.clone().filter_map(|one| one.metric.as_ref());
        figures.filter_map(of).sum()
    };
    let writers = stage.operators.first();
    let writers = writers.into_iter().flat_map(|writer| &writer.metrics);
    let written = |of: fn(&Metric) -> Option<u64>| -> u64 {
        let figures = writers.clone().filter_map(|one| one.metric.as_ref());
        figures.filter_map(of).sum()
    };
    add("partitions", u64::from(stage.partitions));
    add(
        "output_rows",
        written(|metric| match metric {
            Metric::OutputRows(rows) => Some(*rows),
            _ => None,
        }),
    );
    add(
        "output_bytes",
        written(|metric| match metric {
            Metric::OutputBytes(bytes) => Some(*bytes),
            _ => None,
        }),
    );
    add(
        "spilled_bytes",
        sum(|metric| match metric {
            Metric::SpilledBytes(bytes) => Some(*bytes),
            _ => None,
        }),
    );
}

/// A plan that runs here although the session has a cluster.
#[derive(Debug)]
pub struct HereExec {
    plan: Arc<dyn ExecutionPlan>,
    told: Arc<str>,
}

impl HereExec {
    /// `plan`, which runs here for this reason.
    pub fn new(plan: Arc<dyn ExecutionPlan>, reason: &str) -> HereExec {
        HereExec {
            plan,
            told: format!("runs here: {reason}").into(),
        }
    }

    /// `plan`, which is explained and could not be run, for this reason.
    pub fn refused(plan: Arc<dyn ExecutionPlan>, reason: &str) -> HereExec {
        HereExec {
            plan,
            told: format!("runs nowhere: {reason}").into(),
        }
    }
}

impl DisplayAs for HereExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HereExec: {}", self.told)
    }
}

impl ExecutionPlan for HereExec {
    node_methods!(with_new_children, no_expressions);

    fn name(&self) -> &'static str {
        "HereExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(HereExec {
            plan: only_input(self.name(), children)?,
            told: Arc::clone(&self.told),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.plan.execute(partition, context)
    }
}
