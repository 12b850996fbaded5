//! What Tab proposes.
//! In: the text and the cursor. Out: where the unfinished word begins, and what it may become.
//! Invariant: within a string there are files, within a comment nothing; behind FROM there are tables, files and functions of rows;
//! behind `t.` the columns of `t`; elsewhere the columns of the statement's tables, functions and keywords.

use clap::ValueEnum;
use rustyline::completion::Pair;

use crate::lexer::{Kind, Lexer, Token, tokens};
use crate::print::Format;
use crate::shell::{COMMANDS, Takes};

use super::keywords::{BEFORE_RELATIONS, KEYWORDS, STARTS, is_keyword};
use super::names::{Names, files, is_plain};

/// The proposals for the word that ends at `at`.
pub fn complete(names: &Names, text: &str, at: usize) -> (usize, Vec<Pair>) {
    let before = &text[..at];
    if let Some(command) = before.strip_prefix('.') {
        return of_command(names, command);
    }
    let mut lexer = Lexer::default();
    let mut begun = (0, None);
    let mut end = 0;
    while end < at {
        let token = lexer.step(&before[end..]);
        begun = (end, Some(token.kind));
        end += token.len;
    }
    let (start, kind) = begun;
    match kind {
        Some(Kind::Text) if lexer.is_inside() => within_string(before, start),
        Some(Kind::Name) if lexer.is_inside() => {
            let statement = Statement::around(text, at);
            let candidates = names.tables().into_iter().chain(statement.columns(names));
            let written = before[start + 1..].to_lowercase();
            let quoted = candidates
                .filter(|name| name.to_lowercase().starts_with(&written))
                .map(|name| quoted(&name));
            (start, pairs(quoted.collect()))
        }
        Some(Kind::Comment) => (at, Vec::new()),
        Some(Kind::Word) => (start, of_sql(names, text, start, &before[start..])),
        _ => (at, of_sql(names, text, at, "")),
    }
}

/// Files, for a string that is being typed.
fn within_string(before: &str, start: usize) -> (usize, Vec<Pair>) {
    let Some(written) = before[start..].strip_prefix('\'') else {
        return (before.len(), Vec::new());
    };
    let found = files(written).into_iter().map(|path| {
        let end = if path.ends_with('/') { "" } else { "'" };
        format!("{}{end}", path.replace('\'', "''"))
    });
    (start + 1, pairs(found.collect()))
}

/// Commands, formats, files and tables, for a line that begins with a dot.
fn of_command(names: &Names, line: &str) -> (usize, Vec<Pair>) {
    let Some((name, rest)) = line.split_once(' ') else {
        let found = COMMANDS
            .iter()
            .filter(|command| command.name.starts_with(line));
        let found = found.map(|command| match command.arguments {
            "" => command.name.to_owned(),
            _ => format!("{} ", command.name),
        });
        return (1, pairs(found.collect()));
    };
    let takes = COMMANDS.iter().find(|command| command.name == name);
    let word_at = rest.rfind(' ').map_or(0, |at| at + 1);
    let word = rest[word_at..].trim_start_matches('\'');
    let start = 1 + name.len() + 1 + word_at;
    let in_quotes = |path: String| match path.contains(char::is_whitespace) {
        true => format!("'{path}'"),
        false => path,
    };
    let fixed = |list: Vec<String>| {
        let found = list.into_iter().filter(|name| name.starts_with(word));
        found.collect::<Vec<String>>()
    };
    let found = match takes.map_or(Takes::Nothing, |command| command.takes) {
        Takes::Nothing => Vec::new(),
        Takes::Switch => fixed(vec!["on".to_owned(), "off".to_owned()]),
        Takes::Format => fixed(Format::value_variants().iter().map(|f| f.name()).collect()),
        Takes::Command => fixed(COMMANDS.iter().map(|c| c.name.to_owned()).collect()),
        Takes::File => files(word).into_iter().map(in_quotes).collect(),
        Takes::Relation => {
            let mut found = fixed(names.tables());
            found.extend(files(word).into_iter().map(in_quotes));
            found
        }
    };
    (start, pairs(found))
}

