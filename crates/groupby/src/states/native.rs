//! What all native aggregates share: a name, a result type and a way to make states.
//!
//! In: those three. Out: `Arc<dyn Aggregate>`.
//! Not here: which types an aggregate knows.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;

use super::{Aggregate, GroupStates};
use crate::batch::Arguments;
use crate::error::Result;
use crate::keys::{decoded, unpacked};

struct Native<F> {
    name: String,
    result_type: DataType,
    takes_codes: bool,
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
        takes_codes: false,
        make,
    })
}

/// The same of one whose states take texts as codes.
pub(super) fn native_of_codes<S: GroupStates + 'static>(
    name: &str,
    result_type: &DataType,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Arc<dyn Aggregate> {
    Arc::new(Native {
        name: name.to_owned(),
        result_type: result_type.clone(),
        takes_codes: true,
        make,
    })
}

/// Codes as views of their texts.
fn texts_of(column: &ArrayRef) -> Result<ArrayRef> {
    let views = match decoded(column.data_type()) {
        of if of.is_string() => DataType::Utf8View,
        of if of.is_binary() => DataType::BinaryView,
        of => of.clone(),
    };
    match column.as_any_dictionary_opt() {
        Some(_) => unpacked(column, &views),
        None => Ok(ArrayRef::clone(column)),
    }
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

    /// Codes as texts: rows of several dictionaries wait side by side.
    fn carried(&self, arguments: &Arguments) -> Result<Arguments> {
        if !self.takes_codes {
            return Ok(arguments.clone());
        }
        let columns = arguments.columns.iter().map(texts_of);
        Ok(Arguments {
            columns: columns.collect::<Result<_>>()?,
            filter: arguments.filter.clone(),
        })
    }

    fn carried_mix(&self, arguments: &Arguments) -> bool {
        self.takes_codes || arguments.mix()
    }
}
