//! A node that another format planned.
//!
//! In: the header of its message, the message. Out: a node with its columns that fails when it runs, and says why.
//! Invariant: the message stays as it is, so that whoever understands it still does.
//! Not here: formats (mod.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use grouse::node_methods;

use super::foreign;
use super::messages::Header;

/// The node.
#[derive(Debug)]
pub(super) struct ForeignExec {
    message: Vec<u8>,
    version: String,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl ForeignExec {
    pub(super) fn new(
        header: &Header,
        message: Vec<u8>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<ForeignExec> {
        let Some(schema) = &header.schema else {
            return Err(DataFusionError::Plan(foreign(&header.version)));
        };
        let schema = Arc::new(Schema::try_from(schema)?);
        let partitions = usize::try_from(header.partitions).unwrap_or(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(ForeignExec {
            message,
            version: header.version.clone(),
            inputs,
            properties: Arc::new(properties),
        })
    }

    /// The message without its first byte.
    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }
}

impl DisplayAs for ForeignExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignExec: planned by grouse {}", self.version)
    }
}

impl ExecutionPlan for ForeignExec {
    node_methods!(with_new_children, no_expressions);

    fn name(&self) -> &str {
        "ForeignExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.inputs.len() {
            return internal_err!("ForeignExec keeps its inputs");
        }
        Ok(Arc::new(ForeignExec {
            message: self.message.clone(),
            version: self.version.clone(),
            inputs: children,
            properties: Arc::clone(&self.properties),
        }))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Err(DataFusionError::Execution(foreign(&self.version)))
    }
}
