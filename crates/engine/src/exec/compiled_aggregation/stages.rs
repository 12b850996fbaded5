//! What the stages of a grouping evaluate: one gives partial states away, the other takes them.
//!
//! In: DataFusion's description of an aggregation, a stage. Out: the compiled aggregation of that stage.
//! Invariant: both lower the same aggregates over the same types, so that the states that come are those that went. Where a
//! reader has given columns another form, they still are, or there is no plan.
//! Pairs of a DISTINCT travel beside groups, as rows of their own: only where all of a key are together is it known which
//! are different.
//! Not here: the plan of stages (node/stages.rs), the columns of states (`grouse_groupby`).

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, RecordBatch, UInt32Array, new_null_array,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use grouse_groupby::emit::Emitted;
use grouse_groupby::keys::{KeyLayout, decoded};
use grouse_groupby::states::{Aggregate, StateFormat, flat_states, flat_type, partial};
use grouse_groupby::{Arguments, Batch, Spec};

use super::lowering::{DistinctExpressions, PairValues, key_fields, key_layout};
use super::{CompiledAggregation, Evaluated, Inputs, KeyColumn, LoweredAggregates, Set};
use crate::error::to_datafusion;
use crate::exec::NAME;
use crate::exec::distinct_groupings::{DistinctGrouping, DistinctPairs};
use crate::exec::node::{NodeColumns, Stage, Tuning};

/// Partial states that come in or leave as columns of a batch.
pub(super) enum TravellingStates {
    /// None do: rows come, and results leave.
    None,
    /// They leave.
    Out,
    /// They come.
    In(Incoming),
}

/// How columns that come are read.
pub(super) struct Incoming {
    /// The form of each aggregate's states; none of one that takes pairs.
    formats: Vec<Option<StateFormat>>,
    /// Where each of the pairs' counts stand, if they are counted.
    counts: Vec<Option<usize>>,
    /// Where it stands what a row is, if there are pairs: 0 = a group, n = one of the nth pairs.
    kind: Option<usize>,
}

impl Incoming {
    /// The rows of each kind, of which there are `kinds`.
    fn by_kind(&self, batch: &RecordBatch, kinds: usize) -> Result<Vec<(usize, RecordBatch)>> {
        let Some(kind) = self.kind else {
            return Ok(vec![(0, batch.clone())]);
        };
        let column = batch.column(kind).as_primitive::<UInt32Type>();
        let mut parts = Vec::new();
        for kind in 0..kinds {
            let rows = BooleanArray::from_unary(column, |of| of as usize == kind);
            match rows.true_count() {
                0 => {}
                all if all == batch.num_rows() => return Ok(vec![(kind, batch.clone())]),
                _ => parts.push((kind, filter_record_batch(batch, &rows)?)),
            }
        }
        Ok(parts)
    }
}

/// A column that says of each row that it is of one kind.
fn kind_of(kind: usize, rows: usize) -> ArrayRef {
    Arc::new(UInt32Array::from_value(kind as u32, rows))
}

/// The form of each aggregate's states; none of one that takes pairs.
fn formats(inputs: &[Inputs], states: &[Arc<dyn Aggregate>]) -> Result<Vec<Option<StateFormat>>> {
    let each = inputs.iter().zip(states);
    each.map(|(inputs, aggregate)| match inputs.distinct_grouping {
        Some(_) => Ok(None),
        None => StateFormat::of(aggregate.as_ref())
            .map(Some)
            .map_err(to_datafusion),
    })
    .collect()
}

