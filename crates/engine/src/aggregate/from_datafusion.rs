//! Any aggregate of DataFusion behind our `GroupStates`: every query runs.
//!
//! In: DataFusion's physical aggregate. Out: an `Aggregate` that keeps its states in DataFusion's own accumulators.
//! Invariant: one accumulator gets updates or merges, never both, and is dropped when its states are drained.
//! Not here: aggregates with native states (native.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, new_empty_array, new_null_array};
use datafusion::arrow::compute::{cast, filter};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{DataFusionError, Result as DataFusionResult, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use grouse_groupby::keys::GroupId;
use grouse_groupby::states::{Aggregate, Bypass, GroupStates, Groups};
use grouse_groupby::{Error, Result};

/// How many states an instance has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupingKind {
    /// One: there is no GROUP BY.
    Keyless,
    /// One per group.
    Keyed,
}

/// One of DataFusion's aggregates.
#[derive(Clone)]
pub(crate) struct DataFusionAggregate {
    /// Reads rows; it may rely on their order.
    updating: Arc<AggregateFunctionExpr>,
    /// Reads states, which come in no order.
    merging: Arc<AggregateFunctionExpr>,
    argument_types: Vec<DataType>,
    state_fields: Vec<FieldRef>,
    grouping: GroupingKind,
    bypass: Bypass,
}

/// The two forms of an aggregate that DataFusion uses before and after an exchange.
pub(crate) struct Stages<'a> {
    /// Fitted to the order of the input.
    pub updating: &'a Arc<AggregateFunctionExpr>,
    /// As planned.
    pub merging: &'a Arc<AggregateFunctionExpr>,
}

impl DataFusionAggregate {
    /// Wraps an aggregate whose arguments have the types `argument_types`; fails where DataFusion cannot make states.
    pub fn new(
        stages: &Stages<'_>,
        argument_types: &[DataType],
        grouping: GroupingKind,
    ) -> DataFusionResult<DataFusionAggregate> {
        let mut aggregate = DataFusionAggregate {
            updating: Arc::clone(stages.updating),
            merging: Arc::clone(stages.merging),
            argument_types: argument_types.to_vec(),
            state_fields: stages.updating.state_fields()?,
            grouping,
            bypass: Bypass::Never,
        };
        match grouping {
            GroupingKind::Keyless => drop(stages.updating.create_accumulator()?),
            GroupingKind::Keyed => {
                let states = aggregate.groups_accumulator(stages.updating)?;
                // An accumulator per row and then again per group costs more than any table.
                if stages.updating.groups_accumulator_supported() {
                    aggregate.bypass =
                        bypass_of(states.as_ref(), argument_types, &aggregate.state_fields);
                }
            }
        }
        Ok(aggregate)
    }

    fn groups_accumulator(
        &self,
        stage: &Arc<AggregateFunctionExpr>,
    ) -> DataFusionResult<Box<dyn GroupsAccumulator>> {
        if stage.groups_accumulator_supported() {
            return stage.create_groups_accumulator();
        }
        let stage = Arc::clone(stage);
        stage.create_accumulator()?;
        Ok(Box::new(GroupsAccumulatorAdapter::new(move || {
            stage.create_accumulator()
        })))
    }
}

/// Rows may travel as states where turning a row into one works: tried on a row of NULLs that is filtered out.
fn bypass_of(
    states: &dyn GroupsAccumulator,
    argument_types: &[DataType],
    fields: &[FieldRef],
) -> Bypass {
    let columns: Vec<_> = argument_types
        .iter()
        .map(|data_type| new_null_array(data_type, 1))
        .collect();
    match states.convert_to_state(&columns, Some(&BooleanArray::from(vec![false]))) {
        Ok(converted)
            if converted.len() == fields.len()
                && converted.iter().all(|column| column.len() == 1) =>
        {
            Bypass::Convert
        }
        Ok(_) | Err(_) => Bypass::Never,
    }
}

impl fmt::Debug for DataFusionAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "DataFusionAggregate({}, {:?})",
            self.updating.name(),
            self.grouping
        )
    }
}

