//! Which of a query's aggregates have native states.
//!
//! In: DataFusion's physical aggregate. Out: native states with the columns they read, or `None`: DataFusion's own run.
//! Invariant: an aggregate is known by its implementation, not by its name alone: a user's function that is called
//! `count` stays the user's.
//! Not here: the states (`grouse_groupby::states`).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::row::SortField;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::core::named_struct::NamedStructFunc;
use datafusion::functions::core::r#struct::StructFunc;
use datafusion::functions_aggregate::any_value::AnyValue;
use datafusion::functions_aggregate::approx_distinct::approx_distinct_udaf;
use datafusion::functions_aggregate::approx_median::approx_median_udaf;
use datafusion::functions_aggregate::approx_percentile_cont::approx_percentile_cont_udaf;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::correlation::corr_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::covariance::{covar_pop_udaf, covar_samp_udaf};
use datafusion::functions_aggregate::first_last::{FirstValue, LastValue};
use datafusion::functions_aggregate::median::median_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::nth_value::nth_value_udaf;
use datafusion::functions_aggregate::regr::{regr_avgx_udaf, regr_avgy_udaf, regr_count_udaf};
use datafusion::functions_aggregate::regr::{regr_intercept_udaf, regr_r2_udaf, regr_slope_udaf};
use datafusion::functions_aggregate::regr::{regr_sxx_udaf, regr_sxy_udaf, regr_syy_udaf};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_expr_common::sort_expr::PhysicalSortExpr;
use grouse_groupby::keys::is_bytes;
use grouse_groupby::keys::{as_views, decoded};
use grouse_groupby::states::{
    self, Aggregate, End, Extreme, ListedRows, Listing, NullRows, Quantile, Relation, Spread,
};

use crate::expr::arithmetic::as_they_are;
use crate::functions::{Frequent, Quantiles, TopRows, is_percentile_cont, with_native_states};

/// An aggregate with native states.
pub(crate) struct Native {
    /// Its states.
    pub aggregate: Arc<dyn Aggregate>,
    /// The argument columns that they read.
    pub columns: Vec<Arc<dyn PhysicalExpr>>,
    /// Which rows they read.
    pub reads: AggregateInput,
}

/// The input of an aggregate's states: what they get of the rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateInput {
    /// All of them.
    Rows,
    /// How many have different arguments.
    Number,
    /// The same, NULL being an argument as any other.
    NumberWithNull,
    /// Those with different arguments, each once.
    Distinct,
    /// The same, and of those with NULL one.
    DistinctWithNull,
    /// The same, and behind the arguments how often they occur.
    Counted,
}

impl AggregateInput {
    /// True where rows with NULL count.
    pub fn with_null(self) -> bool {
        matches!(
            self,
            AggregateInput::NumberWithNull | AggregateInput::DistinctWithNull
        )
    }

    /// True where nobody asks for the arguments themselves.
    pub fn only_number(self) -> bool {
        matches!(
            self,
            AggregateInput::Number | AggregateInput::NumberWithNull
        )
    }
}

/// Functions with native states whose implementations are not DataFusion's constants.
static OURS: LazyLock<Vec<AggregateUDF>> = LazyLock::new(|| {
    let mut ours = with_native_states();
    // DataFusion's sum wraps where it does not fit; the native one, as ours, says so.
    ours.push(sum_udaf().as_ref().clone());
    ours.push(avg_udaf().as_ref().clone());
    ours.push(approx_distinct_udaf().as_ref().clone());
    ours
});

/// Centroids of a digest where the query does not say, as DataFusion has.
const CENTROIDS: usize = 100;

/// Of these, the approximate counts.
const SKETCHES: [&str; 2] = ["uniq", "approx_distinct"];

