//! Sums, means and products of doubles, from the first to the last.
//!
//! In: lists of doubles; the rows of a window in its order. Out: their sum, mean or product; NULL where there is no double.
//! Invariant: the operations are those of the order that the list or the window has, one after the other. So `sum(x ORDER
//! BY y)` is one number, whoever reads which rows. DataFusion adds up several rows side by side.
//! Not here: which aggregates of groups are computed so (optimizer/fixes/composed.rs).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    Accumulator, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::expr::function_methods::function_methods;
use crate::wire::{Portable, WireReader, WireValue};

static SUM: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| OrderedTotal::Sum.function());
static MEAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| OrderedTotal::Mean.function());
static PRODUCT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| OrderedTotal::Product.function());

/// The sum of a list's items.
pub(crate) fn sum_from_first(list: Expr) -> Expr {
    SUM.call(vec![list])
}

/// Their mean.
pub(crate) fn mean_from_first(list: Expr) -> Expr {
    MEAN.call(vec![list])
}

/// Their product.
pub(crate) fn product_from_first(list: Expr) -> Expr {
    PRODUCT.call(vec![list])
}

/// The accumulator of a sum of doubles, with the state that DataFusion's has.
pub(super) fn running_sum() -> Box<dyn Accumulator> {
    Box::new(RunningTotal::new(OrderedTotal::Sum))
}

/// The accumulator of a mean of doubles, with the state that DataFusion's has.
pub(super) fn running_mean() -> Box<dyn Accumulator> {
    Box::new(RunningTotal::new(OrderedTotal::Mean))
}

/// What is made of the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OrderedTotal {
    Sum,
    Mean,
    Product,
}

impl OrderedTotal {
    fn function(self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(TotalInOrder {
            total: self,
            signature: Signature::any(1, Volatility::Immutable),
        }))
    }

    /// `None` where there is no item.
    fn of(self, items: impl Iterator<Item = f64>) -> Option<f64> {
        let mut running = RunningTotal::new(self);
        items.for_each(|item| running.add(item));
        running.result()
    }
}

/// What the items so far make, and how many they are.
#[derive(Debug)]
struct RunningTotal {
    total: OrderedTotal,
    value: f64,
    count: u64,
}

impl RunningTotal {
    fn new(total: OrderedTotal) -> RunningTotal {
        let value = match total {
            OrderedTotal::Sum | OrderedTotal::Mean => 0.0,
            OrderedTotal::Product => 1.0,
        };
        RunningTotal {
            total,
            value,
            count: 0,
        }
    }

    fn add(&mut self, item: f64) {
        match self.total {
            OrderedTotal::Sum | OrderedTotal::Mean => self.value += item,
            OrderedTotal::Product => self.value *= item,
        }
        self.count += 1;
    }

    fn result(&self) -> Option<f64> {
        match (self.total, self.count) {
            (_, 0) => None,
            (OrderedTotal::Mean, count) => Some(self.value / count as f64),
            (OrderedTotal::Sum | OrderedTotal::Product, _) => Some(self.value),
        }
    }
}

impl Accumulator for RunningTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        values.iter().flatten().for_each(|value| self.add(value));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.result()))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let value = ScalarValue::Float64((self.count > 0).then_some(self.value));
        Ok(match self.total {
            OrderedTotal::Mean => vec![ScalarValue::UInt64(Some(self.count)), value],
            OrderedTotal::Sum | OrderedTotal::Product => vec![value],
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [others @ .., values] = states else {
            return Ok(());
        };
        let counts = others
            .first()
            .map(|counts| counts.as_primitive::<UInt64Type>());
        let values = values.as_primitive::<Float64Type>().iter().enumerate();
        for (row, value) in values.filter_map(|(row, value)| Some((row, value?))) {
            self.add(value);
            // The state was one of so many rows.
            self.count += counts.map_or(0, |counts| counts.value(row).saturating_sub(1));
        }
        Ok(())
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct TotalInOrder {
    total: OrderedTotal,
    signature: Signature,
}

impl ScalarUDFImpl for TotalInOrder {
    function_methods!();

    fn name(&self) -> &str {
        match self.total {
            OrderedTotal::Sum => "sum in order",
            OrderedTotal::Mean => "mean in order",
            OrderedTotal::Product => "product in order",
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = args.args[0].to_array(args.number_rows)?;
        let doubles = Field::new_list_field(DataType::Float64, true);
        let lists = cast(&lists, &DataType::List(Arc::new(doubles)))?;
        let lists = lists.as_list::<i32>();
        let totals = lists.iter().map(|list| {
            let items = list?;
            self.total
                .of(items.as_primitive::<Float64Type>().iter().flatten())
        });
        Ok(ColumnarValue::Array(Arc::new(
            totals.collect::<Float64Array>(),
        )))
    }
}

impl Portable for TotalInOrder {
    const KIND: &'static str = "total_in_order";

    fn apart(&self) -> Vec<WireValue> {
        vec![self.name().into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let all = [OrderedTotal::Sum, OrderedTotal::Mean, OrderedTotal::Product];
        let all = all.map(|total| TotalInOrder {
            total,
            signature: Signature::any(1, Volatility::Immutable),
        });
        let name = values.text()?;
        match all.into_iter().find(|one| one.name() == name) {
            Some(found) => Ok(found),
            None => internal_err!("{name} is no total"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_added_from_the_first_on() {
        let sum = |items: &[f64]| OrderedTotal::Sum.of(items.iter().copied());
        assert_eq!(sum(&[1e100, 1.0, -1e100]), Some(0.0));
        assert_eq!(sum(&[1e100, -1e100, 1.0]), Some(1.0));
        assert_eq!(sum(&[]), None);
        // More than the lanes that a sum in any order would have.
        let long: Vec<f64> = std::iter::once(1e16).chain([1.0; 40]).collect();
        assert_eq!(sum(&long), Some(1e16));
        assert_eq!(
            OrderedTotal::Mean.of([1e100, -1e100, 3.0].into_iter()),
            Some(1.0)
        );
        assert_eq!(OrderedTotal::Mean.of(std::iter::empty()), None);
        let product = |items: &[f64]| OrderedTotal::Product.of(items.iter().copied());
        assert_eq!(product(&[1e200, 1e-200, 1e200]), Some(1e200));
        assert_eq!(product(&[1e200, 1e200, 1e-200]), Some(f64::INFINITY));
    }

    #[test]
    fn states_of_running_totals_are_merged() {
        for (total, expected) in [(OrderedTotal::Sum, 10.0), (OrderedTotal::Mean, 2.5)] {
            let column =
                |values: Vec<Option<f64>>| Arc::new(Float64Array::from(values)) as ArrayRef;
            let mut all = RunningTotal::new(total);
            for values in [
                vec![Some(1.0), None, Some(2.0)],
                vec![None],
                vec![Some(3.0), Some(4.0)],
            ] {
                let mut one = RunningTotal::new(total);
                one.update_batch(&[column(values)]).unwrap();
                let state = one.state().unwrap().into_iter();
                let state: Vec<ArrayRef> = state.map(|part| part.to_array().unwrap()).collect();
                all.merge_batch(&state).unwrap();
            }
            assert_eq!(
                all.evaluate().unwrap(),
                ScalarValue::Float64(Some(expected))
            );
        }
    }
}
