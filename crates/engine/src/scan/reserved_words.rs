//! Words that SQL reserves.
//!
//! In: a word in lower case. Out: whether it is reserved.
//! Invariant: the words are those that PostgreSQL and DuckDB reserve in all places.
//! Not here: words that the parser takes for something in one place alone.

/// What SQL reserves, as PostgreSQL and DuckDB list it.
const RESERVED: &str = "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint \
    create default deferrable desc describe distinct do else end except false fetch for foreign from group having in \
    initially intersect into lambda lateral leading limit not null offset on only or order pivot placing primary qualify \
    references returning select show some summarize symmetric table then to trailing true union unique unpivot user using \
    variadic when where window with";

/// Whether SQL reserves the word.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.split_ascii_whitespace().any(|known| known == word)
}
