//! Options of DuckDB and PostgreSQL that can have one meaning only here.
//!
//! In: a name and values. Out: whether they say what is so anyway.
//! Invariant: any other value is an error that says why; none is taken and then ignored.
//! Not here: options that have an effect (options.rs).

use crate::error::{Error, Result};

/// Names, the values that say what is so, and why there are no others.
const FIXED: [(&str, &[&str], &str); 2] = [
    (
        "search_path",
        &["public", "main", "$user"],
        "all tables are in the one schema public, which main means, too; write other_schema.t where there is one",
    ),
    (
        "schema",
        &["public", "main"],
        "all tables are in the one schema public, which main means, too",
    ),
];

/// Whether there is such an option.
pub(crate) fn is_fixed(name: &str) -> bool {
    FIXED.iter().any(|(fixed, ..)| *fixed == name)
}

/// An error unless all values say what is so.
pub(crate) fn check_fixed(name: &str, values: &[String]) -> Result<()> {
    let parts = values.iter().flat_map(|value| value.split(','));
    let mut parts = parts.map(|part| part.trim().trim_matches('"').to_lowercase());
    let known = FIXED.iter().find(|(fixed, ..)| *fixed == name);
    match known
        .and_then(|(_, is, why)| Some((parts.find(|part| !is.contains(&part.as_str()))?, why)))
    {
        None => Ok(()),
        Some((value, why)) => Err(Error::invalid(
            name.to_string(),
            format!("'{value}' is not possible: {why}"),
        )),
    }
}
