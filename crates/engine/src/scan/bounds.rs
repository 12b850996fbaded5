//! Bounds of a column, as the footers of the files that it comes from state them.
//!
//! In: a physical plan and one of its columns. Out: its least and its greatest value.
//! Invariant: bounds are those of all rows of all files, which filters and joins only make fewer; where one file does
//! not state them, there are none.
//! Not here: which statements can be believed (parquet.rs, footer.rs), what bounds are for (crate `grouse-groupby`,
//! `keys/packed`).

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use grouse_groupby::keys::KeyBounds;

use crate::exec::GroupByExec;

/// The bounds of an expression over what `plan` yields, if it is a column of files that state them.
pub(crate) fn bounds_of(
    plan: &Arc<dyn ExecutionPlan>,
    expression: &Arc<dyn PhysicalExpr>,
) -> Option<KeyBounds> {
    let column = expression.downcast_ref::<Column>()?.index();
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return of_scan(scan, column);
    }
    let (child, column) = origin(plan, column)?;
    bounds_of(plan.children().get(child)?, &column)
}

/// Where a node takes the values of a column from: which child, and what it is there. The node may leave out rows and
/// add NULLs.
fn origin(plan: &Arc<dyn ExecutionPlan>, column: usize) -> Option<(usize, Arc<dyn PhysicalExpr>)> {
    let place = |at: usize| Arc::new(Column::new("", at)) as Arc<dyn PhysicalExpr>;
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return Some((0, expression_of(projection.expr(), column)?));
    }
    if let Some(group_by) = plan.downcast_ref::<GroupByExec>() {
        return Some((0, group_by.key(column)?));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let projection = filter.projection().as_ref();
        return Some((
            0,
            place(projection.map_or(column, |columns| columns[column])),
        ));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let projection = join.projection.as_ref();
        let column = projection.map_or(column, |columns| columns[column]);
        let (child, column) = side(join, column)?;
        return Some((child, place(column)));
    }
    let passes_all = plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>();
    passes_all.then(|| (0, place(column)))
}

/// Which side of a join a column is of; a mark is of none.
fn side(join: &HashJoinExec, column: usize) -> Option<(usize, usize)> {
    let left = join.left().schema().fields().len();
    let right = join.right().schema().fields().len();
    match join.join_type() {
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            (column < right).then_some((1, column))
        }
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            (column < left).then_some((0, column))
        }
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
            match column.checked_sub(left) {
                None => Some((0, column)),
                Some(column) => Some((1, column)),
            }
        }
    }
}

fn expression_of(projection: &[ProjectionExpr], column: usize) -> Option<Arc<dyn PhysicalExpr>> {
    projection.get(column).map(|of| Arc::clone(&of.expr))
}

fn of_scan(scan: &DataSourceExec, column: usize) -> Option<KeyBounds> {
    let (config, source) = scan.downcast_to_file_source::<ParquetSource>()?;
    let projection = source.projection()?;
    let expression = expression_of(projection.as_ref(), column)?;
    let column = expression.downcast_ref::<Column>()?.index();
    let files = config.file_groups.iter().flat_map(FileGroup::iter);
    let mut bounds = files.map(|file| of_file(file, column));
    let first = bounds.next()??;
    bounds.try_fold(first, |all, file| Some(all.union(file?)))
}

fn of_file(file: &PartitionedFile, column: usize) -> Option<KeyBounds> {
    let known = file.statistics.as_ref()?.column_statistics.get(column)?;
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
