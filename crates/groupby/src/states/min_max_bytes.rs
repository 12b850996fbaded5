//! min(x) and max(x) of strings and binary, in the order of their bytes.
//!
//! In: string, binary and view columns, fixed-size binary. Out: the same type, NULL without values.
//! Partial: binary views onto the arena of the states.
//! Not here: how strings are held (`byte_values`).

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;

use super::byte_values::{ByteValues, is_bytes, with_bytes};
use super::min_max::Order;
use super::native::native;
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;

/// Rows between the one that is read and the one whose string is asked for; its entry is asked for as many earlier.
const AHEAD: usize = 8;

/// `min` or `max` of a string or binary column; `None` for other types.
pub(super) fn min_max_bytes<O: Order>(
    name: &str,
    data_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let result_type = data_type.clone();
    let make = move || MinMaxBytes::<O> {
        data_type: result_type.clone(),
        best: ByteValues::default(),
        order: PhantomData,
    };
    is_bytes(data_type).then(|| native(name, data_type, make))
}

struct MinMaxBytes<O> {
    data_type: DataType,
    best: ByteValues,
    order: PhantomData<O>,
}

impl<O: Order> MinMaxBytes<O> {
    fn offer<'a>(&mut self, rows: &Rows<'_>, value: impl Fn(usize) -> &'a [u8]) -> Result<()> {
        let mut result = Ok(());
        let ahead = match rows.whole() {
            Some(Groups::Ids(ids)) if self.best.are_far() => ids,
            _ => &[],
        };
        rows.for_each_row(|group, row| {
            if let Some(id) = ahead.get(row + 2 * AHEAD) {
                self.best.fetch(id.0 as usize);
                self.best.fetch_bytes(ahead[row + AHEAD].0 as usize);
            }
            let new = value(row);
            if self.best.is_improved_by::<O>(group, new)
                && let Err(error) = self.best.set(group, new)
            {
                result = Err(error);
            }
        });
        result
    }

    /// Only the batch's best value is copied.
    fn offer_to_one<'a>(
        &mut self,
        rows: &Rows<'_>,
        value: impl Fn(usize) -> &'a [u8],
    ) -> Result<()> {
        let mut best: Option<&[u8]> = None;
        rows.for_each_row(|_, row| {
            let new = value(row);
            if best.is_none_or(|best| O::is_better_bytes(new, best)) {
                best = Some(new);
            }
        });
        match best {
            Some(best) if self.best.is_improved_by::<O>(0, best) => self.best.set(0, best),
            _ => Ok(()),
        }
    }
}

impl<O: Order> GroupStates for MinMaxBytes<O> {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.best.grow(total);
        with_bytes!(&columns[0], |value| match groups {
            Groups::Ids(_) => self.offer(&rows, value),
            Groups::One(_) => self.offer_to_one(&rows, value),
        })?;
        self.best.settle();
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.update(partial, None, groups, total)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.best.take_partial(total)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.best.take(total, &self.data_type)
    }

    fn bytes(&self) -> usize {
        self.best.bytes()
    }
}
