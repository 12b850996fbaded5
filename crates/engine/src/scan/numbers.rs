//! `numbers(n)` and `numbers(start, n)`: consecutive integers as a table.
//!
//! In: one or two whole numbers.
//! Out: one column `number` (UInt64), in as many partitions as the session has threads, one contiguous share each. A task of a
//! cluster has some of them.
//! Invariant: constant memory; row count, minimum and maximum are exact statistics, so `count(*)` reads nothing.
//! Not here: an output order; declared, it would make GROUP BY number a streaming aggregation behind an order-keeping
//! exchange, which is slower than grouping.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue, Statistics};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, StatisticsArgs,
};
use futures::Stream;

use crate::error::Error;
use crate::expr::plan_nodes::node_methods;

/// The function's name in SQL.
pub const NAME: &str = "numbers";

/// The table function.
#[derive(Debug)]
pub struct NumbersFunction;

impl TableFunctionImpl for NumbersFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let (start, count) = match args.exprs() {
            [count] => (0, whole_number(count, "the count")?),
            [start, count] => (
                whole_number(start, "the start")?,
                whole_number(count, "the count")?,
            ),
            other => {
                return Err(invalid(format!(
                    "it takes a count, or a start and a count, not {} values",
                    other.len()
                )));
            }
        };
        match start.checked_add(count) {
            Some(end) => Ok(Arc::new(Numbers { range: start..end })),
            None => Err(invalid(format!(
                "{start} + {count} numbers go past {}",
                u64::MAX
            ))),
        }
    }
}

fn whole_number(expr: &Expr, what: &str) -> Result<u64> {
    let Expr::Literal(value, _) = expr else {
        return Err(invalid(format!("{what} must be a constant, not {expr}")));
    };
    let number = match value {
        ScalarValue::Float64(Some(float)) => float_to_whole(*float),
        ScalarValue::Float32(Some(float)) => float_to_whole(f64::from(*float)),
        ScalarValue::Utf8(_)
        | ScalarValue::Utf8View(_)
        | ScalarValue::LargeUtf8(_)
        | ScalarValue::Boolean(_) => None,
        other => match other.cast_to(&DataType::UInt64) {
            Ok(ScalarValue::UInt64(Some(number))) => Some(number),
            _ => None,
        },
    };
    number.ok_or_else(|| {
        invalid(format!(
            "{what} must be a whole number from 0 to {}, not {value}",
            u64::MAX
        ))
    })
}

/// `numbers(1e8)` and `numbers(power(10, 8))`: floats that are exact integers.
fn float_to_whole(float: f64) -> Option<u64> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    ((0.0..=EXACT_MAX).contains(&float) && float.fract() == 0.0).then_some(float as u64)
}

fn invalid(message: String) -> datafusion::common::DataFusionError {
    Error::invalid(format!("argument of {NAME}"), message).into()
}

/// The table: a half-open range.
#[derive(Debug)]
struct Numbers {
    range: Range<u64>,
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(
        "number",
        DataType::UInt64,
        false,
    )]))
}

#[async_trait]
impl TableProvider for Numbers {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(schema().project(columns)?),
            None => schema(),
        };
        let partitions = state.config_options().execution.target_partitions.max(1);
        let range = shorten(&self.range, limit);
        Ok(Arc::new(NumbersExec::new(&range, partitions, schema)))
    }
}

fn shorten(range: &Range<u64>, limit: Option<usize>) -> Range<u64> {
    let rows = limit.map_or(u64::MAX, |limit| limit as u64);
    range.start..range.end.min(range.start.saturating_add(rows))
}

