//! What the stages of a grouping evaluate: one gives partial states away, the other takes them.
//!
//! In: DataFusion's description of an aggregation, a stage. Out: the compiled aggregation of that stage.
//! Invariant: both lower the same aggregates over the same types, so that the states that come are those that went. Where a
//! reader has given columns another form, they still are, or there is no plan.
//! Not here: the plan of stages (node/stages.rs), the columns of states (`grouse_groupby`).

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use grouse_groupby::Spec;
use grouse_groupby::keys::KeyLayout;
use grouse_groupby::states::{StateFormat, partial};

use super::lowering::{DistinctExpressions, key_fields};
use super::{CompiledAggregation, Inputs, KeyColumn, LoweredAggregates, Set};
use crate::error::to_datafusion;
use crate::exec::NAME;
use crate::exec::node::{NodeColumns, Stage, Tuning};

/// Partial states that come in or leave as columns of a batch.
pub(super) enum TravellingStates {
    /// None do: rows come, and results leave.
    None,
    /// They leave.
    Out,
    /// They come, each aggregate's in this form.
    In(Vec<StateFormat>),
}

impl CompiledAggregation {
    /// Lowers `described`, as far as a stage does it; fails where a type has no place in the algorithm.
    pub fn of_stage(
        stage: &Stage,
        described: &AggregateExec,
        aggregates: &[Arc<AggregateFunctionExpr>],
        columns: &NodeColumns,
        tuning: Tuning,
    ) -> Result<CompiledAggregation> {
        match stage {
            Stage::Whole => CompiledAggregation::new(described, aggregates, columns, tuning),
            Stage::Partial { .. } => {
                let rows = NodeColumns::all(described.schema());
                let whole = CompiledAggregation::new(described, aggregates, &rows, tuning)?;
                whole.giving_states(columns, tuning)
            }
            Stage::Final(merged) => {
                let input = merged.input.schema();
                CompiledAggregation::taking_states(described, aggregates, columns, tuning, input)
            }
        }
    }

    /// The same whose groups leave with their partial states, as `columns` says.
    fn giving_states(self, columns: &NodeColumns, tuning: Tuning) -> Result<CompiledAggregation> {
        let Spec {
            keys, aggregates, ..
        } = Arc::into_inner(self.spec).expect("nobody else has it yet");
        let fields = columns.all.fields();
        let mut planned = fields[keys.types().len()..].iter().map(|f| f.data_type());
        for aggregate in &aggregates {
            let format = StateFormat::of(aggregate.as_ref()).map_err(to_datafusion)?;
            for field in format.fields() {
                // Codes and narrow decimals, which the reader does not know of, change nothing.
                if planned.next() != Some(field.data_type()) {
                    let name = aggregate.name();
                    return internal_err!("{NAME}: states of {name} are not those of its plan");
                }
            }
        }
        let states = aggregates.iter().map(partial);
        let states = states.collect::<std::result::Result<_, _>>();
        let spec = Spec::new(keys, states.map_err(to_datafusion)?, tuning.sizes);
        Ok(CompiledAggregation {
            spec: Arc::new(spec),
            columns: columns.clone(),
            states: TravellingStates::Out,
            ..self
        })
    }

    /// What merges groups of `described`, which come as keys and partial states.
    fn taking_states(
        described: &AggregateExec,
        aggregates: &[Arc<AggregateFunctionExpr>],
        columns: &NodeColumns,
        tuning: Tuning,
        input: SchemaRef,
    ) -> Result<CompiledAggregation> {
        let all_keys = described.group_expr().num_group_exprs();
        let fields = key_fields(&columns.all, all_keys);
        let layout = KeyLayout::new(&fields, tuning.table).map_err(to_datafusion)?;
        // Rows are evaluated elsewhere.
        let mut expressions = DistinctExpressions::default();
        let all = LoweredAggregates::of(described, aggregates, &mut expressions, |_| {
            not_impl_err!("{NAME}: values that are different are not merged")
        })?;
        let formats = all.states.iter().map(|of| StateFormat::of(of.as_ref()));
        let formats = formats.collect::<std::result::Result<Vec<_>, _>>();
        let formats = formats.map_err(to_datafusion)?;
        let states = formats.iter().map(|format| format.fields().len());
        if all_keys + states.sum::<usize>() != input.fields().len() {
            return internal_err!("{NAME}: what it reads is not what its partial stage yields");
        }
        let mut places = all_keys..input.fields().len();
        let inputs = formats.iter().map(|format| Inputs {
            columns: places.by_ref().take(format.fields().len()).collect(),
            filter: None,
            distinct_grouping: None,
        });
        let arguments: Vec<Inputs> = inputs.collect();
        let columns_in = input.fields().iter().enumerate();
        let column = |(at, field): (usize, &FieldRef)| Arc::new(Column::new(field.name(), at)) as _;
        let keys = fields
            .iter()
            .enumerate()
            .map(|(expression, field)| KeyColumn {
                expression,
                data_type: field.data_type().clone(),
            });
        let mut spec = Spec::new(layout, all.states, tuning.sizes);
        if let Some(emitted) = &columns.emitted {
            spec = spec.emitting(emitted.clone());
        }
        Ok(CompiledAggregation {
            spec: Arc::new(spec),
            distinct_groupings: Vec::new(),
            base_grouping: None,
            columns: columns.clone(),
            expressions: columns_in.map(column).collect(),
            keys: keys.collect(),
            sets: vec![Set {
                absent: vec![false; all_keys],
                id: None,
            }],
            arguments,
            input,
            native: all.are_native,
            states: TravellingStates::In(formats),
        })
    }
}
