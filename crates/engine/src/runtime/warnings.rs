//! Warnings: what a user should know of a query whose answer is right.
//!
//! In: sentences, from wherever one is due. Out: all of them once, in their order, to whoever asks.
//! Invariant: no sentence waits twice, and a bounded number waits.
//! Not here: errors, which end a query; how warnings are shown, which the shell and Python see to.

use parking_lot::Mutex;

/// Sentences that wait. A glob may have thousands of files that all want the same told of them.
const WAITING_MAX: usize = 20;

/// The warnings of a session that nobody has asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<WaitingWarnings>);

#[derive(Debug, Default)]
struct WaitingWarnings {
    sentences: Vec<String>,
    /// Those beyond.
    more: usize,
}

impl Warnings {
    pub(crate) fn add(&self, sentence: String) {
        let mut waiting = self.0.lock();
        if waiting.sentences.contains(&sentence) {
            return;
        }
        match waiting.sentences.len() < WAITING_MAX {
            true => waiting.sentences.push(sentence),
            false => waiting.more += 1,
        }
    }

    /// All that wait, which do so no longer.
    pub(crate) fn take(&self) -> Vec<String> {
        let WaitingWarnings {
            mut sentences,
            more,
        } = std::mem::take(&mut *self.0.lock());
        if more > 0 {
            sentences.push(format!("and {more} more like these"));
        }
        sentences
    }
}
