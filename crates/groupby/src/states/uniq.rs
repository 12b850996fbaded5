//! uniq(x, ...): about how many distinct values, or tuples of several columns, a group has.
//!
//! In: columns of any types that can be keys. Out: UInt64, 0 without values. Up to 6,144 values are
//! counted by their codes, which is exact but for one in 2^31 pairs; more with a standard error of
//! 0.57 % (`sketch`).
//! Partial: one binary view per group, the same on every machine (`sketches`).
//! Invariant: a row with a NULL does not count; -0.0 is 0.0, all NaN are one value, a dictionary's
//! values are those of its keys. The result depends on the set of values alone.
//! Not here: the sketches.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, UInt64Array};
use arrow::buffer::{Buffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use grouse_kernels::hash;

use super::native::native;
use super::rows::Rows;
use super::sketch::{self, Registers};
use super::sketches::Sketches;
use super::{Aggregate, GroupStates, Groups};
use crate::error::{Error, Result};
use crate::keys::TableKind;
use crate::keys::{KeyLayout, decoded, fetch};

/// `uniq` of columns of these types; `None` if one of them cannot be a key.
pub fn uniq(name: &str, types: &[DataType]) -> Option<Arc<dyn Aggregate>> {
    // NULLs never get here, so that the hash of a value does not depend on whether its column may
    // hold any.
    let fields: Vec<_> = types
        .iter()
        .map(|data_type| Arc::new(Field::new("x", decoded(data_type).clone(), false)))
        .collect();
    let layout = KeyLayout::new(&fields, TableKind::Auto).ok()?;
    let shared = Arc::new(layout);
    let make = move || Uniq {
        layout: Arc::clone(&shared),
        held: UniqGroups::default(),
    };
    (!types.is_empty()).then(|| native(name, &DataType::UInt64, make))
}

struct Uniq {
    layout: Arc<KeyLayout>,
    held: UniqGroups,
}

#[derive(Default)]
struct UniqGroups {
    sketches: Sketches,
    recent: Recent,
    hashes: Vec<u64>,
    codes: Vec<u32>,
}

/// Codes that groups had a moment ago and need not get again: where values repeat, most rows end here.
#[derive(Default)]
struct Recent {
    pairs: Vec<u64>,
    /// Batches to come that are not worth a look.
    pause: u32,
}

/// Pairs of group and code that are remembered: 128 KiB of a second-level cache. One group of 1,000
/// values takes 9.6 ns a row, 12.5 with 2,048 pairs, 20 with none; of 6,000 values 23, 50 and 46.
const RECENT: usize = 16 << 10;
/// States between asking for one and merging it: small ones lie anywhere, and are few instructions each.
const STATES_AHEAD: usize = 8;
/// Batches without a look after one in which less than half was known.
const PAUSE: u32 = 31;

impl Recent {
    /// True if the next batch is looked at.
    fn begin(&mut self) -> bool {
        let looks = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        if looks {
            // No code is 0, so no pair is.
            self.pairs.resize(RECENT, 0);
        }
        looks
    }

    #[inline(always)]
    fn is_new(&mut self, group: usize, code: u32) -> bool {
        let pair = (group as u64) << 32 | u64::from(code);
        let mixed = code.wrapping_add((group as u32).wrapping_mul(0x9e37_79b1));
        let slot = (mixed >> (u32::BITS - RECENT.ilog2())) as usize;
        std::mem::replace(&mut self.pairs[slot], pair) != pair
    }

    fn end(&mut self, rows: usize, new: usize) {
        if new * 2 > rows {
            self.pause = PAUSE;
        }
    }
}

impl Uniq {
    /// One code per row, whatever it is worth where a column is NULL.
    fn encode(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        let columns = columns
            .iter()
            .map(|column| match decoded(column.data_type()) {
                values if values == column.data_type() => Ok(Arc::clone(column)),
                values => cast(column, values),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let UniqGroups { hashes, codes, .. } = &mut self.held;
        codes.clear();
        if let Some(words) = one_word(&columns) {
            let hashes = words.iter().map(|word| hash::hash_words(&[*word]));
            codes.extend(hashes.map(|hash| sketch::code_of(hash::mix(hash))));
            return Ok(());
        }
        self.layout.encode(&columns, rows, hashes)?;
        codes.extend(hashes.iter().map(|hash| sketch::code_of(hash::mix(*hash))));
        Ok(())
    }
}

/// The words of one integer column of 8 bytes, which are its keys: no need to copy them.
fn one_word(columns: &[ArrayRef]) -> Option<ScalarBuffer<u64>> {
    let [column] = columns else { return None };
    let is_word =
        column.data_type().primitive_width() == Some(8) && !column.data_type().is_floating();
    is_word.then(|| {
        let data = column.to_data();
        ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
    })
}

impl GroupStates for Uniq {
    fn update(
        &mut self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: Groups<'_>,
        total: usize,
    ) -> Result<()> {
        let rows = Rows::new(columns, filter, groups);
        self.held.sketches.grow(total);
        if rows.live() == 0 {
            return Ok(());
        }
        self.encode(columns, rows.count())?;
        let UniqGroups {
            sketches,
            recent,
            codes,
            ..
        } = &mut self.held;
        let looks = recent.begin();
        let mut new = 0;
        match groups {
            Groups::Ids(_) if looks => rows.for_each(codes, |group, code| {
                if recent.is_new(group, code) {
                    new += 1;
                    sketches.push(group, code);
                }
            }),
            Groups::Ids(_) => rows.for_each(codes, |group, code| sketches.push(group, code)),
            Groups::One(_) if rows.is_whole_column() && !looks => sketches.extend(0, codes),
            Groups::One(_) => {
                let mut live = Vec::with_capacity(rows.live());
                rows.for_each(codes, |_, code| {
                    if !looks || recent.is_new(0, code) {
                        live.push(code);
                    }
                });
                new = live.len();
                sketches.extend(0, &live);
            }
        }
        sketches.arrive();
        if looks {
            recent.end(rows.live(), new);
        }
        Ok(())
    }

    fn merge(&mut self, partial: &[ArrayRef], groups: Groups<'_>, total: usize) -> Result<()> {
        let rows = Rows::new(partial, None, groups);
        let UniqGroups {
            sketches, codes, ..
        } = &mut self.held;
        sketches.grow(total);
        let states = partial[0].as_binary_view();
        let mut well_formed = true;
        rows.for_each_row(|group, row| {
            if let Some(&ahead) = states.views().get(row + STATES_AHEAD) {
                fetch(ahead, states.data_buffers());
            }
            let state = states.value(row);
            if let Ok(registers) = <&Registers>::try_from(state) {
                well_formed &= sketch::are_registers(registers);
                return sketches.unite(group, registers);
            }
            let (listed, rest) = state.as_chunks();
            codes.clear();
            codes.extend(listed.iter().map(|code| u32::from_le_bytes(*code)));
            well_formed &= rest.is_empty() & sketch::are_codes(codes);
            sketches.extend(group, codes);
        });
        match well_formed {
            true => Ok(()),
            false => Err(Error::Malformed("uniq")),
        }
    }

    fn drain_partial(&mut self, total: usize) -> Result<Vec<ArrayRef>> {
        let (views, slabs) = std::mem::take(&mut self.held).sketches.into_views(total);
        let buffers: Vec<_> = slabs.into_iter().map(Buffer::from_vec).collect();
        let states = BinaryViewArray::try_new(views.into(), buffers, None)?;
        Ok(vec![Arc::new(states)])
    }

    fn drain_final(&mut self, total: usize) -> Result<ArrayRef> {
        let mut sketches = std::mem::take(&mut self.held).sketches;
        sketches.grow(total);
        let counts = (0..total).map(|group| sketches.count(group));
        Ok(Arc::new(UInt64Array::from_iter_values(counts)))
    }

    fn bytes(&self) -> usize {
        let UniqGroups {
            sketches,
            recent,
            hashes,
            codes,
        } = &self.held;
        sketches.bytes()
            + recent.pairs.capacity() * 8
            + hashes.capacity() * 8
            + codes.capacity() * 4
    }

    fn used_bytes(&self) -> usize {
        self.held.sketches.hot_bytes()
    }
}
