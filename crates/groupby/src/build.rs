//! Phase 1: one per worker, nothing shared. Rows become groups of a hot table or, where looking
//! up does not pay, records of a partition.
//!
//! In: batches. Out: `Built`, blocks of records sorted by partition.
//! Invariant: every row is in exactly one place: a state of the table, a waiting row or a block.
//! Not here: what to do when the table is full (`policy`), threads, the host.

use std::sync::Arc;

use crate::batch::{Arguments, Batch};
use crate::error::Result;
use crate::keys::runs;
use crate::keys::{DirectTable, DistinctKeys, EncodedKeys, GroupId, KeyTable};
use crate::partition::{Block, Records, Unsorted};
use crate::policy::{self, Bounds, Decision, Seen};
use crate::runtime::counters::Lap;
use crate::runtime::{Counters, Grant};
use crate::spec::Spec;
use crate::states::{Bypass, GroupStates, Groups};

/// Rows between two looks of the policy at hit rates.
const WINDOW_ROWS: u64 = 16 << 10;

/// What one worker hands to the merge.
pub struct Built {
    /// Records sorted by partition.
    pub blocks: Vec<Block>,
    /// What the worker counted.
    pub counters: Counters,
    /// Covers the blocks until they are dropped.
    pub grant: Grant,
}

/// Where the next rows go.
enum Route {
    /// Addressed by key.
    Direct(DirectTable),
    /// Looked up by hash.
    Hashed,
    /// To partitions without a lookup, for this many rows more.
    Bypass { rows_left: usize },
}

/// One worker's build phase.
pub struct Build {
    spec: Arc<Spec>,
    route: Route,
    table: Box<dyn KeyTable>,
    states: Vec<Box<dyn GroupStates>>,
    bypass: Option<Vec<Bypass>>,
    waiting: Vec<Unsorted>,
    waiting_rows: usize,
    blocks: Vec<Block>,
    blocks_bytes: usize,
    seen: Seen,
    /// False once a table has grown beyond the cache in vain.
    may_grow: bool,
    grant: Grant,
    counters: Counters,
    groups: Vec<GroupId>,
    hashes: Vec<u64>,
    /// Where runs of equal keys begin in the current batch, and the group of each.
    starts: Vec<u32>,
    runs: Vec<GroupId>,
}

impl Build {
    /// An empty build.
    pub fn new(spec: Arc<Spec>, grant: Grant) -> Result<Self> {
        let states = spec
            .aggregates
            .iter()
            .map(|a| a.states())
            .collect::<Result<_>>()?;
        let bypass: Vec<_> = spec.aggregates.iter().map(|a| a.bypass()).collect();
        let direct = spec.keys.direct();
        let route = if direct {
            Route::Direct(DirectTable::new(spec.keys.types(), spec.sizes.direct_slots))
        } else {
            Route::Hashed
        };
        let mut counters = Counters::default();
        counters.uses(spec.keys.kind());
        let keyless = spec.keys.types().is_empty();
        Ok(Self {
            route,
            table: spec.keys.table(),
            states,
            bypass: (!keyless && !bypass.contains(&Bypass::Never)).then_some(bypass),
            waiting: Vec::new(),
            waiting_rows: 0,
            blocks: Vec::new(),
            blocks_bytes: 0,
            seen: Seen::default(),
            may_grow: true,
            grant,
            counters,
            groups: Vec::new(),
            hashes: Vec::new(),
            starts: Vec::new(),
            runs: Vec::new(),
            spec,
        })
    }

    /// What this worker counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Groups in the table now; all of them are different.
    pub fn groups(&self) -> usize {
        self.len()
    }

    /// Takes a batch in.
    pub fn push(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.counters.rows += batch.rows as u64;
        self.counters.batches += 1;
        if self.spec.keys.types().is_empty() {
            self.push_keyless(batch)?;
        } else if let Route::Bypass { rows_left } = self.route {
            self.push_bypassed(batch)?;
            self.route = match rows_left.saturating_sub(batch.rows) {
                0 => Route::Hashed,
                rows_left => Route::Bypass { rows_left },
            };
        } else {
            self.push_looked_up(batch)?;
            self.decide(batch)?;
        }
        let held = self.bytes();
        self.counters.holds(held);
        self.grant.hold(held)
    }

