//! Names of the columns that statements of ours put beside those of tables.
//!
//! In: the names that are taken. Out: names that are not among them.
//! Invariant: the same taken names give the same free ones, and two that differ stay different.
//! Not here: names of tables that only one statement sees.

use datafusion::sql::sqlparser::ast::Ident;

use crate::sql::ast::quoted;

/// What free names end with.
const MARK: char = '~';

/// Names that no column has.
pub(crate) struct FreeNames {
    /// More marks than any taken name ends with.
    end: String,
}

impl FreeNames {
    /// Names that are free beside those that are taken.
    pub(crate) fn beside<'a>(taken: impl IntoIterator<Item = &'a String>) -> FreeNames {
        let marks = |name: &String| name.chars().rev().take_while(|&end| end == MARK).count();
        let most = taken.into_iter().map(marks).max().unwrap_or(0);
        let end = String::from(MARK).repeat(most + 1);
        FreeNames { end }
    }

    /// The free name of a column for `what`.
    pub(crate) fn of(&self, what: &str) -> String {
        format!("{what}{}", self.end)
    }

    /// The name of the column with the new value of this number.
    pub(crate) fn new_value(&self, number: usize) -> String {
        self.of(&format!("new {number}"))
    }

    /// The name of a column of the row that is not inserted.
    pub(crate) fn excluded(&self, column: &str) -> String {
        self.of(&format!("excluded: {column}"))
    }

    /// A free name as a statement has it.
    pub(crate) fn quoted(&self, what: &str) -> Ident {
        quoted(&self.of(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_names_are_not_taken() {
        let taken = ["new 0", "new 0~", "excluded: a~~", "~"].map(str::to_string);
        let names = FreeNames::beside(&taken);
        assert!(!taken.contains(&names.new_value(0)));
        assert!(!taken.contains(&names.excluded("a")));
        assert_ne!(names.excluded("a"), names.excluded("a~"));
        assert_eq!(names.of("x"), FreeNames::beside(&taken).of("x"));
    }
}
