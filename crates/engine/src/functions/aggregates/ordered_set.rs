//! `median`, also of dates and times, and `percentile_disc`, also called `quantile_disc`.
//!
//! In: values with an order. Out: the middle of them; the first of them that a fraction of them does not exceed.
//! Invariant: a median of numbers is DataFusion's. Grouped ones of dates and times, and every `percentile_disc`, are composed of
//! other aggregates while the query is planned (optimizer/fixes/grouping/composed.rs). The states here never see one.
//! Not here: `percentile_cont`.

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, FieldRef, TimeUnit,
};
use datafusion::common::{Result, not_impl_err, plan_err};
use datafusion::functions_aggregate::median::median_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use grouse_groupby::states::Quantile;

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::temporal_states::Middle;

/// `median`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Median {
    signature: Signature,
}

impl Median {
    pub(in crate::functions) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

/// The type of a median of dates and times, between two of which there may be half a day; `None` for other types.
pub(crate) fn temporal_median(values: &DataType) -> Option<DataType> {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    match values {
        Date32 | Date64 => Some(Timestamp(TimeUnit::Microsecond, None)),
        Time32(_) => Some(Time64(TimeUnit::Microsecond)),
        Time64(_) | Timestamp(..) => Some(values.clone()),
        _ => None,
    }
}

/// The type of the middle of two decimals.
pub(crate) fn with_middle(decimal: &DataType) -> DataType {
    match decimal {
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
            if *digits < DECIMAL128_MAX_PRECISION =>
        {
            DataType::Decimal128(digits + 1, scale + 1)
        }
        DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale)
            if *digits < DECIMAL256_MAX_PRECISION =>
        {
            DataType::Decimal256(digits + 1, scale + 1)
        }
        _ => DataType::Float64,
    }
}

impl AggregateUDFImpl for Median {
    function_methods!("median");

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [values] = types else {
            return plan_err!("median takes one argument, e.g. median(x)");
        };
        Ok(vec![match values {
            values if values.is_integer() || values.is_null() => DataType::Float64,
            values if values.is_floating() => values.clone(),
            values if values.is_decimal() => with_middle(values),
            values if temporal_median(values).is_some() => values.clone(),
            DataType::Dictionary(_, values) => return self.coerce_types(&[*values.clone()]),
            _ => return plan_err!("median takes numbers, dates or times, not {values}"),
        }])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(temporal_median(&types[0]).unwrap_or_else(|| types[0].clone()))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if temporal_median(args.expr_fields[0].data_type()).is_some() {
            let result = args.return_type().clone();
            return Ok(Box::new(Middle::new(
                Quantile::Median,
                args.is_distinct,
                result,
            )));
        }
        median_udaf().accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if temporal_median(args.expr_fields[0].data_type()).is_some() {
            let result = args.return_type().clone();
            return Ok(Box::new(Middle::new(
                Quantile::Median,
                args.is_distinct,
                result,
            )));
        }
        median_udaf().create_sliding_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        match temporal_median(args.input_fields[0].data_type()) {
            Some(_) => Ok(Middle::state_fields(&args)),
            None => median_udaf().state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        temporal_median(args.expr_fields[0].data_type()).is_none()
            && median_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        median_udaf().create_groups_accumulator(args)
    }
}

/// `percentile_disc(0.5) WITHIN GROUP (ORDER BY x)`, or `quantile_disc(x, 0.5)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PercentileDisc {
    signature: Signature,
    aliases: Vec<String>,
}

impl PercentileDisc {
    pub(in crate::functions) fn new() -> Self {
        Self {
            signature: Signature::any(2, Volatility::Immutable),
            aliases: vec!["quantile_disc".to_string()],
        }
    }
}

impl AggregateUDFImpl for PercentileDisc {
    function_methods!("percentile_disc");

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!("percentile_disc over a window")
    }
}

/// True of our `median`.
pub(crate) fn is_median(function: &AggregateUDF) -> bool {
    function.inner().is::<Median>()
}

/// True of `percentile_disc`.
pub(crate) fn is_percentile_disc(function: &AggregateUDF) -> bool {
    function.inner().is::<PercentileDisc>()
}