/// The native form of `expression`, whose arguments are evaluated on batches of `schema`.
pub(crate) fn native(
    expression: &AggregateFunctionExpr,
    schema: &Schema,
) -> Result<Option<Native>> {
    let function = expression.fun();
    let columns = arguments(expression, schema)?;
    let types = columns.iter().map(|column| column.data_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let name = display_name(expression);
    if let Some(top_rows) = function.inner().downcast_ref::<TopRows>() {
        let aggregate = states::top_rows(name, top_rows.shape().clone());
        return Ok(with_columns(aggregate, columns));
    }
    if let Some(quantiles) = function.inner().downcast_ref::<Quantiles>() {
        return Ok(with_columns(quantiles.aggregate(name, &types[0]), columns));
    }
    if is_extreme(function) {
        // DISTINCT and ORDER BY change nothing, here and in sketches.
        let extreme = extreme_of(function.name());
        return Ok(with_columns(
            states::min_max(name, extreme, &types[0], expression.field().data_type()),
            columns,
        ));
    }
    if SKETCHES.contains(&function.name()) && OURS.contains(function) {
        return Ok(with_columns(states::uniq(name, &types), columns));
    }
    if let Some((end, nulls)) = end_of(expression) {
        return first_or_last(expression, schema, end, nulls, columns);
    }
    if let Some(frequent) = function.inner().downcast_ref::<Frequent>() {
        return most_frequent(frequent, expression, name, columns, &types);
    }
    if let Some(listing) = listing(expression, schema)? {
        return Ok(Some(listing));
    }
    if expression.is_distinct() {
        return Ok(distinct(expression, name, columns, &types));
    }
    if let Some((quantile, digest)) = quantile_of(expression) {
        let aggregate = one_quantile(name, quantile, digest, &types[0]);
        return Ok(with_columns(aggregate, columns[..1].to_vec()));
    }
    if !expression.order_bys().is_empty() {
        return Ok(None);
    }
    if is_count(function) {
        return Ok(counted(columns, schema)?
            .and_then(|columns| with_columns(states::count(name), columns)));
    }
    let aggregate = if let Some(spread) = spread_of(function) {
        states::variance(name, spread, &types[0])
    } else if let Some(relation) = relation_of(function) {
        states::covariance(name, relation, &types)
    } else if !OURS.contains(function) {
        None
    } else if adds_up(function) {
        total(expression, name, &types)
    } else {
        best(expression, name, &types)
    };
    Ok(with_columns(aggregate, columns))
}

/// The fields of a struct that is made of them, as `(a, b)` is, and is never NULL itself: they are compared as columns.
fn fields_of(columns: &[Arc<dyn PhysicalExpr>]) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
    let [made] = columns else {
        return None;
    };
    let made = made.downcast_ref::<ScalarFunctionExpr>()?;
    // A name, if there is one, and the field.
    let each = arguments_per_field(made.fun())?;
    let fields: Vec<_> = made
        .args()
        .chunks_exact(each)
        .map(|of| Arc::clone(&of[each - 1]))
        .collect();
    (!fields.is_empty()).then_some(fields)
}

/// How many arguments make a field of the struct that a function makes; `None` of functions that make none.
pub(crate) fn arguments_per_field(function: &ScalarUDF) -> Option<usize> {
    let function = function.inner();
    match (
        function.is::<StructFunc>(),
        function.is::<NamedStructFunc>(),
    ) {
        (true, _) => Some(1),
        (_, true) => Some(2),
        _ => None,
    }
}

/// The aggregate as the query wrote it.
fn display_name(expression: &AggregateFunctionExpr) -> &str {
    let written = expression.human_display();
    written.unwrap_or_else(|| expression.name())
}

/// True of `sum` and `avg`, whose states take decimals of 128 bits in 64 bits too.
pub(crate) fn adds_up(function: &AggregateUDF) -> bool {
    ["sum", "avg"].contains(&function.name()) && OURS.contains(function)
}

/// The columns that native states read.
fn arguments(
    expression: &AggregateFunctionExpr,
    schema: &Schema,
) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let columns = expression.expressions();
    if !adds_up(expression.fun()) || expression.is_distinct() {
        return Ok(columns);
    }
    let columns = columns.iter().map(|column| as_they_are(column, schema));
    columns.collect()
}

/// The states of `mode` and `approx_top_k` over counted values; with DISTINCT each value counts once, which is not for them.
fn most_frequent(
    function: &Frequent,
    expression: &AggregateFunctionExpr,
    name: &str,
    mut columns: Vec<Arc<dyn PhysicalExpr>>,
    types: &[DataType],
) -> Result<Option<Native>> {
    let wanted = function.wanted(&columns)?;
    let wanted = wanted.filter(|_| !expression.is_distinct());
    let aggregate = wanted.and_then(|wanted| states::top_values(name, wanted, decoded(&types[0])));
    columns.truncate(1);
    Ok(aggregate.map(|aggregate| Native {
        aggregate,
        columns,
        reads: AggregateInput::Counted,
    }))
}