impl Aggregate for DataFusionAggregate {
    fn name(&self) -> &str {
        self.updating
            .human_display()
            .unwrap_or_else(|| self.updating.name())
    }

    fn result_type(&self) -> DataType {
        self.updating.field().data_type().clone()
    }

    fn states(&self) -> Result<Box<dyn GroupStates>> {
        match self.grouping {
            GroupingKind::Keyless => Ok(Box::new(OneDataFusionState {
                make: self.clone(),
                accumulator: None,
            })),
            GroupingKind::Keyed => Ok(Box::new(DataFusionStates {
                make: self.clone(),
                states: None,
                known: 0,
                convert: self
                    .groups_accumulator(&self.updating)
                    .map_err(datafusion)?,
                groups: Vec::new(),
            })),
        }
    }

    fn bypass(&self) -> Bypass {
        self.bypass
    }
}

/// One state per group, in DataFusion's accumulator for groups.
struct DataFusionStates {
    make: DataFusionAggregate,
    /// Made with the first rows or states, for these; gone when drained, as not every accumulator resets itself.
    states: Option<Box<dyn GroupsAccumulator>>,
    /// Groups that they have been told of.
    known: usize,
    /// Holds no state; turns rows into states.
    convert: Box<dyn GroupsAccumulator>,
    /// The groups of a batch as DataFusion counts them.
    groups: Vec<usize>,
}

impl DataFusionStates {
    fn number(&mut self, groups: Groups<'_>) {
        self.groups.clear();
        match groups {
            Groups::Ids(ids) => self
                .groups
                .extend(ids.iter().map(|GroupId(id)| *id as usize)),
            Groups::One(rows) => self.groups.resize(rows, 0),
        }
    }

    /// The states for rows or for states, made where there are none.
    fn states(&mut self, stage: AccumulatorInput) -> Result<&mut Box<dyn GroupsAccumulator>> {
        if self.states.is_none() {
            self.states = Some(
                self.make
                    .groups_accumulator(self.make.stage(stage))
                    .map_err(datafusion)?,
            );
        }
        Ok(self.states.as_mut().expect("made above"))
    }

    /// The states of all groups, also of those that none of its rows came to; `None` where there are no groups.
    fn take(&mut self, total: usize) -> Result<Option<Box<dyn GroupsAccumulator>>> {
        if std::mem::take(&mut self.known) < total {
            let types = self.make.argument_types.iter();
            let one_row: Vec<ArrayRef> = types.map(|of| new_null_array(of, 1)).collect();
            let left_out = BooleanArray::from(vec![false]);
            let states = self.states(AccumulatorInput::Rows)?;
            // DataFusion takes groups that are new in a batch of all rows to have one of them.
            let grown = states.update_batch(&one_row, &[total - 1], Some(&left_out), total);
            grown.map_err(datafusion)?;
        }
        Ok(self.states.take().filter(|_| total > 0))
    }
}

/// What an accumulator is fed with.
#[derive(Debug, Clone, Copy)]
enum AccumulatorInput {
    Rows,
    States,
}

impl DataFusionAggregate {
    fn stage(&self, stage: AccumulatorInput) -> &Arc<AggregateFunctionExpr> {
        match stage {
            AccumulatorInput::Rows => &self.updating,
            AccumulatorInput::States => &self.merging,
        }
    }
}

