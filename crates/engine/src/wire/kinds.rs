//! Kinds of what is taken apart: how each of them is, and how it is made again.
//!
//! In: types that say what they have. Out: entries of the tables of all kinds.
//! Invariant: a kind knows its own by their type, never by their name.
//! Not here: the tables (distribution/tables.rs).

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::{
    AggregateUDF, AggregateUDFImpl, ScalarUDF, ScalarUDFImpl, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use super::{WireReader, WireValue};

/// A function that rules make, and that is more than its name.
pub(crate) trait Portable: Sized + 'static {
    /// What it is called in messages; another meaning needs another name.
    const KIND: &'static str;

    /// What it has.
    fn apart(&self) -> Vec<WireValue>;

    /// The same again.
    fn whole(values: &mut WireReader) -> Result<Self>;
}

/// `portable!(KeptCast, "kept_cast", to: data_type; signature: Signature::any(1, Volatility::Immutable))` is of a function whose
/// values are its fields, each beside the method of `WireReader` that takes it. Fields after `;` are the same in all.
/// `=> KeptCast::new` makes one of the fields' values.
macro_rules! portable {
    ($type:ident, $kind:literal $(, $field:tt: $take:ident)* $(; $($same:ident: $value:expr),+)?) => {
        impl $crate::wire::Portable for $type {
            const KIND: &'static str = $kind;

            fn apart(&self) -> Vec<$crate::wire::WireValue> {
                vec![$((&self.$field).into()),*]
            }

            fn whole(
                _values: &mut $crate::wire::WireReader,
            ) -> ::datafusion::common::Result<Self> {
                Ok($type { $($field: _values.$take()?,)* $($($same: $value),+)? })
            }
        }
    };
    ($type:ident, $kind:literal $(, $field:tt: $take:ident)* => $new:path) => {
        impl $crate::wire::Portable for $type {
            const KIND: &'static str = $kind;

            fn apart(&self) -> Vec<$crate::wire::WireValue> {
                vec![$((&self.$field).into()),*]
            }

            fn whole(
                _values: &mut $crate::wire::WireReader,
            ) -> ::datafusion::common::Result<Self> {
                Ok($new($(_values.$take()?),*))
            }
        }
    };
}

pub(crate) use portable;

/// An expression of ours.
pub(crate) trait PortableExpression: PhysicalExpr + Sized {
    /// What it is called in messages.
    const KIND: &'static str;

    /// What it has beside its children.
    fn apart(&self) -> Vec<WireValue>;

    /// The same again.
    fn whole(
        children: Vec<Arc<dyn PhysicalExpr>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn PhysicalExpr>>;
}

/// A node of ours.
pub(crate) trait PortableNode: ExecutionPlan + Sized {
    /// What it is called in messages.
    const KIND: &'static str;

    /// What it has beside its children; an error says why it has to stay.
    fn apart(&self) -> Result<Vec<WireValue>>;

    /// The same again.
    fn whole(
        children: Vec<Arc<dyn ExecutionPlan>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn ExecutionPlan>>;
}

type Remade<F> = dyn Fn(&mut WireReader) -> Result<Arc<F>> + Send + Sync;

/// A kind of functions.
pub(crate) struct FunctionKind<F> {
    pub name: &'static str,
    pub apart: Box<dyn Fn(&F) -> Option<Vec<WireValue>> + Send + Sync>,
    pub whole: Box<Remade<F>>,
}

/// The kind of a scalar function.
pub(crate) fn scalar<T: Portable + ScalarUDFImpl>() -> FunctionKind<ScalarUDF> {
    FunctionKind {
        name: T::KIND,
        apart: Box::new(|function| function.inner().downcast_ref::<T>().map(T::apart)),
        whole: Box::new(|values| Ok(Arc::new(ScalarUDF::from(T::whole(values)?)))),
    }
}

/// The kind of an aggregate.
pub(crate) fn aggregate<T: Portable + AggregateUDFImpl>() -> FunctionKind<AggregateUDF> {
    FunctionKind {
        name: T::KIND,
        apart: Box::new(|function| function.inner().downcast_ref::<T>().map(T::apart)),
        whole: Box::new(|values| Ok(Arc::new(AggregateUDF::from(T::whole(values)?)))),
    }
}

/// The kind of a window function.
pub(crate) fn window<T: Portable + WindowUDFImpl>() -> FunctionKind<WindowUDF> {
    FunctionKind {
        name: T::KIND,
        apart: Box::new(|function| function.inner().downcast_ref::<T>().map(T::apart)),
        whole: Box::new(|values| Ok(Arc::new(WindowUDF::from(T::whole(values)?)))),
    }
}

/// A kind of expressions.
pub(crate) struct ExpressionKind {
    pub name: &'static str,
    pub apart: fn(&dyn PhysicalExpr) -> Option<Vec<WireValue>>,
    pub whole: fn(Vec<Arc<dyn PhysicalExpr>>, &mut WireReader) -> Result<Arc<dyn PhysicalExpr>>,
}

/// The kind of an expression.
pub(crate) fn expression<T: PortableExpression>() -> ExpressionKind {
    ExpressionKind {
        name: T::KIND,
        apart: |expression| expression.downcast_ref::<T>().map(T::apart),
        whole: T::whole,
    }
}

/// A kind of nodes.
pub(crate) struct NodeKind {
    pub name: &'static str,
    pub apart: fn(&dyn ExecutionPlan) -> Option<Result<Vec<WireValue>>>,
    pub whole: fn(Vec<Arc<dyn ExecutionPlan>>, &mut WireReader) -> Result<Arc<dyn ExecutionPlan>>,
}

/// The kind of a node.
pub(crate) fn node<T: PortableNode>() -> NodeKind {
    NodeKind {
        name: T::KIND,
        apart: |node| node.downcast_ref::<T>().map(T::apart),
        whole: T::whole,
    }
}
