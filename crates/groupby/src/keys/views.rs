//! Views of strings: Arrow's 16 bytes that hold a string of up to 12 bytes, or say where it lies.
//!
//! In: bytes, or a view and the buffers that views point into. Out: views; the bytes of a view.
//! Invariant: a view of up to 12 bytes holds the whole string and zero padding.

use arrow::buffer::Buffer;
use grouse_kernels::hash;
use grouse_kernels::prefetch::prefetch;

/// Longer strings lie outside of their view.
pub(super) const INLINE_BYTES_MAX: usize = 12;

/// True if a view points outside of itself.
#[inline(always)]
pub(crate) fn is_long(view: u128) -> bool {
    view as u32 as usize > INLINE_BYTES_MAX
}

/// The view of `bytes`, which lie at `offset` of buffer `buffer`.
#[inline(always)]
pub(super) fn view(bytes: &[u8], buffer: u32, offset: u32) -> u128 {
    if bytes.len() <= INLINE_BYTES_MAX {
        return hash::inline_view(bytes);
    }
    let prefix = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
    bytes.len() as u128
        | u128::from(prefix) << 32
        | u128::from(buffer) << 64
        | u128::from(offset) << 96
}

/// The bytes of a view that is not inline. Equal ones are compared by the C library: word by word in line was no faster in
/// ten queries of hits and G1 (1.00 to 1.02 of the time).
#[inline(always)]
pub(crate) fn long_bytes(view: u128, buffers: &[impl std::ops::Deref<Target = [u8]>]) -> &[u8] {
    let (length, buffer, offset) = (
        view as u32 as usize,
        (view >> 64) as u32 as usize,
        (view >> 96) as usize,
    );
    &buffers[buffer][offset..offset + length]
}

/// Asks for the first 128 bytes of a string that lies outside of its view. Most rows of `keys::row` have fewer. 64 alone:
/// 8 %
/// more of all time for distinct rows of lineitem.
#[inline(always)]
pub fn fetch(view: u128, buffers: &[Buffer]) {
    // What a view of NULL says means nothing.
    if is_long(view)
        && let Some(buffer) = buffers.get((view >> 64) as u32 as usize)
    {
        let from = (view >> 96) as usize;
        prefetch(buffer, from);
        prefetch(buffer, from + 64);
    }
}

/// Calls `f` with the bytes of `view`, inline or not.
#[inline(always)]
pub(crate) fn with_bytes<R>(view: u128, buffers: &[Buffer], f: impl FnOnce(&[u8]) -> R) -> R {
    let length = view as u32 as usize;
    if length <= INLINE_BYTES_MAX {
        return f(&view.to_le_bytes()[4..4 + length]);
    }
    f(long_bytes(view, buffers))
}
