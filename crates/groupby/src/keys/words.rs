//! Keys of several words, and the views in them.
//!
//! In: words. Out: keys, told apart word by word; the view that begins at a word.
//! Not here: the table of such keys.

use arrow::buffer::Buffer;

/// Keys of `N` words and what their long strings point into.
#[derive(Debug, Clone)]
pub struct WideKeys<const N: usize> {
    /// One key per row.
    pub keys: Vec<[u64; N]>,
    /// What longer views point into.
    pub buffers: Vec<Buffer>,
}

impl<const N: usize> Default for WideKeys<N> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            buffers: Vec::new(),
        }
    }
}

impl<const N: usize> WideKeys<N> {
    /// Copies of keys whose strings stay where they are.
    pub(super) fn of(keys: &[[u64; N]], buffers: &[Buffer]) -> Self {
        Self {
            keys: keys.to_vec(),
            buffers: buffers.to_vec(),
        }
    }

    /// Copies of the keys at these places, whose strings stay where they are.
    pub(super) fn picked(&self, rows: &[u32]) -> Self {
        Self {
            keys: super::picked(&self.keys, rows),
            buffers: self.buffers.clone(),
        }
    }
}

/// The view whose first word is `word`.
#[inline(always)]
pub(crate) fn view_of<const N: usize>(key: &[u64; N], word: usize) -> u128 {
    u128::from(key[word + 1]) << 64 | u128::from(key[word])
}

/// Writes a view at `word`.
#[inline(always)]
pub(crate) fn set_view<const N: usize>(key: &mut [u64; N], word: usize, view: u128) {
    key[word] = view as u64;
    key[word + 1] = (view >> 64) as u64;
}

/// Compares all words at once; `==` on arrays of this size calls out to compare bytes.
#[inline(always)]
pub(crate) fn is_equal<const N: usize>(one: &[u64; N], other: &[u64; N]) -> bool {
    let mut difference = 0;
    for word in 0..N {
        difference |= one[word] ^ other[word];
    }
    difference == 0
}