    /// No GROUP BY: one group, and kernels over whole columns.
    fn push_keyless(&mut self, batch: &Batch) -> Result<()> {
        let mut lap = Lap::start();
        let keys = EncodedKeys::None(batch.rows);
        self.groups.clear();
        self.table.assign(keys.rows(0..1), &[0], &mut self.groups)?;
        for (states, arguments) in self.states.iter_mut().zip(&batch.arguments) {
            states.update(
                &arguments.columns,
                arguments.filter.as_ref(),
                Groups::One(batch.rows),
                1,
            )?;
        }
        lap.end(&mut self.counters.update_ns);
        Ok(())
    }

    fn push_looked_up(&mut self, batch: &Batch) -> Result<()> {
        let mut lap = Lap::start();
        let before = self.len();
        self.groups.clear();
        let direct = match &mut self.route {
            Route::Direct(direct) => direct.assign(&batch.keys, &mut self.groups).is_ok(),
            Route::Hashed | Route::Bypass { .. } => false,
        };
        if !direct {
            self.leave_direct()?;
            let (hashes, starts) = (&mut self.hashes, &mut self.starts);
            let keys = self
                .spec
                .keys
                .encode_runs(&batch.keys, batch.rows, hashes, starts)?;
            lap.end(&mut self.counters.hash_ns);
            if starts.is_empty() {
                self.table.assign(keys.all(), hashes, &mut self.groups)?;
            } else {
                self.runs.clear();
                self.table.assign(keys.all(), hashes, &mut self.runs)?;
                runs::expand(&self.runs, starts, batch.rows, &mut self.groups);
            }
            self.counters.looked_up += hashes.len() as u64;
        }
        lap.end(&mut self.counters.assign_ns);
        let total = self.len();
        for (states, arguments) in self.states.iter_mut().zip(&batch.arguments) {
            let groups = Groups::Ids(&self.groups);
            states.update(&arguments.columns, arguments.filter.as_ref(), groups, total)?;
        }
        lap.end(&mut self.counters.update_ns);
        self.see(batch.rows as u64, (total - before) as u64);
        Ok(())
    }

    fn see(&mut self, rows: u64, new_groups: u64) {
        if self.seen.window_rows >= WINDOW_ROWS {
            (self.seen.window_rows, self.seen.window_groups) = (0, 0);
        }
        self.seen.rows += rows;
        self.seen.groups += new_groups;
        self.seen.window_rows += rows;
        self.seen.window_groups += new_groups;
    }

    /// The range outgrew the array: known groups keep their ids in the hashed table.
    fn leave_direct(&mut self) -> Result<()> {
        let Route::Direct(direct) = &mut self.route else {
            return Ok(());
        };
        self.counters.widened += direct.widened() as u64;
        let groups = direct.len();
        let columns = direct.drain()?;
        let keys = self.spec.keys.encode(&columns, groups, &mut self.hashes)?;
        let mut ids = Vec::with_capacity(groups);
        self.table.assign(keys.all(), &self.hashes, &mut ids)?;
        debug_assert!(
            ids.iter().enumerate().all(|(at, id)| id.0 as usize == at),
            "distinct keys keep their order"
        );
        self.route = Route::Hashed;
        self.counters.uses(self.spec.keys.hashed_kind());
        Ok(())
    }

    fn decide(&mut self, batch: &Batch) -> Result<()> {
        if self.spec.keys.types().is_empty() {
            return Ok(());
        }
        self.seen.appended_bytes = self.states.iter().map(|s| s.appended_bytes()).sum();
        self.seen.bytes = self.used_bytes();
        let bounds = Bounds {
            hot_bytes: self.spec.sizes.hot_bytes,
            grown_bytes: self.spec.sizes.grown_bytes,
            may_bypass: self.bypass.is_some() && batch.arguments.iter().all(Arguments::mix),
            may_grow: self.may_grow,
        };
        let decision = policy::decide(self.seen, bounds);
        let grows = matches!(decision, Decision::Grow { .. } | Decision::Shed);
        if self.seen.expected_groups.is_some() && !grows {
            self.may_grow = false;
        }
        match decision {
            Decision::Keep => Ok(()),
            Decision::Grow { expected_groups } => {
                self.seen.expected_groups = Some(expected_groups);
                Ok(())
            }
            Decision::Flush | Decision::Shed => self.flush(),
            Decision::Bypass => {
                self.flush()?;
                self.counters.uses("partitions");
                self.route = Route::Bypass {
                    rows_left: self.spec.sizes.bypass_rows,
                };
                Ok(())
            }
        }
    }

