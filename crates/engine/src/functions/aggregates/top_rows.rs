//! `top_rows(n, columns ORDER BY keys)`: the n first rows of a group, as a list of structs.
//!
//! In: columns, by some of which rows are ordered. Out: the type of what the operator's states give.
//! Invariant: only a plan of ours contains it; SQL cannot name it, and it has no states but the operator's.
//! Not here: which windows it replaces (optimizer/top_n_per_group.rs), the states (`grouse_groupby::states::top_rows`).

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use grouse_groupby::states::top_rows::{SortKey, TopRows as Shape};

use crate::expr::function_methods::function_methods;
use crate::wire::{Portable, WireReader, WireValue};

/// The name of the function.
const NAME: &str = "top_rows";

/// The function for one plan.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TopRows {
    shape: Shape,
    signature: Signature,
}

impl TopRows {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }

    /// What is kept of each group.
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }
}

impl AggregateUDFImpl for TopRows {
    function_methods!(NAME);

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.shape.result_type())
    }

    fn return_field(&self, _: &[FieldRef]) -> Result<FieldRef> {
        Ok(Field::new(NAME, self.shape.result_type(), false).into())
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        internal_err!("{NAME} runs in our operator alone")
    }
}

impl Portable for TopRows {
    const KIND: &'static str = "top_rows";

    fn apart(&self) -> Vec<WireValue> {
        let columns = Arc::new(Schema::new(self.shape.columns.clone()));
        let keys = self.shape.order.iter().map(|key| {
            WireValue::List(vec![
                key.column.into(),
                key.options.descending.into(),
                key.options.nulls_first.into(),
            ])
        });
        vec![
            self.shape.rows_max.into(),
            (&columns).into(),
            self.shape.results.into(),
            WireValue::List(keys.collect()),
        ]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let rows_max = values.count()?;
        let columns = values.schema()?.fields().clone();
        let results = values.count()?;
        let order = values.each(|values| {
            let mut key = WireReader::new(values.list()?);
            Ok(SortKey {
                column: key.count()?,
                options: SortOptions {
                    descending: key.flag()?,
                    nulls_first: key.flag()?,
                },
            })
        })?;
        Ok(TopRows::new(Shape {
            rows_max,
            columns,
            results,
            order,
        }))
    }
}
