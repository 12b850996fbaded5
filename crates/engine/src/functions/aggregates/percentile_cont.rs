//! `percentile_cont(x, fraction)`, also called `quantile_cont`: what a fraction of the values lies below, interpolated.
//!
//! In: floats, dates or times, of which NULL does not count. Out: the same type, a TIMESTAMP of dates.
//! Invariant: what lies between two values is exact but for a float's rounding. DataFusion cuts the fraction to six digits:
//! 289.9999 of 100, 200 and 300 for 0.95.
//! Not here: the operator's states (`grouse_groupby::states::percentile`), which compute the same; several fractions (standing.rs).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Signature,
};
use grouse_groupby::keys::decoded;
use grouse_groupby::states::{Quantile, quantile_of};

use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::ordered_set::temporal_median;
use crate::functions::aggregates::temporal_states::Middle;
use crate::functions::taken_by;

/// What it takes.
const TAKES: &str = "numbers, dates or times, and a share between 0 and 1";

/// The aggregate.
pub(in crate::functions) fn percentile_cont() -> AggregateUDF {
    let datafusion = percentile_cont_udaf();
    AggregateUDF::from(PercentileCont {
        signature: Signature::user_defined(datafusion.signature().volatility),
        aliases: datafusion.aliases().to_vec(),
    })
}

/// True of `percentile_cont`.
pub(crate) fn is_percentile_cont(function: &AggregateUDF) -> bool {
    function.inner().is::<PercentileCont>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PercentileCont {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for PercentileCont {
    function_methods!("percentile_cont");

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [of, _] if temporal_median(decoded(of)).is_some() => {
                Ok(vec![decoded(of).clone(), DataType::Float64])
            }
            [of, fraction] => {
                let of = if of.is_null() {
                    &DataType::Float64
                } else {
                    decoded(of)
                };
                let types = [of.clone(), fraction.clone()];
                taken_by(&percentile_cont_udaf(), &types, TAKES)
            }
            _ => plan_err!("percentile_cont takes {TAKES}"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match temporal_median(&types[0]) {
            Some(middle) => Ok(middle),
            None => percentile_cont_udaf().return_type(types),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if temporal_median(args.input_fields[0].data_type()).is_some() {
            return Ok(Middle::state_fields(&args));
        }
        percentile_cont_udaf().state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.expr_fields[0].data_type().clone();
        match quantile(&args)? {
            Some(quantile) if temporal_median(&data_type).is_some() => {
                let result = args.return_type().clone();
                Ok(Box::new(Middle::new(quantile, args.is_distinct, result)))
            }
            Some(quantile) if data_type.is_floating() => Ok(Box::new(FrameValues {
                data_type,
                quantile,
                is_distinct: args.is_distinct,
                values: Vec::new(),
            })),
            // Its own accumulator says what is wrong with the fraction, and is NULL of NULL.
            _ => percentile_cont_udaf().accumulator(args),
        }
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        percentile_cont_udaf().simplify()
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// What is asked for; `None` if it is no fraction.
fn quantile(args: &AccumulatorArgs) -> Result<Option<Quantile>> {
    let no_rows = RecordBatch::new_empty(Arc::new(args.schema.clone()));
    let literal = match args
        .exprs
        .get(1)
        .map(|fraction| fraction.evaluate(&no_rows))
    {
        Some(Ok(ColumnarValue::Scalar(literal))) => literal,
        _ => return Ok(None),
    };
    let ScalarValue::Float64(Some(fraction)) = literal.cast_to(&DataType::Float64)? else {
        return Ok(None);
    };
    let order = args.order_bys.first();
    let is_descending = order.is_some_and(|key| key.options.descending);
    Ok(match is_descending {
        _ if !(0.0..=1.0).contains(&fraction) => None,
        true => Some(Quantile::FractionFromTop(fraction)),
        false => Some(Quantile::Fraction(fraction)),
    })
}

/// The values of a group or frame.
#[derive(Debug)]
struct FrameValues {
    data_type: DataType,
    quantile: Quantile,
    is_distinct: bool,
    values: Vec<f64>,
}

impl FrameValues {
    fn keep_distinct(&mut self) {
        if self.is_distinct {
            // Zeros are equal whatever their sign.
            self.values.sort_by(|a, b| (a + 0.0).total_cmp(&(b + 0.0)));
            self.values
                .dedup_by(|a, b| a == b || a.is_nan() && b.is_nan());
        }
    }
}

impl Accumulator for FrameValues {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let floats = cast(&columns[0], &DataType::Float64)?;
        let floats = floats.as_primitive::<Float64Type>();
        self.values.extend(floats.iter().flatten());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for values in lists.iter().flatten() {
            self.update_batch(&[values])?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.keep_distinct();
        let values = Float64Array::from(std::mem::take(&mut self.values));
        let values = cast(&values, &self.data_type)?;
        Ok(vec![
            SingleRowListArrayBuilder::new(values).build_list_scalar(),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.keep_distinct();
        let found = quantile_of(&self.values, self.quantile);
        ScalarValue::Float64(found).cast_to(&self.data_type)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }
}
