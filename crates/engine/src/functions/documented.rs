//! What each function does: its call, a sentence, and an example with its result.
//!
//! In: the files of `documented/`. A title, then three lines a function: `call also name, name`; the sentence; `example => result`,
//! where the example is what stands behind SELECT. Out: a text for each name.
//! Invariant: every function of a session has a text, and its example gives this result (docs/test_pages.py).
//! Not here: the texts as a table (function_tables.rs).

use std::sync::LazyLock;

/// Where a function may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionClass {
    /// Over the rows of a group, also of a window.
    Aggregate,
    /// Over the rows of a window alone.
    Window,
    /// Where a value may be.
    Scalar,
    /// Where a table may be.
    Table,
}

impl FunctionClass {
    /// Its name in tables of functions.
    pub fn name(self) -> &'static str {
        match self {
            FunctionClass::Aggregate => "aggregate",
            FunctionClass::Window => "window",
            FunctionClass::Scalar => "scalar",
            FunctionClass::Table => "table",
        }
    }
}

/// What is said of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionText {
    /// Where it may stand.
    pub class: FunctionClass,
    /// The subject that it belongs to.
    pub category: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The name that the example is written with, if that is another one.
    pub alias_of: Option<&'static str>,
    /// How it is called.
    pub call: String,
    /// What it does, in a sentence.
    pub description: &'static str,
    /// What stands behind SELECT.
    pub example: &'static str,
    /// What that gives.
    pub result: &'static str,
}

impl FunctionText {
    /// The words in its call that stand for arguments.
    pub fn parameters(&self) -> Vec<&str> {
        let behind = self.call.get(self.name.len()..).unwrap_or_default();
        let words = behind.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let is_parameter = |word: &&str| word.starts_with(|first: char| first.is_lowercase());
        words.filter(is_parameter).collect()
    }
}

const FILES: [(FunctionClass, &str); 11] = [
    (
        FunctionClass::Aggregate,
        include_str!("documented/aggregates.txt"),
    ),
    (
        FunctionClass::Window,
        include_str!("documented/windows.txt"),
    ),
    (FunctionClass::Table, include_str!("documented/tables.txt")),
    (FunctionClass::Scalar, include_str!("documented/text.txt")),
    (
        FunctionClass::Scalar,
        include_str!("documented/patterns.txt"),
    ),
    (
        FunctionClass::Scalar,
        include_str!("documented/numbers.txt"),
    ),
    (FunctionClass::Scalar, include_str!("documented/dates.txt")),
    (FunctionClass::Scalar, include_str!("documented/lists.txt")),
    (
        FunctionClass::Scalar,
        include_str!("documented/structs.txt"),
    ),
    (FunctionClass::Scalar, include_str!("documented/json.txt")),
    (FunctionClass::Scalar, include_str!("documented/other.txt")),
];

static TEXTS: LazyLock<Vec<FunctionText>> = LazyLock::new(|| {
    let files = FILES.iter();
    files
        .flat_map(|(class, file)| texts(*class, file))
        .collect()
});

/// The texts of all functions, by subject.
pub fn function_texts() -> &'static [FunctionText] {
    &TEXTS
}

fn texts(class: FunctionClass, file: &'static str) -> Vec<FunctionText> {
    let mut lines = file.lines().filter(|line| !line.is_empty());
    let category = lines.next().unwrap_or_default();
    let category = category.trim_start_matches("# ");
    let mut texts = Vec::new();
    while let (Some(head), Some(description), Some(example)) =
        (lines.next(), lines.next(), lines.next())
    {
        let (call, aliases) = head.split_once(" also ").unwrap_or((head, ""));
        let name = call.split('(').next().unwrap_or(call);
        let (example, result) = example.rsplit_once(" => ").unwrap_or((example, ""));
        let aliases = aliases.split(", ").filter(|alias| !alias.is_empty());
        for (own, alias_of) in [(name, None)]
            .into_iter()
            .chain(aliases.map(|alias| (alias, Some(name))))
        {
            texts.push(FunctionText {
                class,
                category,
                name: own,
                alias_of,
                call: format!("{own}{}", &call[name.len()..]),
                description: description.trim(),
                example: example.trim(),
                result,
            });
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_name_has_one_whole_text() {
        let mut seen = HashSet::new();
        for text in function_texts() {
            assert!(seen.insert((text.class, text.name)), "{} twice", text.name);
            assert!(text.call.starts_with(text.name), "{}", text.call);
            assert!(text.description.ends_with('.'), "{}", text.name);
            assert!(!text.result.is_empty(), "{}", text.name);
            let written = text.alias_of.unwrap_or(text.name);
            assert!(text.example.contains(written), "{}", text.example);
        }
    }

    #[test]
    fn calls_say_their_parameters() {
        let of = |name: &str| {
            let text = function_texts().iter().find(|text| text.name == name);
            text.map(FunctionText::parameters)
        };
        assert_eq!(of("ltrim"), Some(vec!["text", "characters"]));
        assert_eq!(of("percentile_cont"), Some(vec!["share", "value"]));
        assert_eq!(of("pi"), Some(vec![]));
        assert_eq!(of("ucase"), Some(vec!["text"]));
    }
}
