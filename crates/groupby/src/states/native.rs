//! What all native aggregates share: a name, a result type and a way to make states.
//!
//! In: those three. Out: `Arc<dyn Aggregate>`.
//! Not here: which types an aggregate knows.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;

use super::{Aggregate, GroupStates};
use crate::error::Result;

struct Native<F> {
    name: String,
    result_type: DataType,
    make: F,
}

/// An aggregate whose states `make` makes.
pub(super) fn native<S: GroupStates + 'static>(
    name: &str,
    result_type: &DataType,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Arc<dyn Aggregate> {
    Arc::new(Native {
        name: name.to_owned(),
        result_type: result_type.clone(),
        make,
    })
}

impl<F> fmt::Debug for Native<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.name, self.result_type)
    }
}

impl<S: GroupStates + 'static, F: Fn() -> S + Send + Sync> Aggregate for Native<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn result_type(&self) -> DataType {
        self.result_type.clone()
    }

    fn states(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new((self.make)()))
    }
}
