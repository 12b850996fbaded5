//! Forms of INSERT and MERGE that the parser does not take: `INSERT INTO t AS k`, `USING (id)` of MERGE, `UPDATE SET *`, `INSERT *`,
//! `INSERT BY NAME`, `DO NOTHING`.
//!
//! In: tokens. Out: the same statements with names that stand for these forms, `INSERT INTO t."alias of".k`,
//! `ON "using columns"(id)`, `INSERT ("by name") ROW`.
//! Invariant: only what follows THEN of a WHEN [NOT] MATCHED is an action; a THEN of CASE is none.
//! Not here: what the names mean (sql/changes/).

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::tokens::{Tokens, Written, closing, is_one_of, is_token, next_outside, word_at};

/// A part of a table's name, before the alias.
pub(crate) const ALIAS: &str = "alias of";
/// The call of the columns that MERGE joins by.
pub(crate) const USING_COLUMNS: &str = "using columns";
/// The column that UPDATE sets where it sets all, to one of the two below.
pub(crate) const WHOLE_ROW: &str = "whole row";
pub(crate) const BY_POSITION: &str = "by position";
/// Also the column that INSERT has where its columns are those of the other row.
pub(crate) const BY_NAME: &str = "by name";
/// The column of INSERT whose columns all have their defaults.
pub(crate) const DEFAULT_VALUES: &str = "default values";
/// The column of an UPDATE or INSERT that does nothing.
pub(crate) const NOTHING: &str = "do nothing";

/// Whether there may be such a form; there may be white space among the tokens.
pub(in crate::sql) fn has_form(tokens: &[TokenWithSpan]) -> bool {
    let is_word =
        |token: &TokenWithSpan, word: &str| is_one_of(std::slice::from_ref(token), 0, &[word]);
    let mut code = (tokens.iter()).filter(|token| !matches!(token.token, Token::Whitespace(_)));
    while let Some(token) = code.next() {
        if is_word(token, "MERGE") {
            return true;
        }
        if is_word(token, "INTO") {
            let mut behind = code.clone().skip(1);
            let mut next = behind.next();
            while next.is_some_and(|token| token.token == Token::Period) {
                next = behind.nth(1);
            }
            if next.is_some_and(|token| is_word(token, "AS")) {
                return true;
            }
        }
    }
    false
}

pub(super) fn rewrite(mut tokens: Tokens) -> Tokens {
    if let Some(at) = alias_of_insert(&tokens) {
        let parts = Written::at(tokens[at].span).sql(".").name(ALIAS).sql(".");
        tokens.splice(at..=at, parts.tokens);
    }
    match merge(&tokens) {
        Some(at) => rewrite_merge(&tokens, at),
        None => tokens,
    }
}

/// The place of AS in `INSERT INTO a.t AS k`.
fn alias_of_insert(tokens: &[TokenWithSpan]) -> Option<usize> {
    let is_insert = |into: usize| {
        let first = into.saturating_sub(3);
        (first..into).any(|at| is_one_of(tokens, at, &["INSERT"]))
            || into > 0 && is_one_of(tokens, into - 1, &["REPLACE"])
    };
    let into = next_outside(tokens, 0, |at| {
        is_one_of(tokens, at, &["INTO"]) && is_insert(at)
    });
    let mut end = into + 2;
    while is_token(tokens, end, &Token::Period) {
        end += 2;
    }
    let is_alias = is_one_of(tokens, end, &["AS"]) && word_at(tokens, end + 1).is_some();
    is_alias.then_some(end)
}

/// Where MERGE begins.
fn merge(tokens: &[TokenWithSpan]) -> Option<usize> {
    let at = next_outside(tokens, 0, |at| {
        is_one_of(tokens, at, &["MERGE"]) && is_one_of(tokens, at + 1, &["INTO"])
    });
    (at < tokens.len()).then_some(at)
}

/// Whether a clause of MERGE is about rows of the table, which may be updated, or about others, which may be inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseRows {
    There,
    New,
}

