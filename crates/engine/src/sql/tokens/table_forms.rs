//! Short forms around tables and columns: ASOF and POSITIONAL joins, `LIMIT 10%`, `INSERT INTO t BY NAME`, `* LIKE 'a%'`.
//!
//! In: tokens. Out: `GLOBAL JOIN` for ASOF JOIN, `GLOBAL CROSS JOIN` for POSITIONAL JOIN, calls for the others.
//! Invariant: GLOBAL, which nobody plans, is refused where the user wrote it, so that it means nothing else later.
//! Not here: what the joins mean (asof.rs, positional.rs), nor the calls (limits.rs, by_name.rs, columns.rs).

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::Result;
use crate::sql::tokens::{
    Tokens, Written, closing, error_at, is_one_of, is_token, next_outside, opening, word_at,
};

/// Calls that stand for what they are named for.
pub(crate) const PERCENT: &str = "percent of";
pub(crate) const BY_NAME: &str = "by name";
/// `*COLUMNS(…)`: all columns as arguments of one call.
pub(crate) const UNPACKED: &str = "unpacked columns";

/// Keys of `PIVOT (sum(x) FOR c IN ('a') GROUP BY k)`, where the parser has DEFAULT ON NULL.
pub(crate) const GROUP: &str = "group of";

/// Words with which a join begins.
const JOINS: [&str; 9] = [
    "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "OUTER", "ANTI",
];

pub(in crate::sql) fn rewrite(tokens: Tokens) -> Result<Tokens> {
    let mut written: Tokens = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let start = Written::at(token.span);
        let rest = &tokens[at..];
        let before = written.len().checked_sub(1);
        let (form, used) = if is_one_of(rest, 0, &["GLOBAL"]) && is_one_of(rest, 1, &JOINS) {
            return Err(error_at(
                token,
                "GLOBAL joins are those of a cluster; leave GLOBAL out",
            ));
        } else if is_one_of(rest, 0, &["ASOF"]) && is_one_of(rest, 1, &JOINS) {
            (start.sql("GLOBAL"), 1)
        } else if is_one_of(rest, 0, &["POSITIONAL"]) && is_one_of(rest, 1, &["JOIN"]) {
            (start.sql("GLOBAL CROSS"), 1)
        } else if is_one_of(rest, 0, &["LIMIT"])
            && let Some(used) = percent(rest)
        {
            let number = &rest[1..used - 1];
            (
                start
                    .sql("LIMIT")
                    .name(PERCENT)
                    .sql("(")
                    .copy(number)
                    .sql(")"),
                used,
            )
        } else if let Some(used) = group_of_pivot(&tokens, at) {
            let keys = &rest[2..used];
            let group = start.sql("DEFAULT ON NULL (").name(GROUP).sql("(");
            (group.copy(keys).sql(") )"), used)
        } else if is_filter_without_where(&tokens, at) {
            (start.copy(&rest[..2]).sql("WHERE"), 2)
        } else if is_macro(&tokens, at) {
            (start.sql("MACRO"), 1)
        } else if is_by_name(&tokens, at) {
            let used = next_outside(rest, 2, |at| ends_inserted_query(rest, at));
            let is_bracketed = is_token(rest, 2, &Token::LParen) && closing(rest, 2) + 1 == used;
            let bracket = usize::from(is_bracketed);
            let query = start.sql("SELECT * FROM").name(BY_NAME).sql("( (");
            let inner = &rest[2 + bracket..used - bracket];
            (query.copy(inner).sql(") )"), used)
        } else if is_by_position(&tokens, at) {
            (start, 2)
        } else if is_token(rest, 0, &Token::Mul)
            && is_one_of(rest, 1, &["COLUMNS"])
            && is_token(rest, 2, &Token::LParen)
            && before.is_some_and(|before| begins_item(&written, before))
        {
            (start.name(UNPACKED), 2)
        } else if is_token(rest, 0, &Token::Mul)
            && before.is_some_and(|before| begins_item(&written, before))
            && let Some(used) = pattern(rest)
        {
            let condition = start.sql("COLUMNS ( LAMBDA").name("column name").sql(":");
            (
                condition.name("column name").copy(&rest[1..used]).sql(")"),
                used,
            )
        } else {
            (start.copy(&rest[..1]), 1)
        };
        written.extend(form.tokens);
        at += used;
    }
    Ok(written)
}

