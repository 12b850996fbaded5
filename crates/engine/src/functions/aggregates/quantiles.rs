//! `quantiles(x)`: several quantiles of the same values, as a struct.
//!
//! In: a column of floats. Out: the type of what the operator's states give.
//! Invariant: only a plan of ours contains it; SQL cannot name it, and it has no states but the operator's.
//! Not here: which aggregates it replaces (optimizer/shared_states.rs), the states (`grouse_groupby::states::quantiles`).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use grouse_groupby::states::{self, Aggregate, Quantile};

use crate::expr::function_methods::function_methods;
use crate::wire::{Portable, WireReader, WireValue};

/// The name of the function.
const NAME: &str = "quantiles";

/// The function for one plan.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Quantiles {
    all: Vec<Quantile>,
    digest: Option<usize>,
    signature: Signature,
}

impl Quantiles {
    /// `all` of them, from digests of so many centroids if not from all values.
    pub(crate) fn new(all: Vec<Quantile>, digest: Option<usize>) -> Self {
        Self {
            all,
            digest,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }

    /// Its states for a column of this type; `None` if it is not native.
    pub(crate) fn aggregate(&self, name: &str, x: &DataType) -> Option<Arc<dyn Aggregate>> {
        states::quantiles(name, &self.all, self.digest, x)
    }
}

impl AggregateUDFImpl for Quantiles {
    function_methods!(NAME);

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.aggregate(NAME, &types[0]) {
            Some(aggregate) => Ok(aggregate.result_type()),
            None => internal_err!("{NAME} of {}", types[0]),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        internal_err!("{NAME} runs in our operator alone")
    }
}

impl Portable for Quantiles {
    const KIND: &'static str = "quantiles";

    fn apart(&self) -> Vec<WireValue> {
        let of = |quantile: &Quantile| match quantile {
            Quantile::Median => vec!["median".into()],
            Quantile::Fraction(of) => vec!["fraction".into(), bits(*of)],
            Quantile::FractionFromTop(of) => vec!["fraction_from_top".into(), bits(*of)],
        };
        let all = self
            .all
            .iter()
            .map(|quantile| WireValue::List(of(quantile)));
        vec![WireValue::List(all.collect()), self.digest.into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let all = values.each(|values| {
            let mut of = WireReader::new(values.list()?);
            Ok(match of.text()?.as_str() {
                "median" => Quantile::Median,
                "fraction" => Quantile::Fraction(fraction(&mut of)?),
                "fraction_from_top" => Quantile::FractionFromTop(fraction(&mut of)?),
                other => return internal_err!("{NAME} has no {other}"),
            })
        })?;
        Ok(Quantiles::new(all, values.optional(WireReader::count)?))
    }
}

/// A fraction to the last bit.
fn bits(fraction: f64) -> WireValue {
    WireValue::Number(fraction.to_bits() as i64)
}

fn fraction(values: &mut WireReader) -> Result<f64> {
    Ok(f64::from_bits(values.number()? as u64))
}