/// Names and keywords, for the word `written` that begins at `start`.
fn of_sql(names: &Names, text: &str, start: usize, written: &str) -> Vec<Pair> {
    let statement = Statement::around(text, start + written.len());
    let found = match statement.place(start) {
        Expected::Start => in_case_of(written, STARTS),
        Expected::Of(relation) => statement.columns_of(names, &relation),
        Expected::Relation => {
            let functions = names.table_functions().into_iter();
            (names
                .tables()
                .into_iter()
                .map(|name| quoted_if_needed(&name)))
            .chain(statement.common_tables())
            .chain(functions.map(|name| format!("{name}(")))
            .collect()
        }
        Expected::Value if written.is_empty() => statement.columns(names),
        Expected::Value => {
            let functions = names.functions().into_iter();
            (statement.columns(names).into_iter())
                .chain(
                    statement
                        .relations()
                        .into_iter()
                        .filter_map(|(_, alias)| alias),
                )
                .chain(functions.map(|name| format!("{name}(")))
                .chain(
                    names
                        .tables()
                        .into_iter()
                        .map(|name| quoted_if_needed(&name)),
                )
                .chain(in_case_of(written, KEYWORDS))
                .collect()
        }
    };
    let wanted = written.to_lowercase();
    let begins = |name: &String| name.to_lowercase().starts_with(&wanted);
    pairs(found.into_iter().filter(begins).collect())
}

/// Keywords in the case of what is written.
fn in_case_of(written: &str, keywords: &[&str]) -> Vec<String> {
    let is_small = written.contains(|c: char| c.is_lowercase());
    let cased = |word: &&str| match is_small {
        true => word.to_lowercase(),
        false => (*word).to_owned(),
    };
    keywords.iter().map(cased).collect()
}

fn pairs(mut names: Vec<String>) -> Vec<Pair> {
    names.sort();
    names.dedup();
    let pair = |name: String| Pair {
        display: name.clone(),
        replacement: name,
    };
    names.into_iter().map(pair).collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn quoted_if_needed(name: &str) -> String {
    match is_plain(name) && !is_keyword(name) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// What can stand at a place.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// A statement begins.
    Start,
    /// A table, a file or a function of rows.
    Relation,
    /// A column of this relation, or of the one with this alias.
    Of(String),
    /// Anything else.
    Value,
}

/// The statement that the cursor is in, without blanks and comments.
struct Statement<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
}

impl<'a> Statement<'a> {
    /// A word ends at the cursor, also where the next one follows without a blank.
    fn around(text: &'a str, at: usize) -> Statement<'a> {
        let behind = tokens(&text[at..]).map(|(start, token)| (at + start, token));
        let mut kept: Vec<(usize, Token)> = Vec::new();
        for (start, token) in tokens(&text[..at]).chain(behind) {
            if &text[start..start + token.len] == ";" {
                if start >= at {
                    break;
                }
                kept.clear();
            } else if !matches!(token.kind, Kind::Blank | Kind::Comment) {
                kept.push((start, token));
            }
        }
        Statement { text, tokens: kept }
    }

    fn token(&self, nth: usize) -> &'a str {
        let found = self.tokens.get(nth);
        found.map_or("", |(start, token)| &self.text[*start..*start + token.len])
    }

    fn is(&self, nth: usize, word: &str) -> bool {
        self.token(nth).eq_ignore_ascii_case(word)
    }

