//! Run-length encoding of keys: one lookup for a run of equal keys in neighbouring rows.
//!
//! In: encoded keys of a batch. Out: the rows at which a run begins, and the keys of those rows.
//! Invariant: a run holds equal keys only; two neighbouring runs may hold equal keys too (equal
//! long strings in different places).
//! Not here: hashes, lookups.

use super::fixed_width::{PackedKeys, is_equal, map_width};
use super::{ByteKeys, EncodedKeys, GroupId, room};

/// Pairs of neighbours that are looked at before all of them are.
const SAMPLE: usize = 256;
/// Of the sample, this share has to be equal, and as many rows have to be saved.
const SHARE_MIN: f64 = 0.25;
/// Rows written for each run, whose end the next one writes over: no branch on the length of short runs.
const WRITTEN: usize = 8;

/// The keys at the beginnings of runs, if there are few enough; `starts` is overwritten.
pub(crate) fn compress(keys: &EncodedKeys, starts: &mut Vec<u32>) -> Option<EncodedKeys> {
    Some(match keys {
        EncodedKeys::None(_) => return None,
        EncodedKeys::Packed(packed) => {
            EncodedKeys::Packed(map_width!(packed, PackedKeys(words) => PackedKeys(
                words.with_keys(firsts(&words.keys, is_equal, starts)?)
            )))
        }
        EncodedKeys::Bytes(keys) => EncodedKeys::Bytes(ByteKeys {
            views: firsts(&keys.views, u128::eq, starts)?,
            buffers: keys.buffers.clone(),
        }),
    })
}

fn firsts<T: Copy>(
    keys: &[T],
    same: impl Fn(&T, &T) -> bool,
    starts: &mut Vec<u32>,
) -> Option<Vec<T>> {
    let sample = &keys[..keys.len().min(SAMPLE)];
    let equal = sample
        .windows(2)
        .filter(|pair| same(&pair[0], &pair[1]))
        .count();
    if (equal as f64) < SHARE_MIN * SAMPLE as f64 {
        return None;
    }
    starts.resize(keys.len(), 0);
    let mut runs = 1;
    for (row, pair) in keys.windows(2).enumerate() {
        starts[runs] = row as u32 + 1;
        runs += usize::from(!same(&pair[0], &pair[1]));
    }
    if runs as f64 > (1.0 - SHARE_MIN) * keys.len() as f64 {
        return None;
    }
    starts[0] = 0;
    starts.truncate(runs);
    Some(starts.iter().map(|&row| keys[row as usize]).collect())
}

/// The group of each row from the group of each run; appended to `groups`.
pub(crate) fn expand(runs: &[GroupId], starts: &[u32], rows: usize, groups: &mut Vec<GroupId>) {
    let places = room(groups, rows + WRITTEN);
    let ends = starts[1..].iter().copied().chain([rows as u32]);
    for ((&group, &start), end) in runs.iter().zip(starts).zip(ends) {
        let (start, end) = (start as usize, end as usize);
        places[start..start + WRITTEN].copy_from_slice(&[group; WRITTEN]);
        if end > start + WRITTEN {
            places[start + WRITTEN..end].fill(group);
        }
    }
    groups.truncate(groups.len() - WRITTEN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_as_rows() {
        let rows: Vec<[u64; 1]> = (0..1000u64).map(|row| [row / 7 % 5]).collect();
        let mut starts = Vec::new();
        let keys = EncodedKeys::of_fixed_width(rows.clone(), Vec::new());
        let Some(EncodedKeys::Packed(PackedKeys::One(firsts))) = compress(&keys, &mut starts)
        else {
            panic!("runs of seven are worth it");
        };
        assert_eq!(firsts.keys.len(), 143);
        let runs: Vec<_> = firsts
            .keys
            .iter()
            .map(|key| GroupId(key[0] as u32))
            .collect();
        let mut groups = vec![GroupId(99)];
        expand(&runs, &starts, rows.len(), &mut groups);
        let expected: Vec<_> = rows.iter().map(|key| GroupId(key[0] as u32)).collect();
        assert_eq!(groups[1..], expected);
    }

    #[test]
    fn keys_without_runs_stay_as_they_are() {
        let mut starts = Vec::new();
        let unique = (0..1000).map(|row| [row; 1]);
        let late = (0..4096).map(|row| [if row < 300 { 0 } else { row }; 1]);
        for keys in [unique.collect(), late.collect(), Vec::new()] {
            let keys = EncodedKeys::of_fixed_width(keys, Vec::new());
            assert!(compress(&keys, &mut starts).is_none());
        }
    }
}
