//! min(x) and max(x) of strings and binary, in the order of their bytes.
//!
//! In: string, binary and view columns, fixed-size binary, codes of dictionaries of these. Out: the type that was asked for,
//! NULL without values. Partial: binary views onto the arena of the states.
//! Not here: how strings are held (`byte_values`), ranks of codes (`ranked`).

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{AnyDictionaryArray, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;

use super::byte_values::{ByteValues, with_byte_values};
use super::min_max::Order;
use super::native::native_of_codes;
use super::ranked::{Ranked, codes_of, is_worth_ranks};
use super::rows::Rows;
use super::{Aggregate, GroupStates, Groups};
use crate::error::Result;
use crate::keys::is_bytes;
use crate::keys::{decoded, same_dictionary};

/// Rows between the one that is read and the one whose string is asked for; its entry is asked for as many earlier.
const AHEAD: usize = 8;

/// `min` or `max` of a string or binary column, as `result_type`; `None` for other types.
pub(super) fn min_max_bytes<O: Order>(
    name: &str,
    data_type: &DataType,
    result_type: &DataType,
) -> Option<Arc<dyn Aggregate>> {
    let values = decoded(data_type);
    let is_like = is_bytes(result_type) && values.is_string() == result_type.is_string();
    let data_type = result_type.clone();
    let make = move || MinMaxBytes::<O> {
        data_type: data_type.clone(),
        best: ByteValues::default(),
        ranked: None,
        last: None,
        order: PhantomData,
    };
    (is_bytes(values) && is_like).then(|| native_of_codes(name, result_type, make))
}

struct MinMaxBytes<O> {
    data_type: DataType,
    /// Of all rows but those that `ranked` has taken in.
    best: ByteValues,
    ranked: Option<Ranked>,
    /// The dictionary of the last batch, which gets ranks when it comes again: some live for one batch.
    last: Option<ArrayRef>,
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

    fn offer_codes(
        &mut self,
        coded: &dyn AnyDictionaryArray,
        rows: &Rows<'_>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let (dictionary, codes) = (coded.values(), codes_of(coded));
        if is_worth_ranks(dictionary.len(), rows.count(), total) {
            let ranked = self.ranked.as_ref();
            let is_ranked = ranked.is_some_and(|ranked| ranked.is_of(dictionary));
            let last = self.last.replace(ArrayRef::clone(dictionary));
            let comes_again = || last.is_some_and(|last| same_dictionary(&last, dictionary));
            if !is_ranked && comes_again() {
                self.settle_ranks()?;
                self.ranked = Some(Ranked::new::<O>(dictionary));
            }
            if let Some(ranked) = &mut self.ranked
                && ranked.is_of(dictionary)
            {
                ranked.offer(&codes, rows, total);
                return Ok(());
            }
        }
        with_byte_values!(dictionary, |value| {
            let value = |row| value(codes[row] as usize);
            match groups {
                Groups::Ids(_) => self.offer(rows, value),
                Groups::One(_) => self.offer_to_one(rows, value),
            }
        })
    }

    /// Offers what the rows of the last dictionary came to.
    fn settle_ranks(&mut self) -> Result<()> {
        let Some(ranked) = &mut self.ranked else {
            return Ok(());
        };
        let found = ranked.take();
        with_byte_values!(ranked.dictionary(), |value| {
            for (group, at) in found {
                let new = value(at);
                if self.best.is_improved_by::<O>(group, new) {
                    self.best.set(group, new)?;
                }
            }
        });
        self.best.settle();
        Ok(())
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
        match columns[0].as_any_dictionary_opt() {
            Some(coded) => self.offer_codes(coded, &rows, groups, total)?,
            None => with_byte_values!(&columns[0], |value| match groups {
                Groups::Ids(_) => self.offer(&rows, value),
                Groups::One(_) => self.offer_to_one(&rows, value),
            })?,
        }
        self.best.settle();
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        self.update(partial, None, groups, total)
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        self.settle_ranks()?;
        Ok(vec![self.best.take_partial(total)?])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        self.settle_ranks()?;
        self.best.take(total, &self.data_type)
    }

    fn bytes(&self) -> usize {
        self.best.bytes() + self.ranked.as_ref().map_or(0, Ranked::bytes)
    }

    fn used_bytes(&self) -> usize {
        self.best.bytes() + self.ranked.as_ref().map_or(0, Ranked::group_bytes)
    }
}
