//! The states of all aggregates of one worker.
//!
//! In: batches with the group of each row. Out: columns of partial states, of all groups or, without a group, of each row.
//! Invariant: states know all groups but those that came since the last batch that was for them.
//! Not here: groups (`key_index`), what one aggregate does (`states`).

use std::sync::Arc;

use crate::batch::{Arguments, Batch};
use crate::combine::{name_aggregate, new_states};
use crate::error::{Error, Result};
use crate::keys::GroupId;
use crate::partition::AggregateColumns;
use crate::spec::Spec;
use crate::states::{Bypass, CodeSums, GroupStates, Groups, PreAggregated, PreAggregator};

/// One `GroupStates` per aggregate.
pub(super) struct AllStates {
    spec: Arc<Spec>,
    states: Vec<Box<dyn GroupStates>>,
    /// Groups that the states of each aggregate know of: all but for those whose batches were not for it.
    known: Vec<usize>,
    /// How rows skip the table, where all aggregates allow it.
    bypass: Option<Vec<Bypass>>,
}

impl AllStates {
    /// States of no group.
    pub(super) fn new(spec: Arc<Spec>) -> Result<Self> {
        let bypass: Vec<_> = spec.aggregates.iter().map(|a| a.bypass()).collect();
        let may_bypass = !spec.is_keyless() && !bypass.contains(&Bypass::Never);
        Ok(Self {
            states: new_states(&spec)?,
            known: vec![0; bypass.len()],
            bypass: may_bypass.then_some(bypass),
            spec,
        })
    }

    /// Rows into the states of their groups, of those aggregates that they are for; `before` groups are none of these rows'.
    pub(super) fn update(
        &mut self,
        batch: &Batch,
        groups: Groups<'_>,
        before: usize,
        total: usize,
    ) -> Result<()> {
        let states = self.states.iter_mut().zip(&mut self.known);
        for ((states, known), arguments) in states.zip(&batch.arguments) {
            let Some(Arguments { columns, filter }) = arguments else {
                continue;
            };
            // States, DataFusion's too, take a group that is new to them to have a row in the batch, if only one that
            // FILTER leaves out.
            debug_assert!(
                *known >= before || !batch.are_partial,
                "all batches of rows are for it"
            );
            if *known < before && !batch.are_partial {
                let one_row: Vec<_> = columns.iter().map(|column| column.slice(0, 1)).collect();
                let last = Groups::Ids(&[GroupId(before as u32 - 1)]);
                states.update(&one_row, Some(&vec![false].into()), last, before)?;
            }
            match batch.are_partial {
                true => states.merge(columns, groups, total)?,
                false => states.update(columns, filter.as_ref(), groups, total)?,
            }
            *known = total;
        }
        Ok(())
    }

    /// True if the states of all aggregates know so many groups.
    pub(super) fn know(&self, groups: usize) -> bool {
        self.known.iter().all(|known| *known >= groups)
    }

    /// What the values of each aggregate add up to; `None` if one has to see them row by row.
    pub(super) fn pre_aggregate(
        &self,
        arguments: &[Option<Arguments>],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<Vec<CodeSums>>> {
        let columns = arguments.iter().flatten().map(|of_one| &of_one.columns);
        let sums = self.states.iter().zip(columns);
        sums.map(|(states, columns)| states.pre_aggregate(columns, by_code))
            .collect()
    }

    /// What each aggregate's values add up to, by code, into the states of the codes' `groups`.
    pub(super) fn add_pre_aggregated(
        &mut self,
        sums: impl Iterator<Item = CodeSums>,
        counts: &[i64],
        groups: &[GroupId],
        total: usize,
    ) {
        for (states, sums) in self.states.iter_mut().zip(sums) {
            let pre_aggregated = PreAggregated {
                sums: &sums,
                counts,
                groups,
            };
            states.add_pre_aggregated(pre_aggregated, total);
        }
        self.known.fill(total);
    }

    /// True if rows of `batch` may go to blocks without a lookup.
    pub(super) fn may_bypass(&self, batch: &Batch) -> bool {
        self.bypass.is_some() && self.spec.rows_mix(batch)
    }

    /// The columns of rows that skip the table.
    pub(super) fn bypassed(&self, batch: &Batch) -> Result<Vec<AggregateColumns>> {
        let bypass = self
            .bypass
            .as_ref()
            .expect("rows skip the table only where all aggregates allow it");
        let all = self.spec.aggregates.iter().zip(&self.states);
        let all = bypass.iter().zip(all).zip(&batch.arguments);
        let columns = all.map(|((how, (aggregate, states)), arguments)| {
            let arguments = arguments
                .as_ref()
                .expect("rows that skip the table are for all aggregates");
            let Arguments { columns, filter } = arguments;
            Ok(match how {
                _ if batch.are_partial => AggregateColumns::Partial(columns.clone()),
                Bypass::Convert => {
                    AggregateColumns::Partial(states.convert(columns, filter.as_ref())?)
                }
                Bypass::Rows | Bypass::Never => {
                    AggregateColumns::Rows(aggregate.carried(arguments)?)
                }
            })
        });
        columns.collect()
    }

    /// The partial states of `total` groups; none is left.
    pub(super) fn drain(&mut self, total: usize) -> Result<Vec<AggregateColumns>> {
        self.known.fill(0);
        let states = self.states.iter_mut();
        states
            .map(|states| Ok(AggregateColumns::Partial(states.drain_partial(total)?)))
            .collect()
    }

    /// Gives back the room that emptied states keep.
    pub(super) fn begin_anew(&mut self) -> Result<()> {
        self.states = new_states(&self.spec)?;
        Ok(())
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.states.iter().map(|states| states.bytes()).sum()
    }

    /// Those of `bytes` that grow with the rows.
    pub(super) fn appended_bytes(&self) -> usize {
        let states = self.states.iter();
        states.map(|states| states.appended_bytes()).sum()
    }

    /// Bytes that grow with the groups.
    pub(super) fn group_bytes(&self) -> usize {
        let states = self.states.iter();
        states
            .map(|states| states.bytes().saturating_sub(states.appended_bytes()))
            .sum()
    }

    /// Bytes that updates touch.
    pub(super) fn used_bytes(&self) -> usize {
        self.states.iter().map(|states| states.used_bytes()).sum()
    }

    /// A refusal of memory with the aggregate whose states are more than half of them and the `index_bytes`.
    pub(super) fn name_aggregate(&self, error: Error, index_bytes: usize) -> Error {
        name_aggregate(error, &self.spec, &self.states, index_bytes + self.bytes())
    }
}
