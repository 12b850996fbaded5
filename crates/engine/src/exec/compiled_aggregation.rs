//! The compiled aggregation: what a worker evaluates on each batch, decided once per plan.
//!
//! In: DataFusion's description of an aggregation. Out: a `Spec` for the algorithm, one more for the pairs of each DISTINCT,
//! and batches of keys and arguments.
//! Invariant: an expression that occurs several times is evaluated once per batch, unless it is volatile.
//! Not here: who calls it (worker.rs), types that the algorithm does not know (it says so when the plan is made).

mod lowering;
mod stages;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt64Array,
    new_null_array,
};
use datafusion::arrow::compute::{cast, filter_record_batch, or, take};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Result, not_impl_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use grouse_groupby::emit::Emitted;
use grouse_groupby::keys::is_bytes;
use grouse_groupby::keys::{KeyLayout, decoded, strings_of};
use grouse_groupby::states::Aggregate;
use grouse_groupby::{Arguments, Batch, Finished, Spec};

use super::base_grouping::BaseGrouping;
use super::conditions::conditions_now;
use super::distinct_groupings::{DistinctGrouping, Planned};
use super::node::{NodeColumns, Tuning};
use super::selections::{split_selection, suits_others};
use crate::aggregate::from_datafusion::{GroupingKind, Stages};
use crate::aggregate::native::AggregateInput;
use crate::error::to_datafusion;
use crate::expr::columns::without_nulls;
use crate::expr::distinct_values::{Hashed, Spread, coded, hashed};
use lowering::{DistinctExpressions, Lowered, PairValues, key_layout, lower};
use stages::TravellingStates;

/// The expressions of one group-by and what they are for.
pub(super) struct CompiledAggregation {
    /// What the algorithm needs to know.
    pub spec: Arc<Spec>,
    /// What is grouped before, so that DISTINCT aggregates get each value once.
    pub distinct_groupings: Vec<DistinctGrouping>,
    /// What is grouped before, so that grouping sets get groups instead of rows.
    pub base_grouping: Option<BaseGrouping>,
    columns: NodeColumns,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    keys: Vec<KeyColumn>,
    sets: Vec<Set>,
    arguments: Vec<Inputs>,
    input: SchemaRef,
    native: Vec<bool>,
    states: TravellingStates,
}

/// What the groupings of an execution get of one batch of rows.
pub(super) struct Evaluated {
    /// Keys and arguments, per grouping set; none where `base_grouping` has them.
    pub groups: Vec<Batch>,
    /// Those of the aggregation's grouping by all keys.
    pub base_grouping: Option<Batch>,
    /// Those of each of the aggregation's pairs, per grouping set.
    pub distinct_groupings: Vec<Vec<Batch>>,
}

/// One key column.
pub(super) struct KeyColumn {
    pub expression: usize,
    /// The type as the algorithm groups by it.
    pub data_type: DataType,
}

impl KeyColumn {
    /// The key's column; codes stay codes where the layout takes them.
    pub fn of(&self, values: &[ArrayRef], takes_codes: bool) -> Result<ArrayRef> {
        let column = &values[self.expression];
        let is_coded = matches!(column.data_type(), DataType::Dictionary(_, of) if is_bytes(of));
        if takes_codes && is_coded && is_bytes(&self.data_type) {
            return Ok(Arc::clone(column));
        }
        as_type(column, &self.data_type)
    }
}

/// One grouping set; a plain GROUP BY is one without an id.
struct Set {
    /// Keys that are NULL in this set.
    absent: Vec<bool>,
    /// The value of the column that tells sets apart.
    id: Option<u64>,
}

/// All aggregates, as they are lowered.
#[derive(Default)]
struct LoweredAggregates {
    inputs: Vec<Inputs>,
    states: Vec<Arc<dyn Aggregate>>,
    are_native: Vec<bool>,
    distinct_groupings: Vec<Planned>,
}

