//! The error of an aggregate whose result does not fit its type.
//!
//! In: the aggregate as the query names it and its result type. Out: the engine's error, which names both and a way
//! out, as DataFusion carries it.
//! Invariant: a total that does not fit becomes this error, never a wrapped number.

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;

use crate::error::Error;
use crate::error::types::type_name;

/// The error of `aggregate`, for example `sum(t.x)`, whose result is no value of `data_type`.
pub(crate) fn overflow(aggregate: &str, data_type: &DataType) -> DataFusionError {
    let message = format!(
        "the result does not fit {}: {}",
        type_name(data_type),
        way_out(data_type)
    );
    // Of a window the frame follows, which nobody wrote so.
    let name = aggregate.split(") ").next().unwrap_or(aggregate);
    let closing = if name == aggregate { "" } else { ")" };
    DataFusionError::from(Error::Overflow {
        aggregate: format!("{name}{closing}"),
        message,
    })
}

/// What to write instead, by the type that was too narrow.
fn way_out(data_type: &DataType) -> String {
    match data_type {
        DataType::Int64 | DataType::UInt64 => {
            "cast the argument, e.g. sum(CAST(x AS DECIMAL(38,0)))".to_string()
        }
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => {
            format!("cast the argument, e.g. sum(CAST(x AS DECIMAL(76,{scale})))")
        }
        DataType::Decimal256(..) => {
            "no decimal is wider; for an approximate result write sum(CAST(x AS DOUBLE))"
                .to_string()
        }
        _ => "no wider type of its kind exists; cast the argument, e.g. \
              sum(CAST(CAST(x AS BIGINT) AS DECIMAL(38,0)))"
            .to_string(),
    }
}
