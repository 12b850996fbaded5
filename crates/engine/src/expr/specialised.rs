//! A specialised expression: one of DataFusion's with a kernel of its own.
//!
//! In: the expression and the kernel, then batches. Out: what DataFusion has for them.
//! Invariant: types, names, NULLs and errors are DataFusion's. A kernel leaves columns to DataFusion where their forms are
//! others than those that it was chosen for.
//! Not here: the kernels (arithmetic.rs, distinct_values/steps.rs, optimizer/filters.rs).

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

/// Another way to evaluate an expression, which follows from the expression and its types.
pub(crate) trait Kernel: fmt::Debug + Send + Sync + Sized + 'static {
    /// The kernel of the same expression with other parts, as far as it can be told without types.
    fn rebind(&self, datafusion: &Arc<dyn PhysicalExpr>) -> Option<Self>;

    /// The values of a batch.
    fn evaluate(
        &self,
        datafusion: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> Result<ColumnarValue>;

    /// Whether it stands in brackets in EXPLAIN: DataFusion puts none around what it does not know.
    fn is_bracketed(&self) -> bool {
        false
    }
}

/// The expression with kernels for all parts that `kernel_of` has one for, from the innermost outwards.
pub(crate) fn specialise<K: Kernel>(
    expr: Arc<dyn PhysicalExpr>,
    kernel_of: impl Fn(&Arc<dyn PhysicalExpr>) -> Option<K>,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        Ok(match kernel_of(&expr) {
            Some(kernel) => Transformed::yes(Arc::new(Specialised {
                datafusion: expr,
                kernel,
            })),
            None => Transformed::no(expr),
        })
    })
}

/// The expression and its kernel.
#[derive(Debug)]
pub(crate) struct Specialised<K> {
    datafusion: Arc<dyn PhysicalExpr>,
    kernel: K,
}

impl<K: Kernel> Specialised<K> {
    pub fn kernel(&self) -> &K {
        &self.kernel
    }

    pub fn datafusion(&self) -> &Arc<dyn PhysicalExpr> {
        &self.datafusion
    }
}

impl<K> PartialEq for Specialised<K> {
    fn eq(&self, other: &Self) -> bool {
        self.datafusion.eq(&other.datafusion)
    }
}

impl<K> Eq for Specialised<K> {}

impl<K> Hash for Specialised<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.datafusion.hash(state);
    }
}

impl<K: Kernel> fmt::Display for Specialised<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kernel.is_bracketed() {
            true => write!(f, "({})", self.datafusion),
            false => self.datafusion.fmt(f),
        }
    }
}

impl<K: Kernel> PhysicalExpr for Specialised<K> {
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
        self.kernel.evaluate(&self.datafusion, batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.datafusion.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let datafusion = Arc::clone(&self.datafusion).with_new_children(children)?;
        Ok(match self.kernel.rebind(&datafusion) {
            Some(kernel) => Arc::new(Self { datafusion, kernel }),
            None => datafusion,
        })
    }

    fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties> {
        self.datafusion.get_properties(children)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kernel.is_bracketed() {
            return self.datafusion.fmt_sql(f);
        }
        write!(f, "(")?;
        self.datafusion.fmt_sql(f)?;
        write!(f, ")")
    }
}
