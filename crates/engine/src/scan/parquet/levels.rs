//! How many values the rows of a nested Parquet column have.
//!
//! In: repetition levels as pages hold them. Out: the most values that a batch of rows can have.
//! Invariant: runs are counted and not written out, so that a billion levels in three bytes cost no more than these.
//! Not here: pages (page_headers.rs), and what is refused (decoding.rs).

use crate::scan::parquet::page_headers::unsigned;

/// Counts values batch by batch.
#[derive(Debug)]
pub(super) struct BatchValues {
    /// Rows of a batch.
    batch_rows: u64,
    rows: u64,
    values: u64,
    most: u64,
}

impl BatchValues {
    /// Of batches of so many rows.
    pub(super) fn of_batches(batch_rows: u64) -> BatchValues {
        BatchValues {
            batch_rows: batch_rows.max(1),
            rows: 0,
            values: 0,
            most: 0,
        }
    }

    /// The most values of two neighbouring batches: one may begin within another that is counted.
    pub(super) fn most(&self) -> u64 {
        self.most.max(self.values).saturating_mul(2)
    }

    /// So many values, each of which begins a row.
    fn rows(&mut self, mut count: u64) {
        let missing = self.batch_rows - self.rows;
        if count >= missing {
            self.most = self.most.max(self.values + missing);
            count -= missing;
            if count >= self.batch_rows {
                self.most = self.most.max(self.batch_rows);
                count %= self.batch_rows;
            }
            (self.rows, self.values) = (0, 0);
        }
        self.rows += count;
        self.values += count;
    }

    /// So many values that go on a row.
    fn others(&mut self, count: u64) {
        self.values = self.values.saturating_add(count);
    }

    /// A page of `values` levels of up to `level_max`, in runs; `None` if they are none.
    pub(super) fn page(&mut self, mut runs: &[u8], values: u64, level_max: i16) -> Option<()> {
        let width = u64::from(i16::BITS - level_max.leading_zeros());
        let mut left = values;
        while left > 0 {
            let head = unsigned(&mut runs)?;
            if head & 1 == 0 {
                let count = left.min(head >> 1);
                let (level, rest) = runs.split_at_checked(width.div_ceil(8) as usize)?;
                runs = rest;
                match level.iter().all(|byte| *byte == 0) {
                    true => self.rows(count),
                    false => self.others(count),
                }
                left -= count;
                if count == 0 {
                    return None;
                }
            } else {
                let bytes = usize::try_from((head >> 1).checked_mul(width)?).ok()?;
                // The last run may end with the page.
                let (packed, rest) = runs.split_at_checked(bytes).unwrap_or((runs, &[]));
                runs = rest;
                let count = left.min(packed.len() as u64 * 8 / width.max(1));
                self.packed(packed, count, width);
                left -= count;
                if count == 0 {
                    return None;
                }
            }
        }
        Some(())
    }

    fn packed(&mut self, packed: &[u8], count: u64, width: u64) {
        let mask = (1_u64 << width) - 1;
        for value in 0..count {
            let bit = (value * width) as usize;
            let mut word = 0_u64;
            for (nth, byte) in packed[bit / 8..].iter().take(4).enumerate() {
                word |= u64::from(*byte) << (8 * nth);
            }
            match word >> (bit % 8) & mask {
                0 => self.rows(1),
                _ => self.others(1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH_ROWS: u64 = 8192;

    fn most(pages: &[(&[u8], u64)], level_max: i16) -> Option<u64> {
        let mut counted = BatchValues::of_batches(BATCH_ROWS);
        for (runs, values) in pages {
            counted.page(runs, *values, level_max)?;
        }
        Some(counted.most())
    }

    fn number(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 127 {
            bytes.push(number as u8 & 127 | 128);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn run(count: u64, level: u8) -> Vec<u8> {
        [number(count << 1), vec![level]].concat()
    }

    #[test]
    fn a_long_row_has_all_its_values() {
        let page = [run(1, 0), run(1 << 30, 1)].concat();
        assert_eq!(
            most(&[(&page, 1 + (1 << 30))], 1),
            Some(2 * (1 + (1 << 30)))
        );
        // The row goes on in the next page.
        let next = run(1 << 30, 1);
        let all = [(page.as_slice(), 1 + (1 << 30)), (&next, 1 << 30)];
        assert_eq!(most(&all, 1), Some(2 * (1 + (2 << 30))));
    }

    #[test]
    fn many_short_rows_are_a_batch_at_a_time() {
        let page = run(1 << 30, 0);
        assert_eq!(most(&[(&page, 1 << 30)], 1), Some(2 * BATCH_ROWS));
        // Rows of four values, eight levels a byte: 0111 0111 from the lowest bit on.
        let groups = 10_000_u64;
        let page = [number(groups << 1 | 1), vec![0b1110_1110; groups as usize]].concat();
        assert_eq!(most(&[(&page, groups * 8)], 1), Some(2 * 4 * BATCH_ROWS));
        // The same with two bits a level.
        let page = [
            number(groups << 1 | 1),
            vec![0b0101_0100; 2 * groups as usize],
        ]
        .concat();
        assert_eq!(most(&[(&page, groups * 8)], 2), Some(2 * 4 * BATCH_ROWS));
    }

    #[test]
    fn what_ends_too_early_is_not_counted() {
        assert_eq!(most(&[(&[], 1)], 1), None);
        assert_eq!(most(&[(&[0, 0], 1)], 1), None);
        assert_eq!(most(&[(&[3], 9)], 1), None);
        assert_eq!(most(&[(&[255; 12], 9)], 1), None);
    }
}
