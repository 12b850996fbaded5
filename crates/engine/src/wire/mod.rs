//! What a plan is made of, taken apart: plain values that a codec writes as a message.
//!
//! In: functions, expressions, nodes and sources of ours. Out: their kinds and values, and the same again of these.
//! Invariant: whoever is taken apart has all of itself in its values, or is refused. Values that are left over, or that are
//! others than expected, are an error.
//! Not here: bytes (crate `grouse-cluster`), the tables of all kinds (distribution/).

mod kinds;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use kinds::{
    ExpressionKind, FunctionKind, NodeKind, Portable, PortableExpression, PortableNode, aggregate,
    expression, node, portable, scalar, window,
};

/// One value.
#[derive(Debug, Clone)]
pub enum WireValue {
    /// True or false.
    Flag(bool),
    /// An integer.
    Number(i64),
    /// Text.
    Text(String),
    /// A type.
    Type(DataType),
    /// Columns.
    Schema(SchemaRef),
    /// A scalar function.
    Function(Arc<ScalarUDF>),
    /// An aggregate.
    Aggregate(Arc<AggregateUDF>),
    /// A window function.
    Window(Arc<WindowUDF>),
    /// An expression over columns.
    Expression(Arc<dyn PhysicalExpr>, SchemaRef),
    /// A plan.
    Plan(Arc<dyn ExecutionPlan>),
    /// Several values, or none.
    List(Vec<WireValue>),
}

/// Something taken apart.
#[derive(Debug, Clone)]
pub struct Apart {
    /// What it is.
    pub kind: &'static str,
    /// What it has.
    pub values: Vec<WireValue>,
}

impl From<bool> for WireValue {
    fn from(flag: bool) -> WireValue {
        WireValue::Flag(flag)
    }
}

impl From<i64> for WireValue {
    fn from(number: i64) -> WireValue {
        WireValue::Number(number)
    }
}

impl From<usize> for WireValue {
    fn from(number: usize) -> WireValue {
        WireValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<&str> for WireValue {
    fn from(text: &str) -> WireValue {
        WireValue::Text(text.to_owned())
    }
}

macro_rules! values_of {
    ($($kind:ident: $of:ty;)*) => {
        $(
            impl From<&$of> for WireValue {
                fn from(value: &$of) -> WireValue {
                    WireValue::$kind(value.clone())
                }
            }
        )*
    };
}

values_of! {
    Flag: bool;
    Number: i64;
    Text: String;
    Type: DataType;
    Schema: SchemaRef;
    Function: Arc<ScalarUDF>;
    Aggregate: Arc<AggregateUDF>;
    Window: Arc<WindowUDF>;
}

impl From<&usize> for WireValue {
    fn from(number: &usize) -> WireValue {
        (*number).into()
    }
}

impl From<Vec<WireValue>> for WireValue {
    fn from(values: Vec<WireValue>) -> WireValue {
        WireValue::List(values)
    }
}

impl<T: Into<WireValue>> From<Option<T>> for WireValue {
    fn from(value: Option<T>) -> WireValue {
        WireValue::List(value.into_iter().map(T::into).collect())
    }
}

/// Values, taken one by one.
pub(crate) struct WireReader(std::vec::IntoIter<WireValue>);

impl fmt::Debug for WireReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.as_slice()).finish()
    }
}

macro_rules! readers {
    ($($method:ident: $kind:ident -> $of:ty, $does:literal;)*) => {
        $(
            #[doc = $does]
            pub(crate) fn $method(&mut self) -> Result<$of> {
                match self.0.next() {
                    Some(WireValue::$kind(value)) => Ok(value),
                    other => internal_err!(
                        "a message has {other:?} where {} is expected", stringify!($method)
                    ),
                }
            }
        )*
    };
}

impl WireReader {
    /// Reads these values.
    pub(crate) fn new(values: Vec<WireValue>) -> WireReader {
        WireReader(values.into_iter())
    }

    readers! {
        flag: Flag -> bool, "Takes a flag.";
        number: Number -> i64, "Takes an integer.";
        text: Text -> String, "Takes a text.";
        data_type: Type -> DataType, "Takes a type.";
        schema: Schema -> SchemaRef, "Takes a schema.";
        scalar_function: Function -> Arc<ScalarUDF>, "Takes a scalar function.";
        aggregate: Aggregate -> Arc<AggregateUDF>, "Takes an aggregate.";
        window: Window -> Arc<WindowUDF>, "Takes a window function.";
        plan: Plan -> Arc<dyn ExecutionPlan>, "Takes a plan.";
        list: List -> Vec<WireValue>, "Takes a list.";
    }

    /// Takes an expression.
    pub(crate) fn expression(&mut self) -> Result<Arc<dyn PhysicalExpr>> {
        match self.0.next() {
            Some(WireValue::Expression(expression, _)) => Ok(expression),
            other => internal_err!("a message has {other:?} where an expression is expected"),
        }
    }

    /// Takes a number that counts something.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let number = self.number()?;
        match usize::try_from(number) {
            Ok(count) => Ok(count),
            Err(_) => internal_err!("a message has {number} where a count is expected"),
        }
    }

    /// Takes something that may be missing.
    pub(crate) fn optional<T>(
        &mut self,
        take: impl FnOnce(&mut WireReader) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut inner = WireReader::new(self.list()?);
        match inner.0.len() {
            0 => Ok(None),
            _ => {
                let taken = take(&mut inner)?;
                inner.end()?;
                Ok(Some(taken))
            }
        }
    }

    /// Takes a list of things.
    pub(crate) fn each<T>(
        &mut self,
        take: impl Fn(&mut WireReader) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut inner = WireReader::new(self.list()?);
        let mut all = Vec::with_capacity(inner.0.len());
        while inner.0.len() > 0 {
            all.push(take(&mut inner)?);
        }
        Ok(all)
    }

    /// Takes the name of one of several.
    pub(crate) fn one_of<T: Copy>(&mut self, named: &[(&str, T)]) -> Result<T> {
        let name = self.text()?;
        match named.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Ok(*value),
            None => internal_err!("a message has {name}, which is not known here"),
        }
    }

    /// Fails where values are left.
    pub(crate) fn end(&self) -> Result<()> {
        match self.0.as_slice() {
            [] => Ok(()),
            left => internal_err!("a message has {left:?} more than is expected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_expected_is_an_error() {
        let mut values = WireReader::new(vec![1_usize.into(), "x".into(), true.into()]);
        assert_eq!(values.count().unwrap(), 1);
        assert!(values.data_type().is_err());
        assert!(values.end().is_err());
        assert!(values.flag().unwrap());
        values.end().unwrap();
        assert!(values.flag().is_err());
    }

    #[test]
    fn something_may_be_missing() {
        let values = vec![None::<bool>.into(), Some(true).into(), Some("x").into()];
        let mut values = WireReader::new(values);
        assert_eq!(values.optional(WireReader::flag).unwrap(), None);
        assert_eq!(values.optional(WireReader::flag).unwrap(), Some(true));
        assert!(values.optional(WireReader::flag).is_err());
    }
}