/// Fails where columns are of other types than the plan has them, as far as is known of both.
fn check_types(columns: &Schema, planned: &Schema) -> Result<()> {
    let types = |schema: &Schema| -> Vec<DataType> {
        let fields = schema.fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    };
    let (found, wanted) = (types(columns), types(planned));
    match found == wanted {
        true => Ok(()),
        false => internal_err!("{NAME}: a stage has columns of {found:?}, its plan {wanted:?}"),
    }
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
            Stage::Whole | Stage::Single => {
                CompiledAggregation::new(described, aggregates, columns, tuning)
            }
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

    /// The columns between its stages: keys, then states, then the values of pairs and how often each occurs, at last which of
    /// these a row has.
    pub fn partial_schema(&self) -> Result<SchemaRef> {
        let all = self.columns.all.fields();
        let (keys, aggregates) = all.split_at(self.spec.keys.types().len());
        let keys = keys.iter().map(|key| {
            let data_type = flat_type(decoded(key.data_type()));
            Field::new(key.name(), data_type, key.is_nullable())
        });
        let mut fields: Vec<Field> = keys.collect();
        let formats = formats(&self.arguments, &self.spec.aggregates)?;
        for (format, named) in formats.iter().zip(aggregates) {
            let states = format.iter().flat_map(|format| format.fields().iter());
            fields.extend(states.map(|state| {
                let name = format!("{}#{}", named.name(), state.name());
                state.as_ref().clone().with_name(name)
            }));
        }
        for (at, grouping) in self.distinct_groupings.iter().enumerate() {
            for (nth, of) in grouping.value_types().enumerate() {
                fields.push(Field::new(format!("pairs{at}#{nth}"), flat_type(of), true));
            }
            if grouping.is_counted() {
                fields.push(Field::new(
                    format!("pairs{at}#count"),
                    DataType::Int64,
                    true,
                ));
            }
        }
        if !self.distinct_groupings.is_empty() {
            fields.push(Field::new("kind", DataType::UInt32, false));
        }
        Ok(Arc::new(Schema::new(fields)))
    }

    /// True if pairs leave as they are, for another stage to tell them apart.
    pub fn gives_pairs(&self) -> bool {
        matches!(self.states, TravellingStates::Out)
    }

    /// The same whose groups leave with their partial states, as `columns` says.
    fn giving_states(self, columns: &NodeColumns, tuning: Tuning) -> Result<CompiledAggregation> {
        // Codes and narrow decimals, which whoever reads them does not know of, change nothing.
        check_types(self.partial_schema()?.as_ref(), &columns.all)?;
        let Spec {
            keys, aggregates, ..
        } = Arc::into_inner(self.spec).expect("nobody else has it yet");
        let states = aggregates.iter().map(partial);
        let states = states.collect::<std::result::Result<_, _>>();
        let key_columns = keys.types().len();
        let of_rows = self.arguments.iter().enumerate();
        let of_rows = of_rows.filter(|(_, inputs)| inputs.distinct_grouping.is_none());
        let emitted = (0..key_columns).chain(of_rows.map(|(at, _)| key_columns + at));
        let spec = Spec::new(keys, states.map_err(to_datafusion)?, tuning.sizes)
            .emitting(emitted.collect());
        let groupings = self.distinct_groupings.into_iter();
        Ok(CompiledAggregation {
            spec: Arc::new(spec),
            distinct_groupings: groupings
                .map(|grouping| grouping.giving_values(tuning.sizes))
                .collect(),
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
        let lay_out = |values: PairValues<'_>| {
            key_layout(described, &columns.all, all_keys, values, tuning.table)
        };
        // Rows are evaluated elsewhere.
        let mut expressions = DistinctExpressions::default();
        let all = LoweredAggregates::of(described, aggregates, &mut expressions, lay_out)?;
        let formats = formats(&all.inputs, &all.states)?;
        let mut places = all_keys..input.fields().len();
        let inputs = all.inputs.iter().zip(&formats).map(|(inputs, format)| {
            let states = format.as_ref().map_or(0, |format| format.fields().len());
            Inputs {
                columns: places.by_ref().take(states).collect(),
                filter: None,
                distinct_grouping: inputs.distinct_grouping,
            }
        });
        let arguments: Vec<Inputs> = inputs.collect();
        let (mut distinct_groupings, mut counts) = (Vec::new(), Vec::new());
        for planned in all.distinct_groupings {
            let grouping = planned.coming_at(&mut places).ready(tuning.sizes);
            let is_counted = grouping.is_counted();
            counts.push(is_counted.then(|| places.next()).flatten());
            distinct_groupings.push(grouping);
        }
        let kind = places.next().filter(|_| !distinct_groupings.is_empty());
        let keys = fields.iter().enumerate().map(|(at, field)| KeyColumn {
            expression: at,
            data_type: field.data_type().clone(),
        });
        let mut spec = Spec::new(layout, all.states, tuning.sizes);
        if let Some(emitted) = &columns.emitted {
            spec = spec.emitting(emitted.clone());
        }
        let compiled = CompiledAggregation {
            spec: Arc::new(spec),
            distinct_groupings,
            base_grouping: None,
            columns: columns.clone(),
            expressions: Vec::new(),
            keys: keys.collect(),
            sets: vec![Set {
                absent: vec![false; all_keys],
                id: None,
            }],
            arguments,
            input: Arc::clone(&input),
            native: all.are_native,
            states: TravellingStates::In(Incoming {
                formats,
                counts,
                kind,
            }),
        };
        check_types(&input, compiled.partial_schema()?.as_ref())?;
        Ok(compiled)
    }

    /// What came from a partial stage, for the groupings that merge it.
    pub(super) fn merged(&self, batch: &RecordBatch, incoming: &Incoming) -> Result<Evaluated> {
        let pairs = self.distinct_groupings.len();
        let mut evaluated = Evaluated {
            groups: Vec::new(),
            base_grouping: None,
            distinct_groupings: std::iter::repeat_with(Vec::new).take(pairs).collect(),
        };
        for (kind, batch) in incoming.by_kind(batch, pairs + 1)? {
            let (columns, rows) = (batch.columns(), batch.num_rows());
            let Some(at) = kind.checked_sub(1) else {
                let keys = self.keys_for(&self.spec, columns)?;
                let states = self.arguments.iter().zip(&incoming.formats);
                let states = states.map(|(inputs, format)| held(inputs, format.as_ref(), columns));
                let states = states.collect::<Result<_>>()?;
                evaluated.groups.push(Batch::of_partial(rows, keys, states));
                continue;
            };
            let grouping = &self.distinct_groupings[at];
            let keys = self.keys_for(&grouping.spec, columns)?;
            let counts = incoming.counts[at].map(|at| Arc::clone(&columns[at]));
            let pairs = grouping.of_pairs(keys, columns, counts, rows)?;
            evaluated.distinct_groupings[at].push(pairs);
        }
        Ok(evaluated)
    }

    /// Keys and states of groups as the columns of the stage.
    pub(super) fn outgoing(
        &self,
        mut columns: Vec<ArrayRef>,
        rows: usize,
    ) -> Result<Vec<ArrayRef>> {
        for states in columns.split_off(self.spec.keys.types().len()) {
            columns.extend(flat_states(&states).map_err(to_datafusion)?);
        }
        if !self.distinct_groupings.is_empty() {
            let pairs = columns.len()..self.kind_place();
            columns.extend(self.none_of(pairs, rows));
            columns.push(kind_of(0, rows));
        }
        Ok(columns)
    }

    /// Some of the `at`th pairs, each once, as a batch of the stage.
    pub fn outgoing_pairs(&self, at: usize, pairs: Emitted) -> Result<RecordBatch> {
        let rows = pairs.rows;
        let grouping = &self.distinct_groupings[at];
        let DistinctPairs {
            keys: mut columns,
            values,
            counts,
        } = grouping.parts(pairs);
        let of_others = self.distinct_groupings[at..].iter();
        let width: usize = of_others.map(DistinctGrouping::width).sum();
        let before = columns.len()..self.kind_place() - width;
        columns.extend(self.none_of(before, rows));
        columns.extend(values.into_iter().chain(counts));
        let behind = columns.len()..self.kind_place();
        columns.extend(self.none_of(behind, rows));
        columns.push(kind_of(at + 1, rows));
        self.batch(&columns, rows)
    }

    /// Where it stands what a row is, if there are pairs.
    fn kind_place(&self) -> usize {
        self.columns.all.fields().len() - 1
    }

    /// NULLs in some columns.
    fn none_of(&self, columns: Range<usize>, rows: usize) -> Vec<ArrayRef> {
        let fields = self.columns.all.fields()[columns].iter();
        fields
            .map(|field| new_null_array(field.data_type(), rows))
            .collect()
    }
}

/// The states of one aggregate among the columns that came; none if it takes pairs.
fn held(
    inputs: &Inputs,
    format: Option<&StateFormat>,
    columns: &[ArrayRef],
) -> Result<Option<Arguments>> {
    let Some(format) = format else {
        return Ok(None);
    };
    let states = inputs.of(columns).columns;
    Ok(Some(Arguments {
        columns: format.held(&states).map_err(to_datafusion)?,
        filter: None,
    }))
}
