//! GROUPING SETS, ROLLUP and CUBE: rows meet by all keys, and each set gets what they come to instead of the rows.
//!
//! ```text
//! rows -> groups by all keys -> their partial states, once per set -> groups
//! ```
//!
//! In: evaluated columns of a batch; groups by all keys. Out: a batch for the grouping by all keys; batches of partial states,
//! one per set.
//! Invariant: a row is either among the groups by all keys or goes to each set itself: only for aggregates whose states take
//! both. It pays while groups are few.
//! Not here: what a grouping does (`grouse_groupby`), when these are merged (worker.rs), pairs of a DISTINCT.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::common::Result;
use grouse_groupby::emit::Emitted;
use grouse_groupby::keys::KeyLayout;
use grouse_groupby::states::{Aggregate, Bypass, partial};
use grouse_groupby::{Arguments, Batch, Build, Sizes, Spec};

use crate::error::to_datafusion;

/// A group costs each set, and the merge before, so many rows: its keys are decoded and encoded again.
const GROUP_ROWS: u64 = 2;

/// The grouping by all keys.
pub(super) struct BaseGrouping {
    /// What the algorithm needs to know.
    pub spec: Arc<Spec>,
    /// Its aggregates, as places among all: those of rows.
    aggregates: Vec<usize>,
    sets: u64,
}

impl BaseGrouping {
    /// Of some of `all` aggregates; `None` if one of them has to see the rows.
    pub fn new(
        layout: KeyLayout,
        all: &[Arc<dyn Aggregate>],
        aggregates: Vec<usize>,
        sets: usize,
        sizes: Sizes,
    ) -> Result<Option<BaseGrouping>> {
        let mut of_rows = aggregates.iter().map(|at| &all[*at]);
        if of_rows.any(|aggregate| aggregate.bypass() != Bypass::Rows) {
            return Ok(None);
        }
        let states = aggregates.iter().map(|at| partial(&all[*at]));
        let states = states
            .collect::<std::result::Result<_, _>>()
            .map_err(to_datafusion)?;
        Ok(Some(BaseGrouping {
            spec: Arc::new(Spec::new(layout, states, sizes)),
            aggregates,
            sets: sets as u64,
        }))
    }

    /// Rows with these keys and arguments of all aggregates.
    pub fn of(&self, keys: Vec<ArrayRef>, arguments: &[Option<Arguments>], rows: usize) -> Batch {
        let arguments = self.aggregates.iter().map(|at| arguments[*at].clone());
        Batch::of_some(rows, keys, arguments.collect())
    }

    /// False where so many groups came of the rows that the sets better get the next rows themselves.
    pub fn pays(&self, build: &Build) -> bool {
        let counters = build.counters();
        let records = build.groups() as u64 + counters.built_groups + counters.bypassed_rows;
        // At first nearly each row is a group.
        let are_few = records <= self.spec.sizes.base_groups as u64;
        are_few || records * (self.sets + 1) * GROUP_ROWS <= counters.rows * (self.sets - 1)
    }

    /// Groups as key columns and the partial states of `all` aggregates.
    pub fn parts(&self, groups: Emitted, all: usize) -> (Vec<ArrayRef>, Vec<Option<Arguments>>) {
        let mut keys = groups.columns;
        let states = keys.split_off(self.spec.keys.types().len());
        let mut arguments = vec![None; all];
        for (at, states) in self.aggregates.iter().zip(states) {
            arguments[*at] = Some(Arguments {
                columns: states.as_struct().columns().to_vec(),
                filter: None,
            });
        }
        (keys, arguments)
    }
}
