//! What is known of dictionaries as long as they come again.
//!
//! In: dictionaries, and what somebody has made of each. Out: the same of a dictionary that is the same in memory.
//! Invariant: the last `MAX` dictionaries that were noted are known, and held.
//! Not here: what is made of a dictionary.

use std::collections::VecDeque;

use arrow::array::ArrayRef;

use super::columns::same_dictionary;

/// A `T` per dictionary. Most readers have one dictionary at a time.
#[derive(Debug, Clone)]
pub struct DictionaryCache<T, const MAX: usize = 1>(VecDeque<(ArrayRef, T)>);

impl<T, const MAX: usize> Default for DictionaryCache<T, MAX> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T, const MAX: usize> DictionaryCache<T, MAX> {
    /// What is known of a dictionary.
    pub fn get(&self, dictionary: &ArrayRef) -> Option<&T> {
        self.place(dictionary).map(|at| &self.0[at].1)
    }

    /// Takes note; the oldest is forgotten if there are too many.
    pub fn insert(&mut self, dictionary: &ArrayRef, known: T) {
        if self.0.len() == MAX {
            self.0.pop_front();
        }
        self.0.push_back((ArrayRef::clone(dictionary), known));
    }

    /// What is known of a dictionary, made if nothing is.
    pub fn get_or_make<E>(
        &mut self,
        dictionary: &ArrayRef,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<&mut T, E> {
        let at = match self.place(dictionary) {
            Some(at) => at,
            None => {
                self.insert(dictionary, make()?);
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[at].1)
    }

    /// The dictionary that was noted last, and what is known of it.
    pub(crate) fn last(&self) -> Option<&(ArrayRef, T)> {
        self.0.back()
    }

    /// Those that are read now are the last that were noted.
    fn place(&self, dictionary: &ArrayRef) -> Option<usize> {
        let is_it = |(known, _): &(ArrayRef, T)| same_dictionary(known, dictionary);
        self.0.iter().rposition(is_it)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray};

    use super::DictionaryCache;

    #[test]
    fn the_last_dictionaries_are_known_by_their_place_in_memory() {
        let dictionary = || Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef;
        let (one, other, third) = (dictionary(), dictionary(), dictionary());
        let mut cache = DictionaryCache::<u32, 2>::default();
        cache.insert(&one, 1);
        cache.insert(&other, 2);
        assert_eq!((cache.get(&one), cache.get(&third)), (Some(&1), None));
        assert_eq!(cache.get(&one.slice(0, 2)), Some(&1));
        assert_eq!(cache.get(&one.slice(0, 1)), None);
        assert_eq!(cache.get_or_make(&third, || Err("none")), Err("none"));
        let made = cache.get_or_make(&third, || Ok::<_, &str>(3));
        assert_eq!(made, Ok(&mut 3));
        assert_eq!((cache.get(&one), cache.get(&other)), (None, Some(&2)));
    }
}