    fn is_one_of(&self, nth: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(nth, word))
    }

    fn place(&self, at: usize) -> Expected {
        let count = self.tokens.partition_point(|(start, _)| *start < at);
        let Some(last) = count.checked_sub(1) else {
            return Expected::Start;
        };
        if self.token(last) == "." {
            return match last.checked_sub(1) {
                Some(name) => Expected::Of(unquoted(self.token(name))),
                None => Expected::Value,
            };
        }
        if self.is_one_of(last, BEFORE_RELATIONS) {
            return Expected::Relation;
        }
        let keyword = (0..last).rev().find(|nth| is_keyword(self.token(*nth)));
        match keyword {
            Some(nth) if self.token(last) == "," && self.is_one_of(nth, &["FROM", "JOIN"]) => {
                Expected::Relation
            }
            _ => Expected::Value,
        }
    }

    /// What stands behind FROM and its kin, with aliases.
    fn relations(&self) -> Vec<(String, Option<String>)> {
        let mut found = Vec::new();
        let mut nth = 0;
        while nth < self.tokens.len() {
            nth += 1;
            if !self.is_one_of(nth - 1, BEFORE_RELATIONS) {
                continue;
            }
            while let Some(end) = self.relation_end(nth) {
                let (first, last) = (self.tokens[nth].0, self.tokens[end - 1]);
                let relation = self.text[first..last.0 + last.1.len].to_owned();
                let name = if self.is(end, "AS") { end + 1 } else { end };
                let is_name = self
                    .tokens
                    .get(name)
                    .is_some_and(|(_, token)| matches!(token.kind, Kind::Word | Kind::Name))
                    && !is_keyword(self.token(name));
                found.push((relation, is_name.then(|| unquoted(self.token(name)))));
                nth = if is_name { name + 1 } else { end };
                if self.token(nth) != "," {
                    break;
                }
                nth += 1;
            }
        }
        found
    }

    /// Behind the relation that begins at a token, if one does: a name with dots, a file, or a call.
    fn relation_end(&self, first: usize) -> Option<usize> {
        let (_, token) = self.tokens.get(first)?;
        let is_name =
            matches!(token.kind, Kind::Word | Kind::Name) && !is_keyword(self.token(first));
        if !is_name && token.kind != Kind::Text {
            return None;
        }
        let mut end = first + 1;
        while is_name && self.token(end) == "." && end + 1 < self.tokens.len() {
            end += 2;
        }
        if !is_name || self.token(end) != "(" {
            return Some(end);
        }
        let mut depth = 0;
        for nth in end..self.tokens.len() {
            match self.token(nth) {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(nth + 1);
            }
        }
        None
    }

    /// Names of WITH.
    fn common_tables(&self) -> Vec<String> {
        let is_named = |nth: &usize| {
            self.is(nth + 1, "AS")
                && self.token(nth + 2) == "("
                && nth
                    .checked_sub(1)
                    .is_some_and(|before| self.is_one_of(before, &["WITH", "RECURSIVE", ","]))
        };
        let found = (0..self.tokens.len()).filter(is_named);
        found.map(|nth| self.token(nth).to_owned()).collect()
    }

    /// Columns of all relations, in quotes where they are needed.
    fn columns(&self, names: &Names) -> Vec<String> {
        let relations = self.relations().into_iter();
        let columns = relations.flat_map(|(relation, _)| names.columns(&relation));
        columns.map(|name| quoted_if_needed(&name)).collect()
    }

    fn columns_of(&self, names: &Names, wanted: &str) -> Vec<String> {
        let is_meant = |name: &str| name.eq_ignore_ascii_case(wanted);
        let relations = self.relations().into_iter();
        let columns = relations
            .filter(|(relation, alias)| {
                alias.as_deref().is_some_and(is_meant) || is_meant(&unquoted(relation))
            })
            .flat_map(|(relation, _)| names.columns(&relation));
        columns.map(|name| quoted_if_needed(&name)).collect()
    }
}

/// A name without its quotes.
fn unquoted(name: &str) -> String {
    name.trim_matches(['"', '`']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Expected {
        Statement::around(text, text.len()).place(text.len())
    }

    #[test]
    fn places() {
        assert_eq!(place(""), Expected::Start);
        assert_eq!(place("SELECT 1; "), Expected::Start);
        assert_eq!(place("SELECT "), Expected::Value);
        assert_eq!(place("SELECT a FROM "), Expected::Relation);
        assert_eq!(place("SELECT a FROM t, "), Expected::Relation);
        assert_eq!(place("SELECT a, "), Expected::Value);
        assert_eq!(place("SELECT a FROM t WHERE b IN (1, "), Expected::Value);
        assert_eq!(place("SELECT \"T\"."), Expected::Of("T".to_owned()));
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, Option<&str>)]) {
        let found = Statement::around(text, 0).relations();
        let found: Vec<(&str, Option<&str>)> = found
            .iter()
            .map(|(r, a)| (r.as_str(), a.as_deref()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn relations_of_a_statement() {
        check("SELECT 1", &[]);
        check("SELECT a FROM t", &[("t", None)]);
        check(
            "SELECT a FROM t AS x, 'a b.csv' y WHERE 1",
            &[("t", Some("x")), ("'a b.csv'", Some("y"))],
        );
        check(
            "FROM read_csv('a.csv', skip => (1)) r JOIN s.\"u v\" USING (k)",
            &[
                ("read_csv('a.csv', skip => (1))", Some("r")),
                ("s.\"u v\"", None),
            ],
        );
        check("SELECT * FROM (SELECT 1 FROM t) WHERE", &[("t", None)]);
        check("SELECT a FROM ", &[]);
        let statement = Statement::around("SELECT visFROM t; FROM u", "SELECT vis".len());
        assert_eq!(statement.relations(), [("t".to_owned(), None)]);
    }

    #[test]
    fn names_of_with() {
        let statement =
            Statement::around("WITH a AS (SELECT 1), b AS (SELECT 2) SELECT c FROM ", 0);
        assert_eq!(statement.common_tables(), ["a", "b"]);
    }
}