impl LoweredAggregates {
    /// Those of `described`, as they run; `lay_out` encodes pairs of keys and values.
    fn of(
        described: &AggregateExec,
        aggregates: &[Arc<AggregateFunctionExpr>],
        expressions: &mut DistinctExpressions,
        lay_out: impl Fn(PairValues<'_>) -> Result<KeyLayout>,
    ) -> Result<LoweredAggregates> {
        let grouping = match described.group_expr().is_true_no_grouping() {
            true => GroupingKind::Keyless,
            false => GroupingKind::Keyed,
        };
        let mut all = LoweredAggregates::default();
        let planned = described.aggr_expr().iter().zip(described.filter_expr());
        for (updating, (merging, filter)) in aggregates.iter().zip(planned) {
            let stages = Stages { updating, merging };
            let lowered = lower(&stages, described.input(), grouping, &lay_out)?;
            let filter = filter.as_ref().map(|filter| expressions.place(filter));
            all.add(lowered, filter, expressions);
        }
        Ok(all)
    }

    fn add(
        &mut self,
        lowered: Lowered,
        filter: Option<usize>,
        expressions: &mut DistinctExpressions,
    ) {
        let columns = lowered.columns.iter();
        let columns: Vec<_> = columns.map(|column| expressions.place(column)).collect();
        let distinct_grouping = lowered.distinct_grouping.map(|(layout, reads)| {
            let at = Planned::among(
                &mut self.distinct_groupings,
                layout,
                &columns,
                filter,
                reads,
            );
            (at, reads)
        });
        self.inputs.push(Inputs {
            columns,
            filter,
            distinct_grouping,
        });
        self.are_native.push(lowered.is_native);
        self.states.push(lowered.aggregate);
    }

    /// Those that take rows, not pairs.
    fn of_rows(&self) -> Vec<usize> {
        let of_rows = |at: &usize| self.inputs[*at].distinct_grouping.is_none();
        (0..self.inputs.len()).filter(of_rows).collect()
    }
}

/// Where one aggregate's inputs are among the expressions.
struct Inputs {
    columns: Vec<usize>,
    filter: Option<usize>,
    /// What it reads of which pairs, instead of rows.
    distinct_grouping: Option<(usize, AggregateInput)>,
}

impl CompiledAggregation {
    /// Lowers `described`; fails where a type has no place in the algorithm.
    fn new(
        described: &AggregateExec,
        aggregates: &[Arc<AggregateFunctionExpr>],
        columns: &NodeColumns,
        tuning: Tuning,
    ) -> Result<CompiledAggregation> {
        let schema = &columns.all;
        let input = described.input().schema();
        let group_by = described.group_expr();
        // The column that tells grouping sets apart is one.
        let all_keys = group_by.num_group_exprs();
        let lay_out = |keys: usize, values: PairValues<'_>| {
            key_layout(described, schema, keys, values, tuning.table)
        };
        let mut expressions = DistinctExpressions::default();
        let layout = lay_out(all_keys, PairValues::NONE)?;
        let keys = group_by.expr().iter().zip(schema.fields());
        let keys = keys.map(|((expression, _), field)| {
            let data_type = decoded(field.data_type()).clone();
            let codes = || coded(expression, &data_type);
            let codes = layout.takes_codes().then(codes).flatten();
            KeyColumn {
                expression: expressions.place(codes.as_ref().unwrap_or(expression)),
                data_type,
            }
        });
        let keys: Vec<KeyColumn> = keys.collect();
        let all = LoweredAggregates::of(described, aggregates, &mut expressions, |values| {
            lay_out(all_keys, values)
        })?;
        let sets = sets(group_by)?;
        let base_grouping = match sets.len() > 1 && !keys.is_empty() {
            true => {
                let (layout, of_rows) = (lay_out(keys.len(), PairValues::NONE)?, all.of_rows());
                BaseGrouping::new(layout, &all.states, of_rows, sets.len(), tuning.sizes)?
            }
            false => None,
        };
        let mut spec = Spec::new(layout, all.states, tuning.sizes);
        if let Some(emitted) = &columns.emitted {
            spec = spec.emitting(emitted.clone());
        }
        let distinct_groupings = all.distinct_groupings.into_iter();
        Ok(CompiledAggregation {
            spec: Arc::new(spec),
            distinct_groupings: distinct_groupings
                .map(|one| one.ready(tuning.sizes))
                .collect(),
            base_grouping,
            columns: columns.clone(),
            expressions: expressions.0,
            keys,
            sets,
            arguments: all.inputs,
            input,
            native: all.are_native,
            states: TravellingStates::None,
        })
    }