/// The leaf of the plan.
#[derive(Debug)]
pub struct NumbersExec {
    /// The numbers of each partition, from low to high.
    shares: Vec<Range<u64>>,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl NumbersExec {
    fn new(range: &Range<u64>, partitions: usize, schema: SchemaRef) -> NumbersExec {
        NumbersExec::of_shares(divided(range, partitions), schema)
    }

    /// One partition for each of these shares.
    pub(crate) fn of_shares(shares: Vec<Range<u64>>, schema: SchemaRef) -> NumbersExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(shares.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        NumbersExec {
            shares,
            fetch: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The numbers of each partition.
    pub(crate) fn shares(&self) -> &[Range<u64>] {
        &self.shares
    }

    /// The same rows in partitions of at most so many, as far as there may be about so many partitions.
    pub(crate) fn in_pieces(&self, rows_max: u64, partitions_max: usize) -> NumbersExec {
        let wanted = rows_of(&self.shares).div_ceil(rows_max.max(1));
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        let each = wanted
            .min(partitions_max)
            .div_ceil(self.shares.len().max(1));
        self.with_shares(&self.shares, each)
    }

    /// These shares, each in so many partitions.
    fn with_shares(&self, shares: &[Range<u64>], each: usize) -> NumbersExec {
        let shares = shares.iter().flat_map(|share| divided(share, each));
        let mut changed = NumbersExec::of_shares(shares.collect(), self.schema());
        changed.fetch = self.fetch;
        changed
    }
}

/// Contiguous shares of a range, which differ by at most one number; none is empty unless the range is.
fn divided(range: &Range<u64>, shares: usize) -> Vec<Range<u64>> {
    let rows = range.end - range.start;
    let shares = (shares as u64).min(rows).max(1);
    let bound = |share: u64| {
        let offset = u128::from(rows) * u128::from(share) / u128::from(shares);
        // The quotient is at most `rows`, which came from a u64.
        range.start + offset as u64
    };
    (0..shares)
        .map(|share| bound(share)..bound(share + 1))
        .collect()
}

/// How many numbers there are.
fn rows_of(shares: &[Range<u64>]) -> u64 {
    let rows = shares.iter().map(|share| share.end - share.start);
    rows.fold(0, u64::saturating_add)
}

impl DisplayAs for NumbersExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.shares.first().map_or(0, |share| share.start);
        let (rows, partitions) = (rows_of(&self.shares), self.shares.len());
        write!(
            f,
            "NumbersExec: start={start}, rows={rows}, partitions={partitions}"
        )
    }
}

impl ExecutionPlan for NumbersExec {
    node_methods!(no_expressions, properties, metrics);

    fn name(&self) -> &'static str {
        "NumbersExec"
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(share) = self.shares.get(partition) else {
            let message = format!("partition {partition} of {}", self.shares.len());
            return Err(Error::Internal(message).into());
        };
        Ok(Box::pin(cooperative(NumbersStream {
            schema: self.schema(),
            rest: share.clone(),
            batch_rows: context.session_config().batch_size() as u64,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        })))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_shares(&self.shares, 1)))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let shares = match args.partition() {
            Some(partition) => self.shares.get(partition..=partition).unwrap_or(&[]),
            None => &self.shares,
        };
        Ok(Arc::new(statistics(shares, self.schema().fields().len())))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // All partitions together make `limit` rows, so nothing is generated in vain.
        let shares = first_of(&self.shares, limit);
        let each = self.shares.len().div_ceil(shares.len().max(1));
        let mut limited = self.with_shares(&shares, each);
        limited.fetch = limit;
        Some(Arc::new(limited))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }
}

/// The first so many of all numbers; one share at least.
fn first_of(shares: &[Range<u64>], limit: Option<usize>) -> Vec<Range<u64>> {
    let mut left = limit;
    let mut first = Vec::with_capacity(shares.len());
    for share in shares {
        if left == Some(0) && !first.is_empty() {
            break;
        }
        let share = shorten(share, left);
        left = left.map(|left| left - (share.end - share.start) as usize);
        first.push(share);
    }
    first
}

