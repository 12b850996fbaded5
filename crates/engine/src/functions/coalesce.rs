//! `coalesce` of dates, times or booleans and strings.
//!
//! In: arguments of which some are strings. Out: what the others are: `coalesce(day, '2024-01-01')` is a day, as with `ifnull`.
//! Invariant: all else is DataFusion's, which finds no type for these.
//! Not here: a string that is no date, an error of its cast.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::core::coalesce;
use datafusion::logical_expr::{ScalarUDF, ScalarUDFImpl};

use crate::functions::wrapped::as_wrapped;

/// The function.
pub(super) fn own_coalesce() -> ScalarUDF {
    ScalarUDF::new_from_impl(Coalesce(coalesce()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce(Arc<ScalarUDF>);

impl ScalarUDFImpl for Coalesce {
    as_wrapped!(
        0: name, signature, return_type, return_field_from_args, simplify,
        invoke_with_args, conditional_arguments, short_circuits
    );

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types).or_else(|error| {
            let others: Vec<DataType> = types
                .iter()
                .filter(|kind| !kind.is_string() && !kind.is_null())
                .cloned()
                .collect();
            match others.iter().all(is_read_from_text) && others.len() < types.len() {
                true => {
                    let common = self.0.coerce_types(&others)?.swap_remove(0);
                    Ok(vec![common; types.len()])
                }
                false => Err(error),
            }
        })
    }
}

fn is_read_from_text(kind: &DataType) -> bool {
    kind.is_temporal() || *kind == DataType::Boolean
}