fn rewrite_merge(tokens: &[TokenWithSpan], merge: usize) -> Tokens {
    let mut written = tokens[..merge].to_vec();
    let source = next_outside(tokens, merge, |at| is_one_of(tokens, at, &["USING"]));
    let (mut at, mut clause, mut cases) = (merge, None, 0_usize);
    while let Some(token) = tokens.get(at) {
        let rest = &tokens[at..];
        if let Some(rows) = begins_clause(rest) {
            (clause, cases) = (Some(rows), 0);
        } else if is_one_of(rest, 0, &["CASE"]) {
            cases += 1;
        } else if is_one_of(rest, 0, &["END"]) {
            cases = cases.saturating_sub(1);
        }
        let is_then = is_one_of(rest, 0, &["THEN"]) && cases == 0;
        let form = match clause {
            Some(rows) if is_then => {
                clause = None;
                action(&rest[1..], rows).map(|(form, used)| {
                    let start = Written::at(token.span).copy(&rest[..1]);
                    (start.copy(&form.tokens), used + 1)
                })
            }
            None if at > source && is_one_of(rest, 0, &["USING"]) => using_columns(rest),
            _ => None,
        };
        let is_bracket = is_token(rest, 0, &Token::LParen);
        let (form, used) = form.unwrap_or_else(|| {
            let used = if is_bracket {
                closing(rest, 0).min(rest.len() - 1) + 1
            } else {
                1
            };
            (Written::at(token.span).copy(&rest[..used]), used)
        });
        written.extend(form.tokens);
        at += used;
    }
    written
}

/// The rows that a clause is about, if one begins here.
fn begins_clause(rest: &[TokenWithSpan]) -> Option<ClauseRows> {
    if !is_one_of(rest, 0, &["WHEN"]) {
        return None;
    }
    if is_one_of(rest, 1, &["MATCHED"]) {
        return Some(ClauseRows::There);
    }
    let is_not = is_one_of(rest, 1, &["NOT"]) && is_one_of(rest, 2, &["MATCHED"]);
    let is_there = is_one_of(rest, 3, &["BY"]) && is_one_of(rest, 4, &["SOURCE"]);
    is_not.then_some(match is_there {
        true => ClauseRows::There,
        false => ClauseRows::New,
    })
}

/// `USING (a, b)` behind the other table.
fn using_columns(rest: &[TokenWithSpan]) -> Option<(Written, usize)> {
    is_token(rest, 1, &Token::LParen).then(|| {
        let used = (closing(rest, 1) + 1).min(rest.len());
        let start = Written::at(rest[0].span).sql("ON").name(USING_COLUMNS);
        (start.copy(&rest[1..used]), used)
    })
}

/// An action that the parser does not take, and the number of its tokens.
fn action(rest: &[TokenWithSpan], rows: ClauseRows) -> Option<(Written, usize)> {
    let start = Written::at(rest.first()?.span);
    if is_one_of(rest, 0, &["DO"]) && is_one_of(rest, 1, &["NOTHING"]) {
        let form = match rows {
            ClauseRows::There => start.sql("UPDATE SET").name(NOTHING).sql("= 0"),
            ClauseRows::New => start.sql("INSERT (").name(NOTHING).sql(") ROW"),
        };
        return Some((form, 2));
    }
    let is_update = is_one_of(rest, 0, &["UPDATE"]);
    if !is_update && !is_one_of(rest, 0, &["INSERT"]) {
        return None;
    }
    if !is_update && is_one_of(rest, 1, &["DEFAULT"]) && is_one_of(rest, 2, &["VALUES"]) {
        let form = start.sql("INSERT (").name(DEFAULT_VALUES).sql(") ROW");
        return Some((form, 3));
    }
    let is_by = is_one_of(rest, 1, &["BY"]);
    let by_name = is_by && is_one_of(rest, 2, &["NAME"]);
    let mut used = match is_by {
        true if by_name || is_one_of(rest, 2, &["POSITION"]) => 3,
        true => return None,
        false => 1,
    };
    let set = usize::from(is_update && is_one_of(rest, used, &["SET"]));
    if is_token(rest, used + set, &Token::Mul) {
        used += set + 1;
    }
    let is_end = match rest.get(used).map(|token| &token.token) {
        None | Some(Token::SemiColon | Token::EOF | Token::RParen) => true,
        Some(_) => is_one_of(rest, used, &["WHEN", "RETURNING"]),
    };
    is_end.then(|| {
        let form = match (is_update, by_name) {
            (true, true) => start
                .sql("UPDATE SET")
                .name(WHOLE_ROW)
                .sql("=")
                .name(BY_NAME),
            (true, false) => start
                .sql("UPDATE SET")
                .name(WHOLE_ROW)
                .sql("=")
                .name(BY_POSITION),
            (false, true) => start.sql("INSERT (").name(BY_NAME).sql(") ROW"),
            (false, false) => start.sql("INSERT ROW"),
        };
        (form, used)
    })
}
