//! Scalar functions that people who come from DuckDB and PostgreSQL type, and DataFusion does not have.
//!
//! In: nothing. Out: the functions, each under each of its names, so that a header says what was written.
//! Invariant: what DataFusion computes is computed by DataFusion: such a function stands for its expression, and only its
//! name stays. A name that DataFusion has, too, does all that DataFusion's does.
//! Not here: aggregates; the syntax that stands for functions (sql/).

mod kinds;
mod definition;
mod rewritten;
mod timestamps;
mod units;
mod dates;
mod date_formats;
mod strings;
mod paths;
mod formatted;
mod eras;
mod likeness;
mod regexp;
mod lists;
mod list_aggregates;
mod joined;
mod numbers;
mod encodings;
mod digests;
mod json_text;
mod json;
mod json_written;
mod json_shapes;
mod json_elements;
mod types;

use datafusion::logical_expr::ScalarUDF;

pub(super) use dates::{interval_by, interval_of_parts, interval_times};
pub(crate) use eras::{CENTURY, MILLENNIUM};
pub(crate) use json::{JSON_OF as JSON, is_json, json_part};
pub(super) use json::{json_extract, json_extract_string};
pub(crate) use json_elements::{JSON_EACH, JSON_ELEMENT, JSON_TREE};
pub(crate) use json_shapes::JSON_AS;
pub(super) use json_written::{json_entries, to_json};
pub(crate) use json_written::{json_kept, marked_as_json};
pub(crate) use lists::{list_in_order, value_of_key};
pub(super) use units::Unit;

/// All functions of this room.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let dates = [
        dates::functions(),
        date_formats::functions(),
        eras::functions(),
    ];
    let strings = [
        strings::functions(),
        paths::functions(),
        formatted::functions(),
        likeness::functions(),
    ];
    let rest = [
        regexp::functions(),
        lists::functions(),
        list_aggregates::functions(),
        joined::functions(),
        numbers::functions(),
        encodings::functions(),
        digests::functions(),
        json::functions(),
        json_written::functions(),
        json_shapes::functions(),
        json_elements::functions(),
        types::functions(),
    ];
    dates
        .into_iter()
        .chain(strings)
        .chain(rest)
        .flatten()
        .collect()
}