    /// Which aggregates have native states, in output order.
    pub fn native(&self) -> &[bool] {
        &self.native
    }

    /// True of an aggregate that takes pairs instead of rows.
    pub fn has_distinct_grouping(&self, aggregate: usize) -> bool {
        self.arguments[aggregate].distinct_grouping.is_some()
    }

    /// True of one for whose arguments strings may come as codes.
    pub fn takes_codes(&self, aggregate: usize) -> bool {
        let grouping = self.arguments[aggregate].distinct_grouping;
        grouping.is_some_and(|(at, _)| self.distinct_groupings[at].spec.keys.takes_codes())
    }

    /// Evaluates everything on a batch that may have a selection, and how many of its rows are left. An error of a row that is
    /// left out is none.
    pub fn evaluate_selected(
        &self,
        batch: RecordBatch,
        few: bool,
        takes_selections: bool,
    ) -> Result<(Evaluated, usize)> {
        let (batch, left) = split_selection(batch, self.input.fields().len())?;
        let Some(left) = left else {
            return Ok((self.evaluate(&batch, few)?, batch.num_rows()));
        };
        let rows = left.true_count();
        let all = takes_selections.then(|| self.evaluate(&batch, few));
        let Some(Ok(mut evaluated)) = all else {
            let batch = filter_record_batch(&batch, &left)?;
            return Ok((self.evaluate(&batch, few)?, rows));
        };
        let groups = std::mem::take(&mut evaluated.groups).into_iter();
        evaluated.groups = groups.map(|batch| batch.selecting(left.clone())).collect();
        Ok((evaluated, rows))
    }

    /// True if it may get batches with a selection: all rows are for one grouping, by integers or codes, and may be evaluated
    /// with others beside them.
    pub fn takes_selections(&self) -> bool {
        let is_one = self.distinct_groupings.is_empty()
            && self.base_grouping.is_none()
            && self.sets.len() == 1;
        let has_codes = |key: &KeyColumn| {
            let data_type = self.expressions[key.expression].data_type(&self.input);
            !is_bytes(&key.data_type) || matches!(data_type, Ok(DataType::Dictionary(..)))
        };
        is_one
            && self.spec.keys.direct()
            && self.keys.iter().all(has_codes)
            && self.expressions.iter().all(suits_others)
    }

    /// Evaluates everything on `batch`; for the grouping by all keys, if there is one and its groups are `few`.
    pub fn evaluate(&self, batch: &RecordBatch, few: bool) -> Result<Evaluated> {
        if let TravellingStates::In(incoming) = &self.states {
            return self.merged(batch, incoming);
        }
        let rows = batch.num_rows();
        let values = (0..self.expressions.len()).map(|at| self.value(at, batch));
        let values = values.collect::<Result<Vec<_>>>()?;
        let arguments = self
            .arguments
            .iter()
            .map(|inputs| match inputs.distinct_grouping {
                Some(_) => None,
                None => Some(inputs.of(&values)),
            });
        let arguments: Vec<_> = arguments.collect();
        let (groups, base_grouping) = match self.base_grouping.as_ref().filter(|_| few) {
            Some(base_grouping) => {
                let keys = self.keys_for(&base_grouping.spec, &values)?;
                (Vec::new(), Some(base_grouping.of(keys, &arguments, rows)))
            }
            None => {
                let of_set = |keys| Ok(Batch::of_some(rows, keys, arguments.clone()));
                (self.each_set(&self.spec, &values, rows, of_set)?, None)
            }
        };
        let distinct = self.distinct_groupings.iter().map(|grouping| {
            self.each_set(&grouping.spec, &values, rows, |keys| {
                grouping.of(keys, &values, rows)
            })
        });
        Ok(Evaluated {
            groups,
            base_grouping,
            distinct_groupings: distinct.collect::<Result<_>>()?,
        })
    }

    /// What `make` makes of the keys of each grouping set, in the form that a grouping of `spec` takes them.
    fn each_set(
        &self,
        spec: &Spec,
        values: &[ArrayRef],
        rows: usize,
        make: impl Fn(Vec<ArrayRef>) -> Result<Batch>,
    ) -> Result<Vec<Batch>> {
        let keys = self.keys_for(spec, values)?;
        let sets = self.sets.iter();
        sets.map(|set| make(self.keys_of(set, &keys, rows)?))
            .collect()
    }

