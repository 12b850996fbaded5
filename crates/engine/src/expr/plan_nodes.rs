//! Methods of a plan's nodes that are the same in all of ours.
//!
//! In: their names. Out: these methods of `ExecutionPlan`, in the crates of clusters, too.
//! Not here: what a node does.

use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::physical_plan::ExecutionPlan;

/// The input of a node that has one. An internal error otherwise.
pub fn only_input(
    node: &str,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
        Ok([input]) => Ok(input),
        Err(children) => internal_err!("{node} has one input, not {}", children.len()),
    }
}

/// `node_methods!(with_new_children)` within an `impl` of `ExecutionPlan` has this method say what the node's
/// `replace_children` says. `no_expressions` is of a node that has none; `properties`, `metrics` and `input`, the only child,
/// are of one that keeps them in fields of these names.
#[doc(hidden)]
#[macro_export]
macro_rules! node_methods {
    ($($method:ident),+ $(,)?) => {
        $($crate::node_method!($method);)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! node_method {
    (with_new_children) => {
        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::common::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
            use ::datafusion::physical_plan::execution_plan as plan;
            let properties = plan::ChildrenPropertiesMode::Recompute;
            self.replace_children(children, plan::ReplaceChildrenOptions::new(properties))
        }
    };
    (properties) => {
        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            &self.properties
        }
    };
    (metrics) => {
        fn metrics(&self) -> Option<::datafusion::physical_plan::metrics::MetricsSet> {
            Some(self.metrics.clone_inner())
        }
    };
    (input) => {
        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }
    };
    (no_expressions) => {
        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>,
            ) -> ::datafusion::common::Result<
                ::datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> ::datafusion::common::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

pub(crate) use node_methods;
