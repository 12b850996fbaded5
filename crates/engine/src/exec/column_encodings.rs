//! In which encodings a node takes the columns that it reads.
//!
//! In: an expression. Out: the columns that it takes as codes or as decimals of 64 bits.
//! Not here: whether a file has them so (optimizer/scans/codes.rs).

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use crate::expr::distinct_values::columns_per_value;

/// The encoding that does for the reader of a column instead of values as SQL has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnEncoding {
    /// Nothing else.
    Values,
    /// Codes, of strings.
    Codes,
    /// Decimal64, of decimals.
    Decimal64,
    /// Anything that has its NULLs.
    Any,
}

impl ColumnEncoding {
    pub fn takes_codes(self) -> bool {
        matches!(self, Self::Codes | Self::Any)
    }

    pub fn takes_decimal64(self) -> bool {
        matches!(self, Self::Decimal64 | Self::Any)
    }
}

/// An expression that reads columns.
pub(crate) struct ReadExpr {
    /// The expression.
    pub expr: Arc<dyn PhysicalExpr>,
    /// What it takes where it is nothing but a column.
    pub takes: ColumnEncoding,
}

impl ReadExpr {
    /// One that needs values.
    pub fn plain(expr: &Arc<dyn PhysicalExpr>) -> ReadExpr {
        ReadExpr {
            expr: Arc::clone(expr),
            takes: ColumnEncoding::Values,
        }
    }

    /// The columns that it takes as codes, once they are.
    pub fn codes(&self) -> Vec<usize> {
        match self.expr.downcast_ref::<Column>() {
            Some(column) if self.takes.takes_codes() => vec![column.index()],
            _ => columns_per_value(&self.expr),
        }
    }

    /// The columns that it takes in 64 bits, once they are.
    pub fn decimal64(&self) -> Vec<usize> {
        match self.expr.downcast_ref::<Column>() {
            Some(column) if self.takes.takes_decimal64() => vec![column.index()],
            _ => columns_of(&self.expr).collect(),
        }
    }
}

/// Of a file's columns those of strings that come as codes and are so few, in all files together, that memory may hold one of each.
pub(crate) struct FewValues(pub Vec<usize>);

pub(crate) fn columns_of(
    expression: &Arc<dyn PhysicalExpr>,
) -> impl Iterator<Item = usize> + use<> {
    collect_columns(expression)
        .into_iter()
        .map(|column| column.index())
}