/// What sorts by `order_bys`, whose columns come behind the `columns` that states read.
fn sort_fields(
    order_bys: &[PhysicalSortExpr],
    schema: &Schema,
    columns: &mut Vec<Arc<dyn PhysicalExpr>>,
) -> Result<Vec<SortField>> {
    columns.extend(order_bys.iter().map(|key| Arc::clone(&key.expr)));
    let fields = order_bys.iter().map(|key| {
        let data_type = key.expr.data_type(schema)?;
        Ok(SortField::new_with_options(data_type, key.options))
    });
    fields.collect()
}

/// True of aggregates whose states put rows into the order that they are written with: no order of the input is of use to them.
pub(crate) fn sorts_itself(expression: &AggregateFunctionExpr, schema: &Schema) -> Result<bool> {
    let is_ordered = !expression.order_bys().is_empty();
    Ok(is_percentile(expression.fun()) || is_ordered && listing(expression, schema)?.is_some())
}

/// True of percentiles, whose order only says from which end to count: DataFusion's states need none either.
fn is_percentile(function: &AggregateUDF) -> bool {
    is_percentile_cont(function) || is(function, &approx_percentile_cont_udaf())
}

/// `array_agg`, `string_agg` or `nth_value` with ORDER BY, the first two also without; its states read x and what it is ordered
/// by. With DISTINCT they have to be ordered by x, and read pairs.
fn listing(expression: &AggregateFunctionExpr, schema: &Schema) -> Result<Option<Native>> {
    let order_bys = expression.order_bys();
    let mut columns = expression.expressions();
    let Some((listing, nulls)) = listing_of(expression, &columns) else {
        return Ok(None);
    };
    if order_bys.is_empty() && (matches!(listing, Listing::Nth(_)) || expression.is_distinct()) {
        return Ok(None);
    }
    columns.truncate(1);
    let in_rows = columns[0].data_type(schema)?;
    let mut value_type = match &in_rows {
        // Codes of a scan: x is what the list has.
        DataType::Dictionary(codes, of) if is_bytes(of) && **codes == DataType::UInt32 => {
            as_views(of)
        }
        data_type => data_type.clone(),
    };
    let (rows, reads) = match (expression.is_distinct(), order_bys) {
        (false, _) => (ListedRows::All, AggregateInput::Rows),
        (true, [one]) if is_listed_once(&listing, &columns[0], one) => {
            paired(&value_type, nulls, columns[0].nullable(schema)?)
        }
        (true, _) => return Ok(None),
    };
    // DataFusion turns an order around that it would like to share with another one's.
    let order_bys = order_bys.iter().map(|key| match expression.is_reversed() {
        true => key.reverse(),
        false => key.clone(),
    });
    let order_bys: Vec<_> = order_bys.collect();
    let mut order = sort_fields(&order_bys, schema, &mut columns)?;
    if reads != AggregateInput::Rows {
        // The order is x, which pairs have as it is without codes.
        columns.truncate(1);
        value_type = decoded(&in_rows).clone();
        order = vec![SortField::new_with_options(
            value_type.clone(),
            order_bys[0].options,
        )];
    }
    let name = display_name(expression);
    let aggregate = states::listed(name, listing, (rows, nulls), &order, &value_type);
    Ok(aggregate.map(|aggregate| Native {
        aggregate,
        columns,
        reads,
    }))
}

/// What lists of different x read: pairs, or rows of a type that pairs change, as they know one zero.
fn paired(x: &DataType, nulls: NullRows, nullable: bool) -> (ListedRows, AggregateInput) {
    let x = decoded(x);
    match (x.is_nested() || x.is_floating(), nulls) {
        (true, _) => (ListedRows::Distinct, AggregateInput::Rows),
        (false, NullRows::Respected) if nullable => {
            (ListedRows::All, AggregateInput::DistinctWithNull)
        }
        (false, _) => (ListedRows::All, AggregateInput::Distinct),
    }
}

