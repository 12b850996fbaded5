//! Which rows of a frame EXCLUDE leaves.
//!
//! In: the frame of each row of a partition, one after the other, and the keys of the window's ORDER BY. Out: the rows left, as ranges.
//! Invariant: peers are rows with equal keys, NULL being equal to NULL. Equal floats come in one form (optimizer/fixes/equal_values.rs).
//! Not here: what is made of the rows (aggregates.rs, values.rs).

use std::ops::Range;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::partition;
use datafusion::common::Result;

use super::Exclusion;

/// The rows before those that are left out, the current row if it alone stays, and the rows behind.
pub(super) type Left = [Range<usize>; 3];

/// The frames of a partition's rows.
#[derive(Debug)]
pub(super) struct Frames {
    exclusion: Exclusion,
    /// The current row.
    row: usize,
    /// Rows with equal keys, once they are known.
    peers: Vec<Range<usize>>,
    /// Where among them the current row is.
    group: usize,
}

impl Frames {
    pub(super) fn new(exclusion: Exclusion) -> Frames {
        Frames {
            exclusion,
            row: 0,
            peers: Vec::new(),
            group: 0,
        }
    }

    /// What is left of the next row's frame.
    pub(super) fn next(&mut self, keys: &[ArrayRef], frame: &Range<usize>) -> Result<Left> {
        let row = self.row;
        self.row += 1;
        let out = match self.exclusion {
            Exclusion::CurrentRow => row..row + 1,
            Exclusion::Group | Exclusion::Ties => self.peers(keys, row)?,
            Exclusion::All | Exclusion::Others => 0..usize::MAX,
        };
        let alone = match self.exclusion {
            Exclusion::Ties | Exclusion::Others => row..row + 1,
            Exclusion::CurrentRow | Exclusion::Group | Exclusion::All => row..row,
        };
        let within = |rows: Range<usize>| {
            let start = rows.start.max(frame.start);
            start..rows.end.min(frame.end).max(start)
        };
        Ok([
            within(frame.start..out.start),
            within(alone),
            within(out.end..frame.end),
        ])
    }

    /// The peers of a row that comes behind those before.
    fn peers(&mut self, keys: &[ArrayRef], row: usize) -> Result<Range<usize>> {
        // A rule may drop keys that are constant.
        if keys.is_empty() {
            return Ok(0..usize::MAX);
        }
        if self.peers.is_empty() {
            self.peers = partition(keys)?.ranges();
        }
        let rest = self.peers.iter().skip(self.group);
        self.group += rest.take_while(|peers| peers.end <= row).count();
        Ok(self.peers.get(self.group).cloned().unwrap_or(row..row + 1))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Int64Array;

    use super::*;

    fn left(exclusion: Exclusion, frames: &[Range<usize>]) -> Vec<Vec<usize>> {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![
            Some(1),
            Some(2),
            Some(2),
            None,
            None,
        ]));
        let mut of = Frames::new(exclusion);
        let frames = frames.iter();
        let left = frames.map(|frame| of.next(std::slice::from_ref(&keys), frame).expect("keys"));
        left.map(|left| left.into_iter().flatten().collect())
            .collect()
    }

    #[test]
    fn peers_are_left_out() {
        let whole = [0..5, 0..5, 0..5, 0..5, 0..5];
        let of = |exclusion| left(exclusion, &whole);
        assert_eq!(of(Exclusion::CurrentRow)[1], [0, 2, 3, 4]);
        assert_eq!(
            of(Exclusion::Group)[1..4],
            [[0, 3, 4], [0, 3, 4], [0, 1, 2]]
        );
        assert_eq!(of(Exclusion::Ties)[2..4], [[0, 2, 3, 4], [0, 1, 2, 3]]);
    }

    #[test]
    fn a_row_that_is_in_no_frame_stays_out() {
        let behind = [1..3, 2..4, 3..5, 4..5, 5..5];
        let none: [usize; 0] = [];
        let of = |exclusion| left(exclusion, &behind);
        assert_eq!(of(Exclusion::CurrentRow)[0], [1, 2]);
        assert_eq!(of(Exclusion::Ties)[1], [3]);
        assert_eq!(of(Exclusion::Group)[3], none);
        assert_eq!(of(Exclusion::Ties)[4], none);
    }
}
