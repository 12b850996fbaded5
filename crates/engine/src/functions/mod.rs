//! The functions that grouse adds to DataFusion or puts in the place of DataFusion's.
//!
//! In: a session of DataFusion's. Out: the same session with our aggregates, scalars and table functions; one that has a name of
//! DataFusion's replaces it.
//! Invariant: every function here runs on every path of DataFusion (plain, grouped, window), so that a query means the
//! same whether our operator or DataFusion's takes it.
//! Not here: the operator's native states of the same aggregates, and which aggregates have them (aggregate/native.rs).

pub(crate) mod wrapped;
mod aggregates;
mod casts;
mod arithmetic;
mod patterns;
mod as_written;
mod tried;
mod coalesce;
mod sql_formats;
mod lengths;
mod whole_row;
mod any_equal;
pub(crate) mod equal_values;
mod backward_slices;
mod list_membership;
pub(crate) mod ranges;
mod long_values;
mod sql_patterns;
mod calendar;
mod scalar;
mod version;
mod sequences;
mod row_values;
mod between;
mod list_reduce;
mod documented;
pub(crate) mod function_tables;
pub(crate) mod kinds;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{AggregateUDF, ReturnFieldArgs, ScalarUDF};
use datafusion::prelude::SessionContext;

use crate::error::types::type_name;
use crate::expr::truncated_times::truncated_times;

pub(crate) use aggregates::distinct_rows::of_distinct_rows;
pub(crate) use aggregates::exclusions::{
    EXCLUDE, Exclusion, excluding, over_left_rows, take_exclusion,
};
pub(crate) use aggregates::first_mode::FIRST_MODE;
pub(crate) use aggregates::frequent::Frequent;
pub(crate) use aggregates::ordered_set::{
    is_median, is_percentile_disc, temporal_median, with_middle,
};
pub(crate) use aggregates::overflow::overflow;
pub(crate) use aggregates::percentile_cont::is_percentile_cont;
pub(crate) use aggregates::quantiles::Quantiles;
pub(crate) use aggregates::recomputed::{in_order, over_no_rows};
pub use aggregates::standing::StandingFunctions;
pub(crate) use aggregates::statistics::is_product;
pub(crate) use aggregates::top_rows::TopRows;
pub(crate) use aggregates::totals_in_order::{mean_from_first, product_from_first, sum_from_first};
pub(crate) use any_equal::ANY_EQUAL;
pub(crate) use arithmetic::bits::{BIT_NOT, operation_on_bits};
pub(crate) use arithmetic::decimal_quotient::{decimal_quotient, is_of_decimals};
pub(crate) use arithmetic::rounding::half_to_even;
pub(crate) use arithmetic::whole_quotient::{WHOLE_QUOTIENT, plain_quotient};
pub(crate) use as_written::AS_WRITTEN;
pub(crate) use between::between;
pub(crate) use calendar::part_of_interval;
pub(crate) use casts::at_time_zone::AT_TIME_ZONE;
pub(crate) use casts::bytes_text::{is_bytes_cast, text_of_bytes};
pub(crate) use casts::coarser_times::{is_coarser, nearest_times};
pub(crate) use casts::decimal_doubles::{is_long_decimal, nearest_double};
pub(crate) use casts::far_dates::{MIDNIGHT, midnight, nanos_of_day};
pub(crate) use casts::intervals::Interval;
pub(crate) use casts::near_doubles::{NEAR_SECONDS, near_seconds, within_float};
pub(crate) use casts::nested_casts::{Halves, is_nested_cast, nested_cast};
pub(crate) use casts::numbered_days::date_of_number;
pub(crate) use casts::spans::{interval_of_span, is_span_cast};
pub(crate) use casts::text_casts::{is_text_cast, read_strings, text_cast};
pub(crate) use casts::unsigned_huge::{TRY_UNSIGNED_HUGE, UNSIGNED_HUGE};
pub(crate) use casts::uuid_text::{TRY_UUID, UUID};
pub use casts::value_text::written;
pub(crate) use casts::value_text::{is_written_here, strings_of_values, text_of_value};
pub(crate) use casts::written_times::readable;
pub(crate) use casts::zones::{is_zone_cast, is_zone_sum, zone_cast, zone_sum};
pub use documented::{FunctionClass, FunctionText, function_texts};
pub(crate) use lengths::text_views;
pub(crate) use row_values::ROW_VALUE;
pub(crate) use scalar::{
    CENTURY, JSON, JSON_AS, JSON_EACH, JSON_ELEMENT, JSON_TREE, MILLENNIUM, is_json, json_kept,
    json_part, list_in_order, marked_as_json,
};
pub(crate) use sequences::{AfterLast, OldSequence, SequenceNumbers, Sequences};
pub(crate) use sql_formats::with_sql_format;
pub(crate) use sql_patterns::{like_pattern, similar_pattern};
pub(crate) use tried::tried;
pub(crate) use whole_row::{WHOLE_ROW, is_whole_row};

/// The name of the aggregate that is planned for another name, as `avg` is for `mean`.
pub(crate) fn planned_as(name: &str) -> Option<String> {
    aggregates::standing::of_name(name).map(|function| function.name().to_owned())
}

