//! Ballista's hook for the execution of a task: our rules on the plan as it came, our memory, our end.
//! In: a stage's plan, cut to the partitions of one task. Out: files of its rows; figures.
//! Invariant: the machine's own options and memory hold, whatever the job brought. When the task is over, however that came
//! about, none of its work goes on.
//! Not here: what a plan becomes on a machine (crate `grouse-cluster`), shuffle files (Ballista).

use std::fmt;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::client_pool::BallistaClientPool;
use ballista_core::execution_plans::SortShuffleWriterExec;
use ballista_core::serde::protobuf::{
    RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
};
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::Metric;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{Count, MetricValue, MetricsSet};
use datafusion::prelude::SessionConfig;
use grouse::Session;
use grouse_cluster::{failures, lower, settings};

use crate::connections::Connections;
use crate::shape;
use crate::stop::{StopExec, Task};
use crate::writers::{self, Place};

/// Makes tasks of plans.
pub struct Engine {
    /// Ballista's own, which writes and fetches.
    writing: DefaultExecutionEngine,
    session: Session,
    /// What the writer of an exchange may buffer of one partition.
    writer_bytes: usize,
    /// The machine and the folder that tasks write to, for people.
    disk: Arc<str>,
}

impl Engine {
    /// One whose tasks run within this session's memory and folders, and write to `disk`.
    pub fn new(session: Session, writer_bytes: usize, disk: &str) -> Engine {
        let connections: Arc<dyn BallistaClientPool> = Arc::new(Connections::default());
        Engine {
            writing: DefaultExecutionEngine::with_client_pool(connections),
            session,
            writer_bytes,
            disk: disk.into(),
        }
    }
}

impl ExecutionEngine for Engine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let [came] = plan.children()[..] else {
            return internal_err!("a stage ends in one writer, not in {}", plan.name());
        };
        let came = Arc::clone(came);
        let own = own_config(config.clone(), &self.session)?;
        let lowered = lower(Arc::clone(&came), &self.session, own.options())?;
        let task = Task::new();
        let stopped = Arc::new(StopExec::new(lowered, Arc::clone(&task)));
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let plan = plan.replace_children(vec![stopped], options)?;
        let plan = writers::within(plan, self.writer_bytes)?;
        let place = Place {
            work_dir: work_dir.into(),
            job_id: job_id.clone(),
            stage_id,
            task_id,
            is_shared: plan.is::<SortShuffleWriterExec>(),
        };
        let writing = self.writing.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        )?;
        Ok(Arc::new(Stage {
            writing,
            came,
            task,
            place,
            disk: Arc::clone(&self.disk),
            written_bytes: Count::new(),
            session: self.session.clone(),
        }))
    }
}

/// One task's part of a stage.
struct Stage {
    writing: Arc<dyn QueryStageExecutor>,
    came: Arc<dyn ExecutionPlan>,
    task: Arc<Task>,
    place: Place,
    disk: Arc<str>,
    /// In the files of its rows, as they lie on disk.
    written_bytes: Count,
    session: Session,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").finish_non_exhaustive()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.writing)
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for Stage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        // Also where this future is dropped, which is all that Ballista does to cancel.
        let _ending = self.task.ending();
        let context = Arc::new(own_context(&context, &self.session)?);
        let running = Arc::clone(&context);
        let written = self.writing.execute_query_stage(task_id, running).await;
        let parts = match written {
            Ok(parts) => parts,
            Err(error) => {
                self.place.clear();
                return Err(self.told(error, context).await);
            }
        };
        let bytes = self.place.written(&parts);
        self.written_bytes
            .add(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(parts)
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let writer = self.writing.collect_plan_metrics().into_iter().next();
        let writer = writer.iter().map(|figures| {
            let mut known = shape::known(figures);
            let bytes = MetricValue::OutputBytes(self.written_bytes.clone());
            known.push(Arc::new(Metric::new(bytes, None)));
            known
        });
        writer
            .chain(shape::in_shape_of(&self.came, self.task.ran()))
            .collect()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.writing.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.writing.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.writing.collect_column_stats()
    }
}

impl Stage {
    /// What is told of an error of this part.
    async fn told(&self, error: DataFusionError, context: Arc<TaskContext>) -> DataFusionError {
        let located = async |error| match self.task.ran() {
            Some(plan) => Session::located(error, plan, context).await,
            None => error,
        };
        failures::told(error, &self.disk, located).await
    }
}

/// The job's options with those of this machine in their places.
fn own_config(mut config: SessionConfig, session: &Session) -> Result<SessionConfig> {
    let own = session.context().copied_config();
    settings::restore(config.options_mut(), own.options())?;
    Ok(config)
}

/// What the task runs within: the job's functions and options, the session's memory, disks and stores.
fn own_context(context: &TaskContext, session: &Session) -> Result<TaskContext> {
    Ok(TaskContext::new(
        context.task_id(),
        context.session_id(),
        own_config(context.session_config().clone(), session)?,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        session.context().runtime_env(),
    ))
}
