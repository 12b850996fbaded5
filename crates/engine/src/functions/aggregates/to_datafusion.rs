//! States of `grouse_groupby` behind DataFusion's interfaces: for windows, and where DataFusion groups.
//!
//! In: argument columns or partial states. Out: results, or partial states.
//! Invariant: the same states as the operator's own, so that a query means the same wherever it runs.
//! Not here: the states (`grouse_groupby::states`), frames that rows leave, the way back (aggregate/from_datafusion.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use grouse_groupby::Error;
use grouse_groupby::keys::GroupId;
use grouse_groupby::states::{Aggregate, GroupStates, Groups};
use parking_lot::Mutex;

use crate::error::to_datafusion;
use crate::functions::aggregates::overflow::overflow;

/// The states of all groups, one of them where there is no GROUP BY.
pub(super) struct StatesOf {
    aggregate: Arc<dyn Aggregate>,
    result_type: DataType,
    /// DataFusion wants `Sync`, which states need not be; nobody ever waits for this lock.
    states: Mutex<Box<dyn GroupStates>>,
    groups: usize,
    bytes: usize,
}

impl fmt::Debug for StatesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatesOf({:?}, {} groups)", self.aggregate, self.groups)
    }
}

/// The types of arguments.
pub(super) fn types_of(arguments: &[FieldRef]) -> Vec<DataType> {
    let types = arguments.iter().map(|field| field.data_type().clone());
    types.collect()
}

/// The columns of the partial states of `aggregate`, which is none for types that it does not know.
pub(super) fn state_fields(
    aggregate: Option<Arc<dyn Aggregate>>,
    args: &StateFieldsArgs,
) -> Result<Vec<FieldRef>> {
    let aggregate = known(aggregate, args.name, args.input_fields)?;
    let none = aggregate.states().and_then(|mut of| of.drain_partial(0));
    let columns = none.map_err(to_datafusion)?.into_iter().enumerate();
    let field = |(at, column): (usize, ArrayRef)| {
        let name = format_state_name(args.name, &format!("state {at}"));
        Arc::new(Field::new(name, column.data_type().clone(), true))
    };
    Ok(columns.map(field).collect())
}

fn known(
    aggregate: Option<Arc<dyn Aggregate>>,
    name: &str,
    arguments: &[FieldRef],
) -> Result<Arc<dyn Aggregate>> {
    match aggregate {
        Some(aggregate) => Ok(aggregate),
        None => not_impl_err!("{name} of arguments of types {:?}", types_of(arguments)),
    }
}

impl StatesOf {
    /// No group yet of the `aggregate` that `args` describe; it is none for types that it does not know.
    pub(super) fn new(
        aggregate: Option<Arc<dyn Aggregate>>,
        args: &AccumulatorArgs,
    ) -> Result<StatesOf> {
        let aggregate = known(aggregate, args.name, args.expr_fields)?;
        StatesOf::of(aggregate, args.return_type())
    }

    fn of(aggregate: Arc<dyn Aggregate>, result_type: &DataType) -> Result<StatesOf> {
        Ok(StatesOf {
            states: Mutex::new(aggregate.states().map_err(to_datafusion)?),
            aggregate,
            result_type: result_type.clone(),
            groups: 0,
            bytes: 0,
        })
    }

    /// No group yet of the same aggregate.
    fn empty(&self) -> Result<StatesOf> {
        StatesOf::of(Arc::clone(&self.aggregate), &self.result_type)
    }

    fn update(
        &mut self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        self.groups = self.groups.max(total);
        let states = self.states.get_mut();
        let updated = states.update(values, filter, groups, self.groups);
        self.bytes = states.bytes();
        updated.map_err(to_datafusion)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.groups = self.groups.max(total);
        let states = self.states.get_mut();
        let merged = states.merge(partial, groups, self.groups);
        self.bytes = states.bytes();
        merged.map_err(to_datafusion)
    }

    /// All partial states; none are left.
    fn take(&mut self) -> Result<Vec<ArrayRef>> {
        let groups = std::mem::take(&mut self.groups);
        self.bytes = 0;
        self.states
            .get_mut()
            .drain_partial(groups)
            .map_err(to_datafusion)
    }

    /// The partial states of `emit`; the others move up.
    fn take_first(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let all = self.take()?;
        let EmitTo::First(first) = emit else {
            return Ok(all);
        };
        let part = |from, groups| {
            all.iter()
                .map(|column| column.slice(from, groups))
                .collect()
        };
        let rest: Vec<_> = part(first, all[0].len() - first);
        self.merge_each(&rest)?;
        Ok(part(0, first))
    }

    /// One partial state per group.
    fn merge_each(&mut self, partial: &[ArrayRef]) -> Result<()> {
        let groups = numbered(partial[0].len());
        self.merge(partial, Groups::Ids(&groups), groups.len())
    }

    /// The results of all groups; none are left.
    fn take_results(&mut self) -> Result<ArrayRef> {
        let groups = std::mem::take(&mut self.groups);
        self.bytes = 0;
        let results = self.states.get_mut().drain_final(groups);
        let results = results.map_err(|error| self.failed(error))?;
        match results.data_type() == &self.result_type {
            true => Ok(results),
            false => Ok(cast(&results, &self.result_type)?),
        }
    }

    fn failed(&self, error: Error) -> DataFusionError {
        match error {
            Error::Overflow { aggregate, .. } => overflow(&aggregate, &self.result_type),
            error => to_datafusion(error),
        }
    }

    /// What these partial states come to.
    fn results(&self, partial: &[ArrayRef]) -> Result<ArrayRef> {
        let mut merged = self.empty()?;
        merged.merge_each(partial)?;
        merged.take_results()
    }

    /// The one partial state where there is no GROUP BY, which stays.
    fn only(&mut self) -> Result<Vec<ArrayRef>> {
        self.groups = 1;
        let partial = self.take()?;
        self.merge_each(&partial)?;
        Ok(partial)
    }
}

fn numbered(groups: usize) -> Vec<GroupId> {
    (0..groups as u32).map(GroupId).collect()
}

impl Accumulator for StatesOf {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.update(values, None, Groups::One(values[0].len()), 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.merge(states, Groups::One(states[0].len()), 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let partial = self.only()?;
        let values = partial.iter().map(|of| ScalarValue::try_from_array(of, 0));
        values.collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let partial = self.only()?;
        ScalarValue::try_from_array(&self.results(&partial)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

impl GroupsAccumulator for StatesOf {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let groups = ids(group_indices);
        self.update(values, opt_filter, Groups::Ids(&groups), total_num_groups)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        let groups = ids(group_indices);
        self.merge(values, Groups::Ids(&groups), total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        match emit_to {
            EmitTo::All => self.take_results(),
            first => {
                let partial = self.take_first(first)?;
                self.results(&partial)
            }
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.take_first(emit_to)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut each = self.empty()?;
        let groups = numbered(values[0].len());
        each.update(values, opt_filter, Groups::Ids(&groups), groups.len())?;
        each.take()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

/// DataFusion's groups, which are far fewer than 2^32, as ours.
fn ids(groups: &[usize]) -> Vec<GroupId> {
    groups.iter().map(|&group| GroupId(group as u32)).collect()
}
