//! An aggregate whose results are its partial states, for another grouping to merge.
//!
//! In: as the aggregate's. Out: a struct of the columns of its partial states.
//! Not here: who merges them (`Batch::of_partial`).

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;

use super::struct_columns::{in_struct, struct_of};
use super::{Aggregate, Bypass, CodeSums, GroupStates, Groups, PreAggregated, PreAggregator};
use crate::batch::Arguments;
use crate::error::Result;

#[derive(Debug)]
struct Partial {
    of: Arc<dyn Aggregate>,
    result_type: DataType,
}

struct PartialStates(Box<dyn GroupStates>);

/// The aggregate with its partial states as results.
pub fn partial(of: &Arc<dyn Aggregate>) -> Result<Arc<dyn Aggregate>> {
    let none = of.states()?.drain_partial(0)?;
    Ok(Arc::new(Partial {
        of: Arc::clone(of),
        result_type: struct_of(none.iter().map(|column| column.data_type())),
    }))
}

impl Aggregate for Partial {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn result_type(&self) -> DataType {
        self.result_type.clone()
    }

    fn states(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(PartialStates(self.of.states()?)))
    }

    fn state_version(&self) -> u16 {
        self.of.state_version()
    }

    fn bypass(&self) -> Bypass {
        self.of.bypass()
    }

    fn keeps_rows(&self) -> bool {
        self.of.keeps_rows()
    }

    fn carried(&self, arguments: &Arguments) -> Result<Arguments> {
        self.of.carried(arguments)
    }

    fn carried_mix(&self, arguments: &Arguments) -> bool {
        self.of.carried_mix(arguments)
    }
}

impl GroupStates for PartialStates {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        self.0.update(columns, filter, groups, total)
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.0.merge(partial, groups, total)
    }

    fn pre_aggregate(
        &self,
        columns: &[ArrayRef],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        self.0.pre_aggregate(columns, by_code)
    }

    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        self.0.add_pre_aggregated(pre_aggregated, total);
    }

    fn convert(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert(columns, filter)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        self.0.drain_partial(total)
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        in_struct(self.0.drain_partial(total)?)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn appended_bytes(&self) -> usize {
        self.0.appended_bytes()
    }

    fn used_bytes(&self) -> usize {
        self.0.used_bytes()
    }
}
