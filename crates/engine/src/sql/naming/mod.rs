//! Names: which column or table a name is, and what the columns of a result are called.
//!
//! In: a parsed statement, the columns that DataFusion or the catalog knows. Out: the statement with names that fit once.
//! Invariant: an exact name comes before one that differs in case; a name that fits twice is an error or stays apart.
//! Not here: names whose table a query around gives (expand/), names that may be meant where there is none (place/).

pub(crate) mod spelling;
pub(crate) mod repeated_names;
pub(crate) mod named_casts;
pub(crate) mod using;
pub(in crate::sql) mod headers;
