//! Rules of DataFusion's that go another way in some plans.
//!
//! In: a rule of DataFusion's and what is to be done in its place. Out: a rule of its name.
//! Invariant: what is done in its place calls DataFusion's rule wherever that one is right.
//! Not here: which rules these are (passes.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// What a rule of DataFusion does, with DataFusion's rule to call where it is right.
pub(in crate::optimizer) type Rewrite =
    fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// What it is shown of a plan.
#[derive(Debug, Clone, Copy)]
pub(in crate::optimizer) enum Shown {
    /// What DataFusion's rule is.
    AsBefore,
    /// The whole plan: DataFusion shows all nodes, whatever is said of those below.
    Whole,
}

/// The rule.
#[derive(Debug)]
pub(in crate::optimizer) struct Around {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
    shown: Shown,
    rewrite: Rewrite,
}

impl Around {
    pub(in crate::optimizer) fn new(
        rule: Arc<dyn OptimizerRule + Send + Sync>,
        shown: Shown,
        rewrite: Rewrite,
    ) -> Around {
        Around {
            rule,
            shown,
            rewrite,
        }
    }
}

impl OptimizerRule for Around {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        match self.shown {
            Shown::AsBefore => self.rule.apply_order(),
            Shown::Whole => None,
        }
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(self.rule.as_ref(), plan, config)
    }
}
