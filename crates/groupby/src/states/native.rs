//! What all native aggregates share: a name, a result type and a way to make states.
//!
//! In: those three. Out: `Arc<dyn Aggregate>`.
//! Not here: which types an aggregate knows.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::DataType;

use super::{Aggregate, Bypass, GroupStates};
use crate::batch::{Arguments, is_plain};
use crate::error::Result;
use crate::keys::{as_views, decoded, unpacked};

struct Native<F> {
    name: String,
    result_type: DataType,
    takes_codes: bool,
    keeps_rows: bool,
    make: F,
}

/// An aggregate whose states `make` makes.
pub(super) fn native<S: GroupStates + 'static>(
    name: &str,
    result_type: &DataType,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Arc<dyn Aggregate> {
    Arc::new(plain(name, result_type, make))
}

/// The same of one whose states take strings as codes in their first column.
pub(super) fn native_of_codes<S: GroupStates + 'static>(
    name: &str,
    result_type: &DataType,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Arc<dyn Aggregate> {
    Arc::new(Native {
        takes_codes: true,
        ..plain(name, result_type, make)
    })
}

/// The same of one whose states are their rows (`Aggregate::keeps_rows`).
pub(super) fn native_of_rows<S: GroupStates + 'static>(
    name: &str,
    result_type: &DataType,
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Arc<dyn Aggregate> {
    Arc::new(Native {
        keeps_rows: true,
        ..plain(name, result_type, make)
    })
}

fn plain<F>(name: &str, result_type: &DataType, make: F) -> Native<F> {
    Native {
        name: name.to_owned(),
        result_type: result_type.clone(),
        takes_codes: false,
        keeps_rows: false,
        make,
    }
}

/// Codes as views of their strings.
fn as_strings(column: &ArrayRef) -> Result<ArrayRef> {
    let views = as_views(decoded(column.data_type()));
    match column.as_any_dictionary_opt() {
        Some(_) => unpacked(column, &views),
        None => Ok(ArrayRef::clone(column)),
    }
}

/// An aggregate whose rows go through a table, where they keep their order.
#[derive(Debug)]
struct InOrder(Arc<dyn Aggregate>);

/// The aggregate over rows whose order its result shows: none of them skips the key table and is overtaken.
pub fn in_order(aggregate: Arc<dyn Aggregate>) -> Arc<dyn Aggregate> {
    Arc::new(InOrder(aggregate))
}

impl Aggregate for InOrder {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn result_type(&self) -> DataType {
        self.0.result_type()
    }

    fn states(&self) -> Result<Box<dyn GroupStates>> {
        self.0.states()
    }

    fn state_version(&self) -> u16 {
        self.0.state_version()
    }

    fn bypass(&self) -> Bypass {
        Bypass::Never
    }

    fn keeps_rows(&self) -> bool {
        self.0.keeps_rows()
    }

    fn carried(&self, arguments: &Arguments) -> Result<Arguments> {
        self.0.carried(arguments)
    }

    fn carried_mix(&self, arguments: &Arguments) -> bool {
        self.0.carried_mix(arguments)
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

    fn keeps_rows(&self) -> bool {
        self.keeps_rows
    }

    /// Codes as strings: rows of several dictionaries wait side by side.
    fn carried(&self, arguments: &Arguments) -> Result<Arguments> {
        if !self.takes_codes {
            return Ok(arguments.clone());
        }
        let mut columns = arguments.columns.clone();
        columns[0] = as_strings(&columns[0])?;
        Ok(Arguments {
            columns,
            filter: arguments.filter.clone(),
        })
    }

    fn carried_mix(&self, arguments: &Arguments) -> bool {
        let as_they_are = match self.takes_codes {
            true => &arguments.columns[1..],
            false => &arguments.columns,
        };
        let mut as_they_are = as_they_are.iter();
        as_they_are.all(|column| is_plain(column.data_type()))
    }
}
