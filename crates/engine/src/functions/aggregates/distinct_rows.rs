//! Aggregates over a window with DISTINCT that DataFusion ignores or refuses: `corr(DISTINCT y, x)`, `stddev(DISTINCT x)`.
//!
//! In: such an aggregate. Out: the same aggregate, which sees each row of its arguments once.
//! Invariant: rows may leave a frame; a row is there as long as one that is equal to it is.
//! Not here: the same of groups, which our operator pairs (`exec/distinct_groupings.rs`); aggregates that know DISTINCT themselves.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, new_empty_array};

use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::{HashMap, Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF};

use crate::functions::aggregates::recomputed::Making;
use crate::functions::wrapped::as_wrapped;
use crate::wire::portable;

/// Aggregates that are not told of DISTINCT, or by which rows cannot leave a frame.
const UNAWARE: [&str; 19] = [
    "approx_median",
    "approx_percentile_cont",
    "corr",
    "covar_pop",
    "covar_samp",
    "median",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "var",
    "var_pop",
];

/// The aggregate as it runs with DISTINCT; `None` where it does by itself.
pub(crate) fn of_distinct_rows(function: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    let is_unaware = UNAWARE.contains(&function.name()) && !function.inner().is::<DistinctRows>();
    is_unaware.then(|| Arc::new(AggregateUDF::from(DistinctRows(Arc::clone(function)))))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct DistinctRows(Arc<AggregateUDF>);

impl AggregateUDFImpl for DistinctRows {
    as_wrapped!(
        0: name, signature, coerce_types, return_type, return_field, is_nullable,
        state_fields, window_function_schema_name, window_function_display_name
    );

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fields = args.expr_fields.iter();
        let fields = fields.map(|field| SortField::new(field.data_type().clone()));
        Ok(Box::new(CountedRows {
            making: Making::of_rows(&self.0, &args),
            converter: RowConverter::new(fields.collect())?,
            counts: HashMap::default(),
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.accumulator(args)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

portable!(DistinctRows, "distinct_rows", 0: aggregate);

/// The rows of a frame, each with how often it is there.
#[derive(Debug)]
struct CountedRows {
    making: Making,
    converter: RowConverter,
    counts: HashMap<OwnedRow, u64>,
}

impl CountedRows {
    fn columns(&self) -> Result<Vec<ArrayRef>> {
        if self.counts.is_empty() {
            let fields = self.making.expr_fields.iter();
            return Ok(fields
                .map(|field| new_empty_array(field.data_type()))
                .collect());
        }
        // In one order, so that sums of floats are one.
        let mut rows: Vec<&OwnedRow> = self.counts.keys().collect();
        rows.sort_unstable();
        Ok(self
            .converter
            .convert_rows(rows.into_iter().map(OwnedRow::row))?)
    }
}

impl Accumulator for CountedRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for row in &self.converter.convert_columns(values)? {
            *self.counts.entry(row.owned()).or_insert(0) += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for row in &self.converter.convert_columns(values)? {
            let row = row.owned();
            if let Some(count) = self.counts.get_mut(&row) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&row);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut accumulator = self.making.accumulator()?;
        accumulator.update_batch(&self.columns()?)?;
        accumulator.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("{}(DISTINCT …) in parts", self.making.name)
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("{}(DISTINCT …) in parts", self.making.name)
    }

    fn size(&self) -> usize {
        let rows = self
            .counts
            .keys()
            .map(|row| row.row().data().len() + size_of::<OwnedRow>());
        size_of_val(self) + rows.sum::<usize>()
    }
}
