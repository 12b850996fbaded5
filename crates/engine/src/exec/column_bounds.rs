//! What the footers of the files that a column comes from state of its values.
//!
//! In: a physical plan and one of its columns. Out: its least and its greatest value; of strings that come as codes, whether
//! they are few.
//! Invariant: bounds are those of all rows of all files, which filters and joins only make fewer; where a file with
//! values does not state them, there are none. That strings are few is a hint: nothing is wrong where it is not so.
//! Not here: which statements can be believed (parquet.rs, footer.rs), what bounds are for (crate `grouse-groupby`,
//! `keys/packed`).

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, JoinType, ScalarValue};
use datafusion::datasource::physical_plan::{FileGroup, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use grouse_groupby::keys::{KeyBounds, KeyValues};

use super::column_encodings::FewValues;
use crate::exec::{GroupByExec, RecordingFilterExec, SelectingFilterExec};
use crate::scan::parquet::recording::parquet_scan;

/// What is known of an expression over what `plan` yields, if it is a column of files that state it.
pub(crate) fn values_of(
    plan: &Arc<dyn ExecutionPlan>,
    expression: &Arc<dyn PhysicalExpr>,
) -> KeyValues {
    let Some(at) = column(expression) else {
        return KeyValues::Any;
    };
    match of_column(plan, at) {
        // What a grouping below yields is no longer codes.
        Some(KeyValues::Few) if !is_dictionary(plan.schema().field(at).data_type()) => {
            KeyValues::Any
        }
        known => known.unwrap_or(KeyValues::Any),
    }
}

fn is_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..))
}

fn column(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

fn of_column(plan: &Arc<dyn ExecutionPlan>, at: usize) -> Option<KeyValues> {
    if let Some(selecting) = plan.downcast_ref::<SelectingFilterExec>() {
        return of_column(&selecting.top(), at);
    }
    if let Some(recording) = plan.downcast_ref::<RecordingFilterExec>() {
        return of_column(&recording.top(), at);
    }
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return of_scan(scan, at);
    }
    let (child, at) = origin(plan, at)?;
    of_column(plan.children().get(child)?, at)
}

/// Where a node takes the values of a column from: which child, and which of its columns. The node may leave out rows
/// and add NULLs.
fn origin(plan: &Arc<dyn ExecutionPlan>, at: usize) -> Option<(usize, usize)> {
    let projected = |columns: Option<&[usize]>| columns.map_or(Some(at), |of| of.get(at).copied());
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return Some((0, column(&projection.expr().get(at)?.expr)?));
    }
    if let Some(group_by) = plan.downcast_ref::<GroupByExec>() {
        return Some((0, column(&group_by.key(at)?)?));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return Some((0, projected(filter.projection().as_deref())?));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let at = projected(join.projection.as_deref())?;
        return side(*join.join_type(), (join.left(), join.right()), at);
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return side(join.join_type(), (join.left(), join.right()), at);
    }
    let passes_all = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortExec>();
    passes_all.then_some((0, at))
}

/// Which side of a join a column is of; a mark is of none.
fn side(
    join: JoinType,
    (left, right): (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>),
    at: usize,
) -> Option<(usize, usize)> {
    let of_left = left.schema().fields().len();
    let of_right = right.schema().fields().len();
    match join {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (at < of_right).then_some((1, at))
        }
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (at < of_left).then_some((0, at))
        }
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            let at_right = at.checked_sub(of_left).map(|at| (1, at));
            at_right.or(Some((0, at)))
        }
    }
}

fn of_scan(scan: &DataSourceExec, at: usize) -> Option<KeyValues> {
    let (config, source) = parquet_scan(scan)?;
    let at = column(&source.projection()?.as_ref().get(at)?.expr)?;
    let mut files = config
        .file_groups
        .iter()
        .flat_map(FileGroup::iter)
        .peekable();
    let few = files.peek()?.extension::<Arc<FewValues>>();
    if few.is_some_and(|few| few.0.contains(&at)) {
        return Some(KeyValues::Few);
    }
    let mut all: Option<KeyBounds> = None;
    for file in files {
        let statistics = file.statistics.as_ref()?;
        let known = statistics.column_statistics.get(at)?;
        // No bounds of no values.
        let is_empty = statistics.num_rows == Precision::Exact(0);
        let is_all_null =
            statistics.num_rows.is_exact() == Some(true) && known.null_count == statistics.num_rows;
        if is_empty || is_all_null {
            continue;
        }
        let own = bounds(known)?;
        all = Some(all.map_or(own, |all| all.union(own)));
    }
    all.map(KeyValues::Within)
}

fn bounds(known: &ColumnStatistics) -> Option<KeyBounds> {
    let (Precision::Exact(least), Precision::Exact(greatest)) =
        (&known.min_value, &known.max_value)
    else {
        return None;
    };
    Some(KeyBounds {
        least: as_integer(least)?,
        greatest: as_integer(greatest)?,
    })
}

/// The integer that Arrow stores.
fn as_integer(value: &ScalarValue) -> Option<i128> {
    use ScalarValue as S;
    match value {
        S::Int8(value) => value.map(i128::from),
        S::Int16(value) => value.map(i128::from),
        S::UInt8(value) => value.map(i128::from),
        S::UInt16(value) => value.map(i128::from),
        S::UInt32(value) => value.map(i128::from),
        S::UInt64(value) => value.map(i128::from),
        S::Int32(value)
        | S::Date32(value)
        | S::Time32Second(value)
        | S::Time32Millisecond(value)
        | S::Decimal32(value, ..) => value.map(i128::from),
        S::Int64(value)
        | S::Date64(value)
        | S::Time64Microsecond(value)
        | S::Time64Nanosecond(value)
        | S::TimestampSecond(value, _)
        | S::TimestampMillisecond(value, _)
        | S::TimestampMicrosecond(value, _)
        | S::TimestampNanosecond(value, _)
        | S::Decimal64(value, ..) => value.map(i128::from),
        S::Decimal128(value, ..) => *value,
        _ => None,
    }
}
