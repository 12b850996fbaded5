//! The columns that a node yields, and of which groups.
//!
//! In: a schema of keys and aggregates, projections and conditions from above. Out: the same, narrowed.
//! Invariant: conditions are over all columns, whichever of them leave.
//! Not here: when a condition is held against groups (conditions.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;

use crate::exec::conditions::with_columns_at;

/// The columns that the node yields, and of which groups.
#[derive(Debug, Clone)]
pub(in crate::exec) struct NodeColumns {
    /// Keys, then aggregates.
    pub all: SchemaRef,
    /// Those of them that somebody reads, in the order of `schema`; `None` are all.
    pub emitted: Option<Vec<usize>>,
    /// The schema of those.
    pub schema: SchemaRef,
    /// What has to hold of a group, over all columns.
    pub conditions: Vec<Arc<dyn PhysicalExpr>>,
}

impl NodeColumns {
    pub(in crate::exec) fn all(schema: SchemaRef) -> NodeColumns {
        NodeColumns {
            all: Arc::clone(&schema),
            emitted: None,
            schema,
            conditions: Vec::new(),
        }
    }

    /// Of the columns that are left those at these places.
    pub(super) fn narrowed(&self, places: Vec<usize>) -> Result<NodeColumns> {
        let emitted: Vec<usize> = match &self.emitted {
            Some(emitted) => places.iter().map(|place| emitted[*place]).collect(),
            None => places,
        };
        Ok(NodeColumns {
            all: Arc::clone(&self.all),
            schema: Arc::new(self.all.project(&emitted)?),
            emitted: Some(emitted),
            conditions: self.conditions.clone(),
        })
    }

    /// An expression over what the node yields as one over all columns.
    pub(super) fn widen(&self, expression: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        match &self.emitted {
            Some(emitted) => with_columns_at(expression, |column| emitted[column]),
            None => Ok(expression),
        }
    }

    /// The same of those groups alone of which `conditions`, over what the node yields, hold too.
    pub(super) fn where_all(&self, conditions: Vec<Arc<dyn PhysicalExpr>>) -> Result<NodeColumns> {
        let mut columns = self.clone();
        for condition in conditions {
            columns.conditions.push(self.widen(condition)?);
        }
        Ok(columns)
    }
}
