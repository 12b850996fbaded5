//! What DataFusion may rely on in what a node yields.
//!
//! In: a description, the node's columns and stage. Out: equivalences, number of streams, how they come.
//! Invariant: a final stage yields what the whole grouping would have.
//! Not here: what a node wants of its input (node.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_expr::equivalence::{EquivalenceProperties, ProjectionMapping};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{EmissionType, EvaluationType, SchedulingType};
use datafusion::physical_plan::{ExecutionPlanProperties, PlanProperties};

use super::columns::NodeColumns;
use super::stages::Stage;

/// What DataFusion may rely on; a node that is no stage has as many streams as `workers`.
pub(super) fn properties(
    described: &Arc<AggregateExec>,
    columns: &NodeColumns,
    workers: usize,
    stage: &Stage,
) -> Result<PlanProperties> {
    let keyless = described.group_expr().is_true_no_grouping();
    let mut input = described.input();
    let (equivalences, partitions) = match stage {
        Stage::Whole => {
            let partitions = if keyless { 1 } else { workers };
            (equivalences(described, columns)?, partitions)
        }
        Stage::Single => (equivalences(described, columns)?, 1),
        Stage::Partial { .. } => {
            let equivalences = EquivalenceProperties::new(Arc::clone(&columns.schema));
            (equivalences, input.output_partitioning().partition_count())
        }
        Stage::Final(merged) => {
            input = &merged.input;
            let partitions = input.output_partitioning().partition_count();
            (merged.equivalences.clone(), partitions)
        }
    };
    Ok(PlanProperties::new(
        equivalences,
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Final,
        input.boundedness(),
    )
    .with_evaluation_type(EvaluationType::Eager)
    .with_scheduling_type(SchedulingType::Cooperative))
}

/// What holds of all groups.
fn equivalences(
    described: &Arc<AggregateExec>,
    columns: &NodeColumns,
) -> Result<EquivalenceProperties> {
    let schema = &columns.all;
    let group_by = described.group_expr();
    let keyless = group_by.is_true_no_grouping();
    let input = described.input();
    let mut equivalences = if group_by.has_grouping_set() || keyless {
        // Keys are NULL in some rows: nothing that held for the input's columns holds for them. The columns of one row are
        // constants, which DataFusion believes above outer joins too.
        EquivalenceProperties::new(Arc::clone(schema))
    } else {
        let mapping = ProjectionMapping::try_new(group_by.expr().to_vec(), &input.schema())?;
        let datafusion = AggregateExec::compute_properties(
            input,
            Arc::clone(schema),
            &mapping,
            keyless,
            described.mode(),
            described.input_order_mode(),
            described.aggr_expr(),
        )?;
        let mut equivalences = datafusion.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        equivalences
    };
    if let Some(emitted) = &columns.emitted {
        let mapping = ProjectionMapping::from_indices(emitted, schema)?;
        equivalences = equivalences.project(&mapping, Arc::clone(&columns.schema));
    }
    Ok(equivalences)
}