/// The types that DataFusion's aggregate takes in the place of these; `takes` says which they may be.
fn taken_by(datafusion: &AggregateUDF, types: &[DataType], takes: &str) -> Result<Vec<DataType>> {
    let fields: Vec<FieldRef> = types
        .iter()
        .map(|of| Arc::new(Field::new("x", of.clone(), true)) as FieldRef)
        .collect();
    match (fields_with_udf(&fields, datafusion), types) {
        (Ok(taken), _) => Ok(taken
            .iter()
            .map(|field| field.data_type().clone())
            .collect()),
        (Err(_), [of] | [of, _]) if datafusion.name() == "percentile_cont" || types.len() == 1 => {
            let of = type_name(of);
            plan_err!("{} takes {takes}, not {of}", datafusion.name())
        }
        (Err(_), types) => plan_err!(
            "{} takes 1 argument, not {}",
            datafusion.name(),
            types.len()
        ),
    }
}

/// True of our `sum`, also under another name.
pub(crate) fn is_exact_sum(function: &AggregateUDF) -> bool {
    function.inner().is::<aggregates::sum::Sum>()
}

/// Our `sum`.
pub(crate) fn exact_sum() -> AggregateUDF {
    AggregateUDF::from(aggregates::sum::Sum::new())
}

/// Our `avg`.
pub(crate) fn exact_avg() -> AggregateUDF {
    AggregateUDF::from(aggregates::avg::Avg::new())
}

/// True of our `avg`, also under another name.
pub(crate) fn is_exact_avg(function: &AggregateUDF) -> bool {
    function.inner().is::<aggregates::avg::Avg>()
}

/// `min_by` or `max_by`, for DataFusion's `min` or `max`.
pub(crate) fn extreme_by(name: &str) -> Arc<AggregateUDF> {
    let function = match name {
        "max" => aggregates::arg_extreme::ArgExtreme::max_by(),
        _ => aggregates::arg_extreme::ArgExtreme::min_by(),
    };
    Arc::new(AggregateUDF::from(function))
}

/// The field of a function's results, NULL where an argument is.
pub(crate) fn null_as_args(name: &str, data_type: DataType, args: &ReturnFieldArgs) -> FieldRef {
    let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
    Arc::new(Field::new(name, data_type, nullable))
}

/// Registers our functions; one that has a name of DataFusion's replaces it.
pub fn register(context: &SessionContext) {
    ranges::tables(context);
    function_tables::tables(context);
    for function in aggregates() {
        context.register_udaf(function);
    }
    let scalars = patterns::functions().into_iter();
    let scalars = scalars.chain([lengths::length(), as_written::as_written()]);
    let scalars = scalars.chain([
        casts::at_time_zone::at_time_zone(),
        coalesce::own_coalesce(),
        truncated_times(),
    ]);
    let scalars = scalars
        .chain(arithmetic::signed::functions())
        .chain(arithmetic::domains::functions());
    let markers = [
        whole_row::whole_row(),
        any_equal::any_equal(),
        aggregates::exclusions::exclude(),
    ];
    let scalars = scalars.chain(markers).chain([
        arithmetic::modulo::modulo(),
        arithmetic::whole_quotient::whole_quotient(),
        arithmetic::bits::bit_not(),
        row_values::row_value(),
        aggregates::first_mode::first_mode(),
    ]);
    let scalars = scalars.chain(scalar::functions());
    let scalars = scalars.chain([ScalarUDF::from(version::Version::new())]);
    let scalars = scalars
        .chain(casts::uuid_text::functions())
        .chain(arithmetic::many_places::functions())
        .chain(arithmetic::whole_numbers::functions())
        .chain(casts::unsigned_huge::functions())
        .chain([backward_slices::slices(), list_membership::membership()])
        .chain(ranges::functions())
        .chain(long_values::functions());
    scalars.for_each(|function| context.register_udf(function));
    context.register_higher_order_function(list_reduce::list_reduce());
}

/// Registers the functions of the session's sequences.
pub(crate) fn register_sequences(context: &SessionContext, sequences: &Arc<Sequences>) {
    for function in sequences::functions(sequences) {
        context.register_udf(function);
    }
}

/// All aggregates of this room.
pub fn aggregates() -> Vec<AggregateUDF> {
    let mut aggregates = with_native_states();
    aggregates.push(AggregateUDF::from(aggregates::uniq::UniqExact::new()));
    aggregates.push(AggregateUDF::from(aggregates::frequent::Frequent::mode()));
    aggregates.push(AggregateUDF::from(aggregates::frequent::Frequent::top_k()));
    aggregates.push(AggregateUDF::from(aggregates::ordered_set::Median::new()));
    aggregates.push(AggregateUDF::from(
        aggregates::ordered_set::PercentileDisc::new(),
    ));
    aggregates.push(aggregates::percentile_cont::percentile_cont());
    aggregates.extend(aggregates::statistics::functions());
    aggregates.extend(aggregates::standing::functions());
    aggregates
}

/// Those for which our operator may put native states of the same meaning: `sum`, `avg`, `max_by`, `min_by`, `uniq` and
/// `approx_distinct`.
pub fn with_native_states() -> Vec<AggregateUDF> {
    vec![
        exact_sum(),
        AggregateUDF::from(aggregates::avg::Avg::new()),
        AggregateUDF::from(aggregates::arg_extreme::ArgExtreme::max_by()),
        AggregateUDF::from(aggregates::arg_extreme::ArgExtreme::min_by()),
        AggregateUDF::from(aggregates::uniq::Uniq::new()),
        AggregateUDF::from(aggregates::uniq::Uniq::approx_distinct()),
    ]
}