    /// The keys in the form that a grouping of `spec` takes them.
    fn keys_for(&self, spec: &Spec, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let takes_codes = spec.keys.takes_codes();
        let keys = self.keys.iter().map(|key| key.of(values, takes_codes));
        keys.collect()
    }

    /// Some of the groups by all keys, as partial states for each grouping set.
    pub fn sets_of(&self, base_grouping: &BaseGrouping, groups: Emitted) -> Result<Vec<Batch>> {
        let rows = groups.rows;
        let (keys, states) = base_grouping.parts(groups, self.arguments.len());
        let sets = self.sets.iter();
        sets.map(|set| {
            let keys = self.keys_of(set, &keys, rows)?;
            Ok(Batch::of_partial(rows, keys, states.clone()))
        })
        .collect()
    }

    /// Some of the `at`th pairs, each once, as rows of those aggregates that take them.
    pub fn distinct(&self, at: usize, pairs: Emitted) -> Batch {
        let rows = pairs.rows;
        let parts = self.distinct_groupings[at].parts(pairs);
        let arguments = self
            .arguments
            .iter()
            .map(|inputs| match inputs.distinct_grouping {
                Some((from, reads)) if from == at => Some(parts.arguments(reads)),
                _ => None,
            });
        let arguments = arguments.collect();
        Batch::of_some(rows, parts.keys, arguments)
    }

    /// One expression for all rows. Where it fails and only aggregates with FILTERs read it, for the rows that they want: it
    /// would cost all queries too much to leave the others out beforehand.
    fn value(&self, at: usize, batch: &RecordBatch) -> Result<ArrayRef> {
        let (expression, rows) = (&self.expressions[at], batch.num_rows());
        let value = expression.evaluate(batch);
        let error = match value.and_then(|value| value.into_array(rows)) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let mut readers = self.arguments.iter();
        let is_key = self.keys.iter().any(|key| key.expression == at);
        if is_key || readers.any(|inputs| inputs.filter == Some(at)) {
            return Err(error);
        }
        let mut wanted = BooleanArray::from(vec![false; rows]);
        let readers = self.arguments.iter();
        for inputs in readers.filter(|inputs| inputs.columns.contains(&at)) {
            let filter = inputs.filter.map(|at| &self.expressions[at]);
            let Some(filter) = filter.filter(|filter| !is_volatile(filter)) else {
                return Err(error);
            };
            let booleans = filter.evaluate(batch)?.into_array(rows)?;
            wanted = or(&wanted, &without_nulls(booleans.as_boolean()))?;
        }
        expression
            .evaluate_selection(batch, &wanted)?
            .into_array(rows)
    }

    /// One row per grouping set without keys, seen by no aggregate: such a set has its row for empty input too.
    pub fn grand_totals(&self) -> Result<Vec<Batch>> {
        let nothing = Some(BooleanArray::from(vec![false]));
        let mut batches = Vec::new();
        for set in self
            .sets
            .iter()
            .filter(|set| set.id.is_some() && set.absent.iter().all(|absent| *absent))
        {
            let null = |at: &usize| {
                let data_type = self.expressions[*at].data_type(&self.input)?;
                Ok(new_null_array(&data_type, 1))
            };
            let of_rows = |inputs: &Inputs| {
                let columns = inputs.columns.iter().map(null);
                Ok(Arguments {
                    columns: columns.collect::<Result<_>>()?,
                    filter: nothing.clone(),
                })
            };
            let arguments = self
                .arguments
                .iter()
                .map(|inputs| match inputs.distinct_grouping {
                    Some(_) => Ok(None),
                    None => of_rows(inputs).map(Some),
                });
            let arguments = arguments.collect::<Result<Vec<_>>>()?;
            let keys: Vec<_> = self
                .keys
                .iter()
                .map(|key| new_null_array(&key.data_type, 1))
                .collect();
            batches.push(Batch::of_some(1, self.keys_of(set, &keys, 1)?, arguments));
        }
        Ok(batches)
    }