/// True if DISTINCT leaves those rows of x that differ in the order, `one`: a random x is computed again for it.
fn is_listed_once(listing: &Listing, x: &Arc<dyn PhysicalExpr>, one: &PhysicalSortExpr) -> bool {
    !matches!(listing, Listing::Nth(_)) && one.expr.eq(x) && !is_volatile(x)
}

fn listing_of(
    expression: &AggregateFunctionExpr,
    arguments: &[Arc<dyn PhysicalExpr>],
) -> Option<(Listing, NullRows)> {
    let function = expression.fun();
    let option = || {
        arguments
            .get(1)?
            .downcast_ref::<Literal>()
            .map(Literal::value)
    };
    if is(function, &array_agg_udaf()) {
        let field = expression.field();
        let DataType::List(item) = field.data_type() else {
            return None;
        };
        Some((Listing::Array(Arc::clone(item)), null_rows(expression)))
    } else if is(function, &string_agg_udaf()) {
        let between = option()?;
        let between = match between.is_null() {
            true => "",
            false => between.try_as_str()??,
        };
        Some((Listing::Joined(between.to_owned()), NullRows::Ignored))
    } else if is(function, &nth_value_udaf()) {
        match option()? {
            ScalarValue::Int64(Some(n)) => Some((Listing::Nth(*n), NullRows::Respected)),
            _ => None,
        }
    } else {
        None
    }
}

/// Aggregates of DataFusion that take DISTINCT and do not heed it in all of their states, or have an accumulator per group then.
/// None of them takes part in rows with NULL.
const DISTINCT_ELSEWHERE: [&str; 6] = [
    "string_agg",
    "bit_xor",
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "percentile_cont",
];

/// An aggregate and the columns that it reads.
pub(crate) type OverColumns = (AggregateFunctionExpr, Vec<Arc<dyn PhysicalExpr>>);

/// `string_agg(x, ',')` for `string_agg(DISTINCT x, ',')` in any order: the same over x that are different, each once; so too
/// others of DataFusion's, with the columns that they read.
pub(crate) fn datafusion_of_distinct(
    expression: &AggregateFunctionExpr,
    schema: &Schema,
) -> Result<Option<OverColumns>> {
    let function = expression.fun();
    let is_one = DISTINCT_ELSEWHERE.contains(&function.name());
    let is_free = expression.order_bys().is_empty() || is_percentile(function);
    if !expression.is_distinct() || !is_one || !is_free {
        return Ok(None);
    }
    let plain = AggregateExprBuilder::new(Arc::new(function.clone()), expression.expressions())
        .order_by(expression.order_bys().to_vec())
        .schema(Arc::new(schema.clone()))
        .alias(expression.name())
        .human_display(display_name(expression));
    let columns = without_options(expression.expressions());
    Ok(Some((plain.build()?, columns)))
}

/// The states of `count(DISTINCT …)`, `sum(DISTINCT x)`, `avg(DISTINCT x)`, variances, correlations and their kin over rows that
/// are different.
fn distinct(
    expression: &AggregateFunctionExpr,
    name: &str,
    columns: Vec<Arc<dyn PhysicalExpr>>,
    types: &[DataType],
) -> Option<Native> {
    if is_count(expression.fun()) {
        let fields = fields_of(&columns);
        let reads = match fields {
            Some(_) => AggregateInput::NumberWithNull,
            None => AggregateInput::Number,
        };
        return Some(Native {
            aggregate: states::count(name)?,
            columns: fields.unwrap_or(columns),
            reads,
        });
    }
    let (function, columns) = (expression.fun(), without_options(columns));
    let aggregate = if OURS.contains(function) {
        total(expression, name, types)
    } else if let Some(spread) = spread_of(function) {
        states::variance(name, spread, &types[0])
    } else if let Some(relation) = relation_of(function) {
        states::covariance(name, relation, types)
    } else {
        None
    };
    Some(Native {
        aggregate: aggregate?,
        columns,
        reads: AggregateInput::Distinct,
    })
}

/// Arguments without the literals behind them, which say how and not what.
fn without_options(mut columns: Vec<Arc<dyn PhysicalExpr>>) -> Vec<Arc<dyn PhysicalExpr>> {
    while columns.len() > 1 && columns.last().is_some_and(|last| last.is::<Literal>()) {
        columns.pop();
    }
    columns
}

