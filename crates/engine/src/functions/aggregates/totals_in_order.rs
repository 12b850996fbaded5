//! Sums and means of the items of a list, added up from the first to the last.
//!
//! In: lists of doubles. Out: for each its sum or its mean; NULL of a list that is NULL or has no item.
//! Invariant: the additions are those of the order that the list has, one after the other, so that
//! `sum(x ORDER BY y)` is one number, whoever reads which rows.
//! Not here: which aggregates are computed so (optimizer/fixes/composed.rs).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static SUM: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| OrderedTotal::Sum.function());
static MEAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| OrderedTotal::Mean.function());

/// The sum of a list's items.
pub(crate) fn sum_from_first(list: Expr) -> Expr {
    SUM.call(vec![list])
}

/// Their mean.
pub(crate) fn mean_from_first(list: Expr) -> Expr {
    MEAN.call(vec![list])
}

/// What is made of the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OrderedTotal {
    Sum,
    Mean,
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
        let (sum, count) = items.fold((0.0, 0_u64), |(sum, count), item| (sum + item, count + 1));
        match (self, count) {
            (_, 0) => None,
            (OrderedTotal::Sum, _) => Some(sum),
            (OrderedTotal::Mean, _) => Some(sum / count as f64),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TotalInOrder {
    total: OrderedTotal,
    signature: Signature,
}

impl ScalarUDFImpl for TotalInOrder {
    fn name(&self) -> &str {
        match self.total {
            OrderedTotal::Sum => "sum in order",
            OrderedTotal::Mean => "mean in order",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
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
    }
}
