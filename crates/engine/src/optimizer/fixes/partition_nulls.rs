//! NULL in the columns that `COPY … PARTITIONED BY` makes folders of.
//!
//! In: the plan of a COPY. Out: the same with those columns as text in which NULL is the name of its folder.
//! Invariant: NULL, the empty text and every other value have folders of their own, from which they come back.
//! Not here: reading folders (scan/hive.rs), writing (the host).
//!
//! The host writes whatever lies below a NULL: 0 or an empty text.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit, when};
use datafusion::optimizer::AnalyzerRule;

use crate::error::Error;
use crate::scan::hive::NULL_FOLDER;

/// The rule.
#[derive(Debug)]
pub(super) struct PartitionNulls;

impl AnalyzerRule for PartitionNulls {
    fn name(&self) -> &str {
        "partition_nulls"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_down(|plan| match plan {
            LogicalPlan::Copy(copy) if !copy.partition_by.is_empty() => Ok(Transformed::new(
                LogicalPlan::Copy(mended(copy, config)?),
                true,
                TreeNodeRecursion::Stop,
            )),
            other => Ok(Transformed::no(other)),
        })?;
        Ok(plan.data)
    }
}

fn mended(copy: CopyTo, config: &ConfigOptions) -> Result<CopyTo> {
    let schema = Arc::clone(copy.input.schema());
    let columns = schema.iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        // The host knows no folders for moments and decimals.
        let is_known = !matches!(
            field.data_type(),
            DataType::Timestamp(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
        );
        if !copy.partition_by.contains(field.name()) || is_known && !field.is_nullable() {
            return Ok(column);
        }
        if config.execution.keep_partition_by_columns {
            return Err(Error::Unsupported {
                message: format!(
                    "execution.keep_partition_by_columns with column '{}', which may be NULL; write COPY (SELECT … WHERE \"{}\" IS NOT NULL)",
                    field.name(),
                    field.name()
                ),
            }
            .into());
        }
        let text = cast(column.clone(), DataType::Utf8);
        let folder = when(column.is_null(), lit(NULL_FOLDER)).otherwise(text)?;
        Ok(folder.alias_qualified(table.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(copy.input)).project(columns)?;
    Ok(CopyTo::new(
        Arc::new(input.build()?),
        copy.output_url,
        copy.partition_by,
        copy.file_type,
        copy.options,
    ))
}