impl GroupStates for DataFusionStates {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        self.number(groups);
        self.known = total;
        let groups = std::mem::take(&mut self.groups);
        let result = self
            .states(AccumulatorInput::Rows)?
            .update_batch(columns, &groups, filter, total);
        self.groups = groups;
        result.map_err(datafusion)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.number(groups);
        self.known = total;
        let groups = std::mem::take(&mut self.groups);
        let result = self
            .states(AccumulatorInput::States)?
            .merge_batch(partial, &groups, total);
        self.groups = groups;
        result.map_err(datafusion)
    }

    fn convert(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let converted = self
            .convert
            .convert_to_state(columns, filter)
            .map_err(datafusion)?;
        as_declared(converted, &self.make.state_fields)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let Some(mut states) = self.take(total)? else {
            let fields = self.make.state_fields.iter();
            return Ok(fields
                .map(|field| new_empty_array(field.data_type()))
                .collect());
        };
        let states = states.state(EmitTo::All).map_err(datafusion)?;
        as_declared(states, &self.make.state_fields)
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let Some(mut states) = self.take(total)? else {
            return Ok(new_empty_array(&self.make.result_type()));
        };
        Ok(compact(states.evaluate(EmitTo::All).map_err(datafusion)?))
    }

    fn bytes(&self) -> usize {
        let states = self.states.as_ref().map_or(0, |states| states.size());
        states + self.groups.capacity() * size_of::<usize>()
    }
}

/// DataFusion makes a dictionary value per group; few keys have no room for those of several batches.
fn compact(column: ArrayRef) -> ArrayRef {
    let DataType::Dictionary(_, values) = column.data_type() else {
        return column;
    };
    let plain = cast(&column, values);
    // What has no room keeps the form that it came in.
    plain
        .and_then(|plain| cast(&plain, column.data_type()))
        .unwrap_or(column)
}

/// States of one aggregate have one form, whether rows were converted or groups drained.
fn as_declared(columns: Vec<ArrayRef>, fields: &[FieldRef]) -> Result<Vec<ArrayRef>> {
    columns
        .into_iter()
        .zip(fields)
        .map(|(column, field)| {
            if column.data_type().equals_datatype(field.data_type()) {
                return Ok(column);
            }
            cast(&column, field.data_type()).map_err(Error::from)
        })
        .collect()
}

/// The one state of an aggregate without GROUP BY, in DataFusion's accumulator for whole columns.
struct OneDataFusionState {
    make: DataFusionAggregate,
    accumulator: Option<Box<dyn Accumulator>>,
}

impl OneDataFusionState {
    fn accumulator(&mut self, stage: AccumulatorInput) -> Result<&mut Box<dyn Accumulator>> {
        if self.accumulator.is_none() {
            self.accumulator = Some(
                self.make
                    .stage(stage)
                    .create_accumulator()
                    .map_err(datafusion)?,
            );
        }
        Ok(self.accumulator.as_mut().expect("made above"))
    }

    /// The accumulator so far; a new one where no row and no state came.
    fn take(&mut self) -> Result<Box<dyn Accumulator>> {
        match self.accumulator.take() {
            Some(accumulator) => Ok(accumulator),
            None => self.make.updating.create_accumulator().map_err(datafusion),
        }
    }
}

impl GroupStates for OneDataFusionState {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        rows: Option<&BooleanArray>,
        _groups: Groups<'_>,
        _total: usize,
    ) -> Result<()> {
        let accumulator = self.accumulator(AccumulatorInput::Rows)?;
        let Some(rows) = rows else {
            return accumulator.update_batch(columns).map_err(datafusion);
        };
        let kept = columns
            .iter()
            .map(|column| filter(column, rows))
            .collect::<Result<Vec<_>, _>>()?;
        accumulator.update_batch(&kept).map_err(datafusion)
    }

    fn merge(&mut self, partial: &[ArrayRef], _groups: Groups<'_>, _total: usize) -> Result<()> {
        self.accumulator(AccumulatorInput::States)?
            .merge_batch(partial)
            .map_err(datafusion)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let state = self.take()?.state().map_err(datafusion)?;
        state
            .iter()
            .map(|value| value.to_array_of_size(total).map_err(datafusion))
            .collect()
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let result: ScalarValue = self.take()?.evaluate().map_err(datafusion)?;
        result.to_array_of_size(total).map_err(datafusion)
    }

    fn bytes(&self) -> usize {
        self.accumulator
            .as_ref()
            .map_or(0, |accumulator| accumulator.size())
    }
}

fn datafusion(error: DataFusionError) -> Error {
    Error::DataFusion(Box::new(error))
}