/// `sum(x)` or `avg(x)`.
fn total(
    expression: &AggregateFunctionExpr,
    name: &str,
    types: &[DataType],
) -> Option<Arc<dyn Aggregate>> {
    let field = expression.field();
    match expression.fun().name() {
        "sum" => states::sum(name, &types[0], field.data_type()),
        "avg" => states::avg(name, &types[0], field.data_type()),
        _ => None,
    }
}

/// `max_by(x, y)` or `min_by(x, y)`.
fn best(
    expression: &AggregateFunctionExpr,
    name: &str,
    types: &[DataType],
) -> Option<Arc<dyn Aggregate>> {
    let [value, by] = types else { return None };
    let extreme = match expression.fun().name() {
        "max_by" => Extreme::Max,
        "min_by" => Extreme::Min,
        _ => return None,
    };
    states::arg_extreme(name, extreme, value, by, expression.field().data_type())
}

/// True of aggregates whose states take strings to hand out, their first argument, as codes. Where DataFusion has turned an order
/// around, its expressions stay as they are.
pub(crate) fn hands_out(expression: &AggregateFunctionExpr) -> bool {
    let function = expression.fun();
    let is_best = ["min_by", "max_by"].contains(&function.name()) && OURS.contains(function);
    let is_end = || end_of(expression).is_some();
    let is_listing = || listing_of(expression, &expression.expressions()).is_some();
    !expression.is_reversed() && (is_best || is_end() || is_listing())
}

/// Which row of a group `first_value`, `last_value` or `any_value` takes x of; `None` for other aggregates.
pub(crate) fn end_of(expression: &AggregateFunctionExpr) -> Option<(End, NullRows)> {
    let function = expression.fun().inner();
    let nulls = null_rows(expression);
    if function.is::<FirstValue>() {
        Some((End::First, nulls))
    } else if function.is::<LastValue>() {
        Some((End::Last, nulls))
    } else if function.is::<AnyValue>() {
        Some((End::First, NullRows::Ignored))
    } else {
        None
    }
}

fn null_rows(expression: &AggregateFunctionExpr) -> NullRows {
    match expression.ignore_nulls() {
        true => NullRows::Ignored,
        false => NullRows::Respected,
    }
}

/// Its states, which read x and what it is ordered by. DISTINCT changes nothing.
fn first_or_last(
    expression: &AggregateFunctionExpr,
    schema: &Schema,
    end: End,
    nulls: NullRows,
    mut columns: Vec<Arc<dyn PhysicalExpr>>,
) -> Result<Option<Native>> {
    let value_type = columns[0].data_type(schema)?;
    let order_bys = match expression.fun().inner().is::<AnyValue>() {
        true => &[],
        false => expression.order_bys(),
    };
    let order = sort_fields(order_bys, schema, &mut columns)?;
    let name = display_name(expression);
    let result_type = expression.field();
    let aggregate = states::first_last(
        name,
        (end, nulls),
        &order,
        &value_type,
        result_type.data_type(),
    );
    Ok(with_columns(aggregate, columns))
}

/// What `median`, `percentile_cont(x, fraction)`, `approx_median` or `approx_percentile_cont(x, fraction, centroids)` asks for,
/// and the centroids of its digests. `None` where the fraction or the number is none, which DataFusion's own states say best.
pub(crate) fn quantile_of(expression: &AggregateFunctionExpr) -> Option<(Quantile, Option<usize>)> {
    let function = expression.fun();
    if expression.is_distinct() {
        return None;
    }
    if is(function, &median_udaf()) {
        return Some((Quantile::Median, None));
    }
    if is(function, &approx_median_udaf()) {
        return Some((Quantile::Median, Some(CENTROIDS)));
    }
    if !is_percentile(function) {
        return None;
    }
    let arguments = expression.expressions();
    let literal = |at: usize| Some(arguments.get(at)?.downcast_ref::<Literal>()?.value());
    let fraction = match literal(1)? {
        ScalarValue::Float64(Some(fraction)) => *fraction,
        ScalarValue::Float32(Some(fraction)) => (*fraction).into(),
        _ => return None,
    };
    let order = expression.order_bys().first();
    let descending = order.is_some_and(|key| key.options.descending);
    if !(0.0..=1.0).contains(&fraction) {
        return None;
    }
    let quantile = match descending {
        true => Quantile::FractionFromTop(fraction),
        false => Quantile::Fraction(fraction),
    };
    let digest = match literal(2) {
        _ if is_percentile_cont(function) => None,
        None if arguments.len() < 3 => Some(CENTROIDS),
        Some(ScalarValue::Int64(Some(size))) if *size > 0 => Some(usize::try_from(*size).ok()?),
        _ => return None,
    };
    Some((quantile, digest))
}

