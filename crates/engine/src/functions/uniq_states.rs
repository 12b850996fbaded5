//! The operator's sketches behind DataFusion's interfaces: for windows, and where DataFusion groups.
//!
//! In: argument columns or sketches as bytes. Out: counts, or sketches of one column of binary views.
//! Invariant: the same sketches as the operator's own, so that a query counts the same wherever it runs.
//! Not here: the sketches (`grouse_groupby::states::uniq`).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, not_impl_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use grouse_groupby::keys::GroupId;
use grouse_groupby::states::{self, Aggregate, GroupStates, Groups};
use parking_lot::Mutex;

use crate::error::to_host;

/// The type of a sketch.
pub(super) const SKETCH: DataType = DataType::BinaryView;

/// Sketches of all groups, one of them where there is no GROUP BY.
pub(super) struct Sketches {
    aggregate: Arc<dyn Aggregate>,
    /// DataFusion wants `Sync`, which states need not be; nobody ever waits for this lock.
    states: Mutex<Box<dyn GroupStates>>,
    groups: usize,
    bytes: usize,
}

impl fmt::Debug for Sketches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sketches({:?}, {} groups)", self.aggregate, self.groups)
    }
}

impl Sketches {
    /// No sketch yet for the aggregate that `args` describe.
    pub fn new(args: &AccumulatorArgs) -> Result<Sketches> {
        let types: Vec<_> = args
            .expr_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        let Some(aggregate) = states::uniq(args.name, &types) else {
            return not_impl_err!("{} of arguments of types {types:?}", args.name);
        };
        Sketches::of(aggregate)
    }

    fn of(aggregate: Arc<dyn Aggregate>) -> Result<Sketches> {
        Ok(Sketches {
            states: Mutex::new(aggregate.states().map_err(to_host)?),
            aggregate,
            groups: 0,
            bytes: 0,
        })
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
        updated.map_err(to_host)
    }

    fn merge(&mut self, sketches: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.groups = self.groups.max(total);
        let states = self.states.get_mut();
        let merged = states.merge(sketches, groups, self.groups);
        self.bytes = states.bytes();
        merged.map_err(to_host)
    }

    /// All sketches; none are left.
    fn take(&mut self) -> Result<ArrayRef> {
        let groups = std::mem::take(&mut self.groups);
        let mut columns = self
            .states
            .get_mut()
            .drain_partial(groups)
            .map_err(to_host)?;
        self.bytes = 0;
        Ok(columns.remove(0))
    }

    /// The sketches of `emit`; the others move up.
    fn take_first(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let all = self.take()?;
        let EmitTo::First(first) = emit else {
            return Ok(all);
        };
        let rest = all.slice(first, all.len() - first);
        self.merge_each(&rest)?;
        Ok(all.slice(0, first))
    }

    /// One sketch per group.
    fn merge_each(&mut self, sketches: &ArrayRef) -> Result<()> {
        let groups = numbered(sketches.len());
        self.merge(&[Arc::clone(sketches)], Groups::Ids(&groups), groups.len())
    }

    /// What each of the sketches has counted.
    fn counts(&self, sketches: &ArrayRef) -> Result<ArrayRef> {
        let mut counted = Sketches::of(Arc::clone(&self.aggregate))?;
        counted.merge_each(sketches)?;
        counted
            .states
            .get_mut()
            .drain_final(sketches.len())
            .map_err(to_host)
    }

    /// The one sketch where there is no GROUP BY, which stays.
    fn only(&mut self) -> Result<ArrayRef> {
        self.groups = 1;
        let sketch = self.take()?;
        self.merge_each(&sketch)?;
        Ok(sketch)
    }
}

fn numbered(groups: usize) -> Vec<GroupId> {
    (0..groups as u32).map(GroupId).collect()
}

impl Accumulator for Sketches {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.update(values, None, Groups::One(values[0].len()), 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.merge(states, Groups::One(states[0].len()), 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::try_from_array(&self.only()?, 0)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sketch = self.only()?;
        ScalarValue::try_from_array(&self.counts(&sketch)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

impl GroupsAccumulator for Sketches {
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
        let sketches = self.take_first(emit_to)?;
        self.counts(&sketches)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.take_first(emit_to)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut each = Sketches::of(Arc::clone(&self.aggregate))?;
        let groups = numbered(values[0].len());
        each.update(values, opt_filter, Groups::Ids(&groups), groups.len())?;
        Ok(vec![each.take()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}

/// DataFusion's groups, which are far fewer than 2^32, as ours.
fn ids(groups: &[usize]) -> Vec<GroupId> {
    groups.iter().map(|&group| GroupId(group as u32)).collect()
}
