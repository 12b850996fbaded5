//! The node as a message: a stage, taken apart and made again.
//!
//! In: a stage of a grouping. Out: what it computes, as values of a message; the same stage over other inputs.
//! Invariant: a grouping without a stage is refused, as a scheduler would give each machine some of its partitions. What follows
//! from a machine stays behind: workers, tables, sizes. A stage that is made again has the columns that it had.
//! Not here: bytes (crate `grouse-cluster`), what a machine makes of a stage (distribution/lowering.rs).

use std::sync::Arc;

use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::equivalence::EquivalenceProperties;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use grouse_groupby::TableKind;

use super::columns::NodeColumns;
use super::stages::{Merged, Stage};
use super::{GroupByExec, Tuning, description};
use crate::exec::NAME;
use crate::exec::conditions::is_dynamic;
use crate::runtime::options::GroupBySizes;
use crate::wire::{PortableNode, WireReader, WireValue};

const SINGLE: &str = "single";
const PARTIAL: &str = "partial";
const FINAL: &str = "final";

impl PortableNode for GroupByExec {
    const KIND: &'static str = "group_by";

    fn apart(&self) -> Result<Vec<WireValue>> {
        let (stage, tasks) = match &self.stage {
            Stage::Whole => {
                return not_impl_err!("{NAME} without a stage, which has to see all rows");
            }
            Stage::Single => (SINGLE, 1),
            Stage::Partial { tasks } => (PARTIAL, *tasks),
            Stage::Final(_) => (FINAL, 1),
        };
        let rows = Arc::new(EmptyExec::new(self.described.input().schema()));
        let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let described = Arc::clone(&self.described).replace_children(vec![rows], keep)?;
        let fitted = match &self.stage {
            Stage::Final(merged) => self.fitted(&merged.aggregates)?,
            _ => None,
        };
        let emitted = self.columns.emitted.as_ref().map(|emitted| {
            let places = emitted.iter().map(|place| (*place).into());
            WireValue::List(places.collect())
        });
        // What a sort above wants is a filter that changes: it saves work where it is, and nothing else.
        let conditions = self.columns.conditions.iter();
        let conditions = conditions.filter(|condition| !is_dynamic(condition));
        let all = &self.columns.all;
        let conditions =
            conditions.map(|of| WireValue::Expression(Arc::clone(of), Arc::clone(all)));
        Ok(vec![
            stage.into(),
            tasks.into(),
            WireValue::Plan(described),
            fitted.map(WireValue::Plan).into(),
            all.into(),
            emitted.into(),
            WireValue::List(conditions.collect()),
            self.described.group_expr().groups().len().into(),
        ])
    }

    fn whole(
        children: Vec<Arc<dyn ExecutionPlan>>,
        values: &mut WireReader,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("{NAME} reads one input");
        };
        let stage = values.text()?;
        let tasks = values.count()?;
        let described = description(&values.plan()?)?;
        let fitted = values.optional(WireReader::plan)?;
        let all = values.schema()?;
        let emitted = values.optional(|values| values.each(WireReader::count))?;
        let conditions = values.each(WireReader::expression)?;
        let described = with_empty_sets(described, values.count()?)?;
        let mut columns = NodeColumns::all(Arc::clone(&all));
        columns.conditions = conditions;
        if let Some(emitted) = emitted {
            columns = columns.narrowed(emitted)?;
        }
        let (described, stage) = match stage.as_str() {
            FINAL => {
                let fitted = fitted.as_ref().map(description).transpose()?;
                let aggregates = fitted.as_ref().unwrap_or(&described).aggr_expr().to_vec();
                let equivalences = EquivalenceProperties::new(Arc::clone(&columns.schema));
                let merged = Merged {
                    input,
                    aggregates,
                    equivalences,
                };
                (described, Stage::Final(merged))
            }
            SINGLE => (over_rows(&described, input)?, Stage::Single),
            PARTIAL => (over_rows(&described, input)?, Stage::Partial { tasks }),
            other => return internal_err!("{NAME} has no stage {other}"),
        };
        let node = GroupByExec::over(described, columns, anywhere(), stage)?;
        Ok(Arc::new(node))
    }
}

/// The description with as many grouping sets as it had: DataFusion's message loses those that have no keys.
fn with_empty_sets(described: Arc<AggregateExec>, sets: usize) -> Result<Arc<AggregateExec>> {
    let keys = described.group_expr();
    if !keys.expr().is_empty() || !keys.has_grouping_set() {
        return Ok(described);
    }
    let keys = PhysicalGroupBy::new(Vec::new(), Vec::new(), vec![Vec::new(); sets], true);
    let whole = AggregateExec::try_new(
        *described.mode(),
        keys,
        described.aggr_expr().to_vec(),
        described.filter_expr().to_vec(),
        Arc::clone(described.input()),
        described.input_schema(),
    )?;
    Ok(Arc::new(
        whole.with_limit_options(described.limit_options()),
    ))
}

/// The description over the rows that it is of.
fn over_rows(
    described: &Arc<AggregateExec>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<AggregateExec>> {
    let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    description(&Arc::clone(described).replace_children(vec![input], anew)?)
}

/// How a node runs before a machine has said how.
fn anywhere() -> Tuning {
    Tuning {
        workers: 1,
        table: TableKind::Auto,
        sizes: GroupBySizes::Machine.sizes(1),
    }
}

impl GroupByExec {
    /// A description with the aggregates as a partial stage has them; `None` where they are as described.
    fn fitted(
        &self,
        aggregates: &[Arc<AggregateFunctionExpr>],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let described = &self.described;
        let mut both = aggregates.iter().zip(described.aggr_expr());
        if both.all(|(one, other)| one.is_reversed() == other.is_reversed()) {
            return Ok(None);
        }
        let fitted = AggregateExec::try_new(
            AggregateMode::Single,
            described.group_expr().clone(),
            aggregates.to_vec(),
            described.filter_expr().to_vec(),
            Arc::clone(described.input()),
            described.input_schema(),
        )?;
        Ok(Some(Arc::new(fitted)))
    }
}
