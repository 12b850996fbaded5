//! Arrow's views of strings: where a text lies.
//!
//! In: views of 16 bytes. Out: the place of a long text, none for one that lies in the view itself; the bytes that several lie in.
//! Not here: making views; those of short strings are `hash::inline_view`'s.

/// Bytes of the longest text that lies in its view.
pub(crate) const INLINE_MAX: usize = 12;

/// Bytes between two strings that are looked at rather than skipped: lengths, and strings that lie in their views.
pub(crate) const GAP_MAX: usize = 64;

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

    /// True if it lies a little behind `before`, as the next text of a page of a file does.
    #[inline(always)]
    pub fn follows(&self, before: &Place) -> bool {
        let starts = before.end..=before.end + GAP_MAX;
        self.buffer == before.buffer && starts.contains(&self.start)
    }
}

/// The bytes from the first of the long strings to the last, if each follows the one before. All strings of a page at
/// once take a fraction of the time that they take one by one: no processor foretells their ends.
///
/// # Panics
/// If a view points outside of the buffers.
pub(crate) fn around<'a>(views: &[u128], buffers: &[&'a [u8]]) -> Option<&'a [u8]> {
    let mut places = views.iter().filter_map(|view| Place::of(*view));
    let first = places.next()?;
    let last = places.try_fold(first, |before, next| next.follows(&before).then_some(next))?;
    Some(&buffers[first.buffer][first.start..last.end])
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
