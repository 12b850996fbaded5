//! Group -> aggregate: one `GroupStates` holds the states of one aggregate for all groups of a table.
//!
//! In: argument columns with the group of each row, or partial states. Out: partial states or results.
//! Invariant: one state per group id below `total`; after a drain there are none and the instance
//! can be used again.
//! Not here: keys, memory limits (the build asks `bytes`).

mod count;
mod sum;
mod avg;
mod avg_integers;
mod variance;
mod covariance;
mod quantile;
mod t_digest;
mod number;
mod values_by_group;
mod min_max;
mod min_max_bytes;
mod kept;
mod arg_rows;
mod arg_extreme;
mod first_last;
mod listed;
pub mod top_rows;
mod top_values;
mod uniq;
mod native;
mod partial;
mod format;
mod struct_columns;
mod fixed;
mod rows;
mod lanes;
mod fold;
mod mean;
mod pre_aggregation;
mod per_group;
mod validity;
mod wide;
mod byte_values;
mod ranked;
mod sketches;
mod sketch;
mod buddy;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;

use crate::batch::Arguments;
use crate::error::Result;
use crate::keys::GroupId;

pub use arg_extreme::arg_extreme;
pub use avg::{avg, means};
pub use avg_integers::nearest_mean;
pub use count::count;
pub use covariance::{Relation, covariance};
pub use first_last::{End, NullRows, first_last};
pub use format::{StateFormat, flat_states, flat_type};
pub use listed::{ListedRows, Listing, listed};
pub use min_max::{Extreme, min_max};
pub use native::in_order;
pub use partial::partial;
pub use pre_aggregation::{CodeSums, PreAggregated, PreAggregator};
pub use quantile::{Quantile, median, percentile, quantile_of};
pub(crate) use rows::true_rows;
pub use sum::sum;
pub use t_digest::{approximate_percentile, quantiles};
pub use top_rows::top_rows;
pub use top_values::{TopValues, top_values};
pub use uniq::uniq;
pub use variance::{Spread, variance};
pub use wide::{Nearest, RoundedMean};

/// The group of each row of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Groups<'a> {
    /// `ids[row]` is the group of `row`.
    Ids(&'a [GroupId]),
    /// All rows, that many, belong to group 0 (no GROUP BY).
    One(usize),
}

impl Groups<'_> {
    /// The number of each row's group.
    fn to_vec(self) -> Vec<u32> {
        match self {
            Self::Ids(ids) => ids.iter().map(|id| id.0).collect(),
            Self::One(rows) => vec![0; rows],
        }
    }
}

/// How rows reach the states of an aggregate when the key table is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    /// The merge may mix `update` and `merge` on one instance: rows travel as they are.
    Rows,
    /// An instance gets updates or merges, never both: rows travel as partial states
    /// (`GroupStates::convert`).
    Convert,
    /// Rows have to go through a table.
    Never,
}

/// One aggregate of a query; makes its states.
pub trait Aggregate: Send + Sync + std::fmt::Debug {
    /// The aggregate as the query wrote it, for messages.
    fn name(&self) -> &str;
    /// Type of the result column.
    fn result_type(&self) -> DataType;
    /// New states for an empty table.
    fn states(&self) -> Result<Box<dyn GroupStates>>;
    /// The version of the columns of its partial states: another one where a reader of the older would take them for something else.
    fn state_version(&self) -> u16 {
        1
    }
    /// What may be done with rows that skip the key table.
    fn bypass(&self) -> Bypass {
        Bypass::Rows
    }
    /// True if states are their rows as they came: to combine some of them early only copies them once more.
    fn keeps_rows(&self) -> bool {
        false
    }
    /// What of their arguments such rows carry, where they travel as they are.
    fn carried(&self, arguments: &Arguments) -> Result<Arguments> {
        Ok(arguments.clone())
    }
    /// True if what they carry of several batches can stand in one column.
    fn carried_mix(&self, arguments: &Arguments) -> bool {
        arguments.mix()
    }
}

/// One aggregate for all groups of a table: group ids are dense from 0.
///
/// Every call that takes `total` first makes sure that states `0..total` exist (new ones empty).
pub trait GroupStates: Send {
    /// Rows into states: `groups` names the state of each row; rows where `filter` is not true
    /// are skipped (their groups exist all the same).
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()>;

    /// Partial states (as `drain_partial` made them) into states.
    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()>;

    /// What the rows of each code of few add up to, without touching any group; `None` where they have to be looked at one by
    /// one. The columns have no NULLs.
    fn pre_aggregate(
        &self,
        columns: &[ArrayRef],
        by_code: &mut PreAggregator<'_>,
    ) -> Result<Option<CodeSums>> {
        let _ = (columns, by_code);
        Ok(None)
    }

    /// What `pre_aggregate` made into states; instances that get it get updates, too.
    fn add_pre_aggregated(&mut self, pre_aggregated: PreAggregated<'_>, total: usize) {
        let _ = (pre_aggregated, total);
        unreachable!("called only with what `pre_aggregate` made")
    }

    /// One partial state per row, without touching any group; only where the aggregate says
    /// `Bypass::Convert`.
    fn convert(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let _ = (columns, filter);
        unreachable!("convert is called only for aggregates that ask for it")
    }

    /// All `total` states in group order as columns; the instance is empty afterwards.
    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>>;

    /// All `total` results in group order; the instance is empty afterwards.
    fn drain_final(&mut self, total: usize) -> Result<ArrayRef>;

    /// Bytes held.
    fn bytes(&self) -> usize;

    /// Those of `bytes` that an update appends to: they grow with the rows and not with the groups, and what was
    /// appended before is not touched again.
    fn appended_bytes(&self) -> usize {
        0
    }

    /// Bytes that updates touch at random and a cache has to hold. These are all but what is appended to, fewer in states
    /// that gather what goes to the rest of them.
    fn used_bytes(&self) -> usize {
        self.bytes() - self.appended_bytes()
    }
}
