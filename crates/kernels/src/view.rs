//! Arrow's views of texts: where a text lies.
//!
//! In: a view of 16 bytes. Out: the place of a long text; none for one that lies in the view itself.
//! Not here: making views; those of short texts are `hash::inline_view`'s.

/// Bytes of the longest text that lies in its view.
pub(crate) const INLINE_MAX: usize = 12;

/// Where a longer text lies.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Number of its buffer.
    pub buffer: usize,
    /// Its first byte there.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
}

impl Place {
    /// None for a text that lies in its view.
    #[inline(always)]
    pub fn of(view: u128) -> Option<Place> {
        let length = view as u32 as usize;
        let start = (view >> 96) as usize;
        (length > INLINE_MAX).then(|| Place {
            buffer: (view >> 64) as u32 as usize,
            start,
            end: start + length,
        })
    }
}

/// The view of a text that lies at byte `start` of a buffer if it is long.
#[cfg(test)]
pub(crate) fn view_of(text: &[u8], buffer: usize, start: usize) -> u128 {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
    if text.len() <= INLINE_MAX {
        view[4..4 + text.len()].copy_from_slice(text);
    } else {
        view[4..8].copy_from_slice(&text[..4]);
        view[8..12].copy_from_slice(&(buffer as u32).to_le_bytes());
        view[12..].copy_from_slice(&(start as u32).to_le_bytes());
    }
    u128::from_le_bytes(view)
}