/// The length of `LIMIT 10 %` or `LIMIT (a + 1) PERCENT`.
fn percent(rest: &[TokenWithSpan]) -> Option<usize> {
    let end = match rest.get(1).map(|token| &token.token)? {
        Token::Number(..) | Token::Placeholder(_) => 2,
        Token::LParen => closing(rest, 1) + 1,
        _ => return None,
    };
    let sign = is_token(rest, end, &Token::Mod) || is_one_of(rest, end, &["PERCENT"]);
    let ends = match rest.get(end + 1).map(|token| &token.token) {
        None | Some(Token::RParen | Token::SemiColon) => true,
        Some(_) => is_one_of(rest, end + 1, &["OFFSET", "UNION"]),
    };
    (sign && ends).then_some(end + 1)
}

/// The length of `GROUP BY k, l` within the parentheses of PIVOT.
fn group_of_pivot(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if !is_one_of(tokens, at, &["GROUP"]) || !is_one_of(tokens, at + 1, &["BY"]) {
        return None;
    }
    let end = next_outside(tokens, at, |_| false);
    let open = opening(tokens, end)?;
    let is_pivot = is_one_of(tokens, open.checked_sub(1)?, &["PIVOT"])
        && is_token(tokens, end, &Token::RParen);
    is_pivot.then_some(end - at)
}

/// Whether `FILTER (x > 2)`, in which WHERE is left out, stands behind a call.
fn is_filter_without_where(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_behind_call = at > 0 && is_token(tokens, at - 1, &Token::RParen);
    is_behind_call
        && is_one_of(tokens, at, &["FILTER"])
        && is_token(tokens, at + 1, &Token::LParen)
        && !is_one_of(tokens, at + 2, &["WHERE"])
}

/// Whether FUNCTION of `CREATE FUNCTION f(a) AS a + 1`, which is a macro, stands at this place.
fn is_macro(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_create = is_one_of(tokens, 0, &["CREATE"]) && (1..=4).contains(&at);
    if !is_create
        || !is_one_of(tokens, at, &["FUNCTION"])
        || !is_token(tokens, at + 2, &Token::LParen)
    {
        return false;
    }
    let close = closing(tokens, at + 2);
    let body = tokens.get(close + 2).map(|token| &token.token);
    let is_text = matches!(
        body,
        None | Some(Token::SingleQuotedString(_) | Token::DollarQuotedString(_))
    );
    is_one_of(tokens, close + 1, &["AS"]) && !is_text
}

/// Whether ON CONFLICT or RETURNING stands behind the query of an INSERT.
fn ends_inserted_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is_conflict = is_one_of(tokens, at, &["ON"]) && is_one_of(tokens, at + 1, &["CONFLICT"]);
    is_conflict || is_one_of(tokens, at, &["RETURNING"])
}

/// Whether BY of `INSERT INTO t BY NAME` stands at this place.
fn is_by_name(tokens: &[TokenWithSpan], at: usize) -> bool {
    is_insert(tokens, at) && is_one_of(tokens, at + 1, &["NAME"])
}

fn is_by_position(tokens: &[TokenWithSpan], at: usize) -> bool {
    is_insert(tokens, at) && is_one_of(tokens, at + 1, &["POSITION"])
}

fn is_insert(tokens: &[TokenWithSpan], at: usize) -> bool {
    if !is_one_of(tokens, at, &["BY"]) {
        return false;
    }
    // Common tables may stand before it.
    let first = match is_one_of(tokens, 0, &["WITH"]) {
        true => next_outside(tokens, 0, |place| is_one_of(tokens, place, &["INSERT"])),
        false => 0,
    };
    is_one_of(tokens, first, &["INSERT"])
        && (first + 2..=first + 12).contains(&at)
        && next_outside(tokens, first, |place| {
            is_one_of(tokens, place, &["BY", "SELECT", "VALUES", "FROM"])
        }) == at
}

fn begins_item(written: &[TokenWithSpan], before: usize) -> bool {
    is_token(written, before, &Token::Comma)
        || is_token(written, before, &Token::LParen)
        || is_one_of(written, before, &["SELECT", "DISTINCT", "ALL"])
}

/// The length of `* NOT LIKE 'a%'` and its kind; ILIKE without NOT is the parser's.
fn pattern(rest: &[TokenWithSpan]) -> Option<usize> {
    let operator = 1 + usize::from(is_one_of(rest, 1, &["NOT"]));
    let end = if is_one_of(rest, operator, &["SIMILAR"]) && is_one_of(rest, operator + 1, &["TO"]) {
        operator + 3
    } else if is_one_of(rest, operator, &["LIKE", "ILIKE", "GLOB"]) {
        operator + 2
    } else {
        return None;
    };
    let text = rest.get(end - 1).map(|token| &token.token);
    let is_text = matches!(text, Some(Token::SingleQuotedString(_)));
    (is_text && word_at(rest, operator).is_some()).then_some(end)
}
