//! Asking for memory before it is needed.
//!
//! In: a slice and an index that will be read soon. Out: nothing; the cache line is on its way.
//! Not here: when that pays (where what is read is larger than the core's own cache).

/// Starts to fetch `slice[at]`; an index out of range fetches nothing that is read.
#[inline(always)]
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "an instruction without a safe form")
)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    let address = slice.as_ptr().wrapping_add(at);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
