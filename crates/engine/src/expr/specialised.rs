//! An expression of DataFusion with another way to compute it.
//!
//! In: the expression and the way, then batches. Out: what DataFusion has for them.
//! Invariant: types, names, NULLs and errors are DataFusion's; where columns are of other forms than those that the way was chosen
//! for, the way leaves them to it.
//! Not here: the ways (arithmetic.rs, filters.rs).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::physical_expr::PhysicalExpr;

/// Another way, which follows from the expression and its types.
pub(crate) trait Way: fmt::Debug + Send + Sync + Sized + 'static {
    /// The way of the same expression with other parts, as far as it can be told without types.
    fn of_other(&self, datafusion: &Arc<dyn PhysicalExpr>) -> Option<Self>;

    /// The values of a batch.
    fn computed(
        &self,
        datafusion: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> Result<ColumnarValue>;

    /// Whether it stands in brackets in EXPLAIN: DataFusion puts none around what it does not know.
    fn is_bracketed(&self) -> bool {
        false
    }
}

/// The expression with ways in place of all parts that `way_of` has one for, from the innermost outwards.
pub(crate) fn instead<W: Way>(
    expr: Arc<dyn PhysicalExpr>,
    way_of: impl Fn(&Arc<dyn PhysicalExpr>) -> Option<W>,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        Ok(match way_of(&expr) {
            Some(way) => Transformed::yes(Arc::new(Instead {
                datafusion: expr,
                way,
            })),
            None => Transformed::no(expr),
        })
    })
}

/// The expression and the way.
#[derive(Debug)]
pub(crate) struct Instead<W> {
    datafusion: Arc<dyn PhysicalExpr>,
    way: W,
}

impl<W: Way> Instead<W> {
    pub fn way(&self) -> &W {
        &self.way
    }

    pub fn datafusion(&self) -> &Arc<dyn PhysicalExpr> {
        &self.datafusion
    }
}

impl<W> PartialEq for Instead<W> {
    fn eq(&self, other: &Self) -> bool {
        self.datafusion.eq(&other.datafusion)
    }
}

impl<W> Eq for Instead<W> {}

impl<W> Hash for Instead<W> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.datafusion.hash(state);
    }
}

impl<W: Way> fmt::Display for Instead<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way.is_bracketed() {
            true => write!(f, "({})", self.datafusion),
            false => self.datafusion.fmt(f),
        }
    }
}

impl<W: Way> PhysicalExpr for Instead<W> {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.datafusion.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.datafusion.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.datafusion.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.way.computed(&self.datafusion, batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.datafusion.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let datafusion = Arc::clone(&self.datafusion).with_new_children(children)?;
        Ok(match self.way.of_other(&datafusion) {
            Some(way) => Arc::new(Self { datafusion, way }),
            None => datafusion,
        })
    }

    fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties> {
        self.datafusion.get_properties(children)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.way.is_bracketed() {
            return self.datafusion.fmt_sql(f);
        }
        write!(f, "(")?;
        self.datafusion.fmt_sql(f)?;
        write!(f, ")")
    }
}