fn one_quantile(
    name: &str,
    quantile: Quantile,
    digest: Option<usize>,
    input_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    match (quantile, digest) {
        (Quantile::Median, None) => states::median(name, input_type),
        (quantile, None) => states::percentile(name, quantile, input_type),
        (quantile, Some(size)) => {
            states::approximate_percentile(name, quantile.fraction(), size, input_type)
        }
    }
}

/// What a variance or standard deviation of DataFusion says.
fn spread_of(function: &AggregateUDF) -> Option<Spread> {
    one_of(
        function,
        [
            (stddev_udaf(), Spread::DeviationSample),
            (stddev_pop_udaf(), Spread::DeviationPopulation),
            (var_samp_udaf(), Spread::VarianceSample),
            (var_pop_udaf(), Spread::VariancePopulation),
        ],
    )
}

/// What a covariance, correlation or regression of DataFusion says.
fn relation_of(function: &AggregateUDF) -> Option<Relation> {
    one_of(
        function,
        [
            (covar_pop_udaf(), Relation::CovariancePopulation),
            (covar_samp_udaf(), Relation::CovarianceSample),
            (corr_udaf(), Relation::Correlation),
            (regr_slope_udaf(), Relation::Slope),
            (regr_intercept_udaf(), Relation::Intercept),
            (regr_r2_udaf(), Relation::Determination),
            (regr_count_udaf(), Relation::Count),
            (regr_avgx_udaf(), Relation::MeanX),
            (regr_avgy_udaf(), Relation::MeanY),
            (regr_sxx_udaf(), Relation::SquaresX),
            (regr_syy_udaf(), Relation::SquaresY),
            (regr_sxy_udaf(), Relation::Products),
        ],
    )
}

fn one_of<T, const N: usize>(
    function: &AggregateUDF,
    known: [(Arc<AggregateUDF>, T); N],
) -> Option<T> {
    let mut known = known.into_iter();
    known.find_map(|(datafusion, meaning)| is(function, &datafusion).then_some(meaning))
}

/// True of DataFusion's `count`.
pub(crate) fn is_count(function: &AggregateUDF) -> bool {
    is(function, &count_udaf())
}

/// True of DataFusion's `min` and `max`.
pub(crate) fn is_extreme(function: &AggregateUDF) -> bool {
    is(function, &min_udaf()) || is(function, &max_udaf())
}

fn extreme_of(name: &str) -> Extreme {
    match name {
        "min" => Extreme::Min,
        _ => Extreme::Max,
    }
}

fn is(function: &AggregateUDF, known: &Arc<AggregateUDF>) -> bool {
    function == known.as_ref()
}

fn with_columns(
    aggregate: Option<Arc<dyn Aggregate>>,
    columns: Vec<Arc<dyn PhysicalExpr>>,
) -> Option<Native> {
    aggregate.map(|aggregate| Native {
        aggregate,
        columns,
        reads: AggregateInput::Rows,
    })
}

/// The columns whose NULLs `count` leaves out: none for `count(*)`; `None` where that is not a matter of columns.
fn counted(
    columns: Vec<Arc<dyn PhysicalExpr>>,
    schema: &Schema,
) -> Result<Option<Vec<Arc<dyn PhysicalExpr>>>> {
    let mut nullable = Vec::with_capacity(columns.len());
    for column in columns {
        match column.downcast_ref::<Literal>().map(Literal::value) {
            Some(ScalarValue::Null) => return Ok(None),
            Some(value) if value.is_null() => return Ok(None),
            Some(_) => {}
            None if column.nullable(schema)? => nullable.push(column),
            None => {}
        }
    }
    Ok(Some(nullable))
}