    /// Rows as records of their partitions.
    fn push_bypassed(&mut self, batch: &Batch) -> Result<()> {
        let mut lap = Lap::start();
        let mut hashes = Vec::with_capacity(batch.rows);
        let keys = self
            .spec
            .keys
            .encode(&batch.keys, batch.rows, &mut hashes)?;
        lap.end(&mut self.counters.hash_ns);
        let bypass = self
            .bypass
            .as_ref()
            .expect("the route is taken only where all aggregates allow it");
        let mut aggregates = Vec::with_capacity(bypass.len());
        for ((how, states), arguments) in bypass.iter().zip(&self.states).zip(&batch.arguments) {
            aggregates.push(match how {
                Bypass::Convert => {
                    Records::Partial(states.convert(&arguments.columns, arguments.filter.as_ref())?)
                }
                Bypass::Rows | Bypass::Never => Records::Rows(Arguments::clone(arguments)),
            });
        }
        self.counters.bypassed_rows += batch.rows as u64;
        self.waiting_rows += batch.rows;
        self.waiting.push(Unsorted {
            keys,
            hashes,
            aggregates,
            distinct: false,
        });
        lap.end(&mut self.counters.partition_ns);
        if self.waiting_rows >= self.spec.sizes.block_rows {
            self.sort_waiting()?;
        }
        Ok(())
    }

    fn sort_waiting(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            let parts = std::mem::take(&mut self.waiting);
            self.waiting_rows = 0;
            self.add_block(parts)?;
        }
        Ok(())
    }

    fn add_block(&mut self, parts: Vec<Unsorted>) -> Result<()> {
        let mut lap = Lap::start();
        let block = Block::sort(
            parts,
            self.spec.sizes.partitions.ilog2(),
            self.spec.keys.views(),
        )?;
        self.blocks_bytes += block.bytes();
        self.blocks.push(block);
        self.counters.blocks += 1;
        lap.end(&mut self.counters.partition_ns);
        Ok(())
    }

    /// Empties the table into a block.
    fn flush(&mut self) -> Result<()> {
        let total = self.len();
        if total == 0 {
            return Ok(());
        }
        let DistinctKeys { keys, hashes } = match &mut self.route {
            Route::Direct(direct) => {
                let columns = direct.drain()?;
                let mut hashes = Vec::with_capacity(total);
                DistinctKeys {
                    keys: self.spec.keys.encode(&columns, total, &mut hashes)?,
                    hashes,
                }
            }
            Route::Hashed | Route::Bypass { .. } => self.table.drain(),
        };
        let mut lap = Lap::start();
        let mut aggregates = Vec::with_capacity(self.states.len());
        for states in &mut self.states {
            aggregates.push(Records::Partial(states.drain_partial(total)?));
        }
        lap.end(&mut self.counters.partition_ns);
        self.seen = Seen::default();
        self.counters.flushes += 1;
        self.counters.built_groups += total as u64;
        self.add_block(vec![Unsorted {
            keys,
            hashes,
            aggregates,
            distinct: true,
        }])
    }

    /// All input is seen: everything becomes blocks.
    pub fn finish(mut self) -> Result<Built> {
        self.sort_waiting()?;
        if let Route::Direct(direct) = &self.route {
            self.counters.widened += direct.widened() as u64;
        }
        self.flush()?;
        self.counters.probes = self.counters.looked_up + self.table.collisions();
        self.counters.holds(self.blocks_bytes);
        self.grant.hold(self.blocks_bytes)?;
        Ok(Built {
            blocks: self.blocks,
            counters: self.counters,
            grant: self.grant,
        })
    }

    /// Groups in the table.
    fn len(&self) -> usize {
        match &self.route {
            Route::Direct(direct) => direct.len(),
            Route::Hashed | Route::Bypass { .. } => self.table.len(),
        }
    }

    fn table_bytes(&self) -> usize {
        let direct = match &self.route {
            Route::Direct(direct) => direct.bytes(),
            Route::Hashed | Route::Bypass { .. } => 0,
        };
        direct + self.table.bytes() + self.states.iter().map(|s| s.bytes()).sum::<usize>()
    }

    /// What lookups and updates touch.
    fn used_bytes(&self) -> usize {
        let table = match &self.route {
            Route::Direct(direct) => direct.used_bytes(),
            Route::Hashed | Route::Bypass { .. } => self.table.used_bytes(),
        };
        table + self.states.iter().map(|s| s.used_bytes()).sum::<usize>()
    }

    fn bytes(&self) -> usize {
        let waiting: usize = self
            .waiting
            .iter()
            .map(|part| part.keys.bytes() + part.hashes.capacity() * 8)
            .sum();
        self.table_bytes() + self.blocks_bytes + waiting
    }
}