fn statistics(shares: &[Range<u64>], columns: usize) -> Statistics {
    let rows = usize::try_from(rows_of(shares)).unwrap_or(usize::MAX);
    let full = || shares.iter().filter(|share| !share.is_empty());
    let value = |number: Option<u64>| match number {
        Some(number) => Precision::Exact(ScalarValue::UInt64(Some(number))),
        None => Precision::Absent,
    };
    let column = ColumnStatistics {
        null_count: Precision::Exact(0),
        min_value: value(full().next().map(|share| share.start)),
        max_value: value(full().next_back().map(|share| share.end - 1)),
        distinct_count: Precision::Exact(rows),
        byte_size: Precision::Exact(rows.saturating_mul(8)),
        ..ColumnStatistics::new_unknown()
    };
    Statistics {
        num_rows: Precision::Exact(rows),
        total_byte_size: Precision::Exact(rows.saturating_mul(8 * columns)),
        column_statistics: vec![column; columns],
    }
}

/// One partition's share, batch by batch.
struct NumbersStream {
    schema: SchemaRef,
    rest: Range<u64>,
    batch_rows: u64,
    metrics: BaselineMetrics,
}

impl NumbersStream {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let end = self
            .rest
            .end
            .min(self.rest.start.saturating_add(self.batch_rows));
        let range = self.rest.start..end;
        if range.is_empty() {
            return Ok(None);
        }
        self.rest.start = end;
        let rows = (range.end - range.start) as usize;
        let columns = (0..self.schema.fields().len())
            .map(|_| {
                let values: Vec<u64> = range.clone().collect();
                Arc::new(UInt64Array::new(values.into(), None)) as ArrayRef
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &options,
        )?))
    }
}

impl Stream for NumbersStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let batch = {
            let timer = self.metrics.elapsed_compute().clone();
            let _timer = timer.timer();
            self.next_batch().transpose()
        };
        self.metrics.record_poll(Poll::Ready(batch))
    }
}

impl RecordBatchStream for NumbersStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    #[test]
    fn shares_cover_the_range_without_gaps() {
        for (range, partitions) in [
            (0..10, 3),
            (5..6, 4),
            (0..0, 2),
            (u64::MAX - 7..u64::MAX, 3),
            (0..u64::MAX, 480),
        ] {
            let plan = NumbersExec::new(&range, partitions, schema());
            assert_covers(plan.shares(), &range);
            assert_covers(plan.in_pieces(3, 8).shares(), &range);
        }
    }

    #[track_caller]
    fn assert_covers(shares: &[Range<u64>], range: &Range<u64>) {
        let mut next = range.start;
        for share in shares {
            assert_eq!(share.start, next);
            next = share.end;
        }
        assert_eq!(next, range.end);
    }

    #[test]
    fn a_limit_leaves_the_first_numbers() {
        let (low, high) = (3..5, 8..12);
        let first = |limit| first_of(&[low.clone(), high.clone()], limit);
        assert_eq!(first(None), [low.clone(), high.clone()]);
        assert_eq!(first(Some(9)), [low.clone(), high.clone()]);
        assert_eq!(first(Some(3)), [low.clone(), 8..9]);
        assert_eq!(first(Some(2)), slice::from_ref(&low));
        assert_eq!(first(Some(0)), slice::from_ref(&(3..3)));
    }

    #[test]
    fn shares_need_not_follow_each_other() {
        let found = statistics(&[4..4, 10..12, 20..25], 1);
        let column = &found.column_statistics[0];
        let value = |number| Precision::Exact(ScalarValue::UInt64(Some(number)));
        assert_eq!(found.num_rows, Precision::Exact(7));
        assert_eq!(
            (&column.min_value, &column.max_value),
            (&value(10), &value(24))
        );
        assert_eq!(statistics(&[], 1).num_rows, Precision::Exact(0));
    }

    #[test]
    fn floats_must_be_exact() {
        assert_eq!(float_to_whole(1e8), Some(100_000_000));
        for wrong in [-1.0, 0.5, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(float_to_whole(wrong), None);
        }
    }
}