    fn keys_of(&self, set: &Set, keys: &[ArrayRef], rows: usize) -> Result<Vec<ArrayRef>> {
        let mut columns: Vec<_> = keys
            .iter()
            .zip(&set.absent)
            .map(|(key, absent)| {
                if *absent {
                    new_null_array(key.data_type(), rows)
                } else {
                    Arc::clone(key)
                }
            })
            .collect();
        if let Some(id) = set.id {
            let ids: ArrayRef = Arc::new(UInt64Array::from_value(id, rows));
            columns.push(as_type(
                &ids,
                self.columns.all.field(self.keys.len()).data_type(),
            )?);
        }
        Ok(columns)
    }

    /// Lets go of the groups that nobody above wants.
    pub fn keep(&self, finished: &mut Finished) -> Result<()> {
        let NodeColumns {
            all, conditions, ..
        } = &self.columns;
        match conditions_now(conditions, all, self.spec.keys.types().len())? {
            Some(conditions) => finished.keep(&conditions).map_err(to_datafusion),
            None => Ok(()),
        }
    }

    /// Finished groups as a batch of the output's schema.
    pub fn output(&self, emitted: Emitted) -> Result<RecordBatch> {
        let Emitted { columns, rows } = emitted;
        match self.states {
            TravellingStates::Out => self.batch(&self.outgoing(columns, rows)?, rows),
            TravellingStates::None | TravellingStates::In(_) => self.batch(&columns, rows),
        }
    }

    /// Columns as a batch of the output's schema.
    fn batch(&self, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let columns = columns
            .iter()
            .zip(self.columns.schema.fields())
            .map(
                |(column, field)| match (column.data_type(), field.data_type()) {
                    (DataType::Dictionary(..), strings) if is_bytes(strings) => {
                        strings_of(column, strings).map_err(to_datafusion)
                    }
                    (_, data_type) => as_type(column, data_type),
                },
            )
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.columns.schema),
            columns,
            &options,
        )?)
    }
}

impl fmt::Debug for CompiledAggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledAggregation")
            .field("expressions", &self.expressions)
            .finish_non_exhaustive()
    }
}

impl Inputs {
    fn of(&self, values: &[ArrayRef]) -> Arguments {
        let columns = self.columns.iter().map(|at| Arc::clone(&values[*at]));
        Arguments {
            columns: columns.collect(),
            filter: self.filter.map(|at| without_nulls(values[at].as_boolean())),
        }
    }
}

/// Bits of the column that tells grouping sets apart.
const SET_ID_BITS_MAX: usize = 64;

/// The grouping sets with DataFusion's ids: a bit per absent key, and above them the how-manieth equal set it is.
fn sets(group_by: &PhysicalGroupBy) -> Result<Vec<Set>> {
    let keys = group_by.expr().len();
    if !group_by.has_grouping_set() {
        return Ok(vec![Set {
            absent: vec![false; keys],
            id: None,
        }]);
    }
    let groups = group_by.groups();
    let mut sets = Vec::with_capacity(groups.len());
    for (at, absent) in groups.iter().enumerate() {
        let earlier = groups[..at].iter().filter(|other| *other == absent).count() as u128;
        let bits = absent
            .iter()
            .fold(0u128, |bits, absent| bits << 1 | u128::from(*absent));
        let id = u64::try_from(bits | earlier << keys.min(SET_ID_BITS_MAX));
        match id {
            Ok(id) if keys <= SET_ID_BITS_MAX => sets.push(Set {
                absent: absent.clone(),
                id: Some(id),
            }),
            _ => {
                return not_impl_err!(
                    "GROUPING SETS over {keys} columns: {SET_ID_BITS_MAX} bits have to tell them apart"
                );
            }
        }
    }
    Ok(sets)
}

pub(super) fn as_type(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    match (cast(column, data_type), data_type) {
        // Of values of some types Arrow makes no dictionaries.
        (Err(_), DataType::Dictionary(_, of)) if column.data_type() == &**of => {
            let Hashed { firsts, codes } = hashed(column)?;
            let values = take(column, &firsts, None)?;
            Ok(cast(&Spread::new(values, codes).coded()?, data_type)?)
        }
        (cast, _) => Ok(cast?),
    }
}
