//! Statements that stand where a query does: `PIVOT t ON c`, `UNPIVOT t ON a, b`, `SUMMARIZE t`, `DESCRIBE t`, `SHOW TABLES`,
//! `SHOW FUNCTIONS`, `PRAGMA table_info('t')`. Also queries in brackets that begin with FROM.
//!
//! In: tokens. Out: `SELECT * FROM "pivot of"((SELECT * FROM t), (SELECT "list of", c), …)` and the like. `(SELECT a FROM t)` for
//! `(FROM t SELECT a)`, which the parser reads in FROM alone.
//! Invariant: such a word is a statement only where a query may begin, so that columns and tables may have its name.
//! Not here: what the calls mean (pivot.rs, unpivot.rs, summarize.rs, describe.rs); PIVOT behind a table, which the parser reads.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::Result;
use crate::functions::function_tables::FUNCTIONS;
use crate::sql::tokens::{
    Tokens, Written, closing, error_at, is_one_of, is_token, next_outside, opens, word_at,
};

/// Calls that stand for tables.
pub(crate) const PIVOT: &str = "pivot of";
pub(crate) const UNPIVOT: &str = "unpivot of";
pub(crate) const SUMMARIZE: &str = "summarize of";
pub(crate) const DESCRIBE: &str = "describe of";
pub(crate) const TABLES: &str = "tables of";
pub(crate) const TABLE_INFO: &str = "table info of";
pub(crate) const DEFINITION: &str = "definition of";
/// The first item of a select list that is nothing but a list.
pub(crate) const LIST: &str = "list of";

/// Words that begin such a statement.
const FORMS: [&str; 9] = [
    "PIVOT",
    "PIVOT_WIDER",
    "UNPIVOT",
    "PIVOT_LONGER",
    "SUMMARIZE",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "PRAGMA",
];

/// Words that begin what stands behind the lists of PIVOT and UNPIVOT.
const AFTER: [&str; 6] = ["ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT"];

/// Words between queries.
const SETS: [&str; 4] = ["UNION", "INTERSECT", "EXCEPT", "MINUS"];

/// Words that begin what stands behind the tables of a query.
const BEHIND_FROM: [&str; 10] = [
    "PREWHERE", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET",
    "FETCH",
];

/// Words that begin a query.
const QUERIES: [&str; 5] = ["SELECT", "FROM", "WITH", "VALUES", "TABLE"];

pub(in crate::sql) fn rewrite(mut tokens: Tokens) -> Result<Tokens> {
    // From the last to the first: inner forms are put before those around them.
    for at in (0..tokens.len()).rev() {
        if is_one_of(&tokens, at, &["FROM"]) && at > 0 && is_token(&tokens, at - 1, &Token::LParen)
        {
            let end = next_outside(&tokens, at, |_| false);
            let query = select_first(&tokens[at..end]);
            tokens.splice(at..end, query);
            continue;
        }
        if !is_one_of(&tokens, at, &FORMS) || !begins_query(&tokens, at) {
            continue;
        }
        let end = next_outside(&tokens, at, |_| false);
        if let Some(query) = query(&tokens[at..end])? {
            tokens.splice(at..end, query);
        }
    }
    Ok(tokens)
}

/// Whether a query in brackets begins with FROM; there may be white space among the tokens.
pub(in crate::sql) fn has_from_first(tokens: &[TokenWithSpan]) -> bool {
    let mut code = (tokens.iter()).filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut is_open = false;
    code.any(|token| {
        let is_first = is_open && is_one_of(std::slice::from_ref(token), 0, &["FROM"]);
        is_open = token.token == Token::LParen;
        is_first
    })
}

/// `SELECT a FROM t WHERE b` for `FROM t SELECT a WHERE b`; `SELECT * FROM t` for `FROM t`.
fn select_first(tokens: &[TokenWithSpan]) -> Tokens {
    let start = Written::at(tokens[0].span);
    let is_set = |at: usize| {
        let is_left_out = is_token(tokens, at.saturating_sub(1), &Token::Mul);
        is_one_of(tokens, at, &SETS) && !is_left_out
    };
    let select = next_outside(tokens, 1, |at| {
        is_set(at) || is_one_of(tokens, at, &["SELECT"])
    });
    if !is_one_of(tokens, select, &["SELECT"]) {
        return start.sql("SELECT *").copy(tokens).tokens;
    }
    let rest = next_outside(tokens, select + 1, |at| {
        is_set(at) || is_one_of(tokens, at, &BEHIND_FROM)
    });
    let list = start.copy(&tokens[select..rest]);
    list.copy(&tokens[..select]).copy(&tokens[rest..]).tokens
}

/// Whether a query may begin at this place.
fn begins_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else {
        return true;
    };
    match &tokens[before].token {
        Token::LParen => true,
        Token::SemiColon => true,
        // WITH c AS (…) PIVOT c
        Token::RParen => {
            is_one_of(tokens, 0, &["WITH"])
                && next_outside(tokens, 0, |place| {
                    place == at || is_one_of(tokens, place, &["SELECT", "FROM"])
                }) == at
        }
        _ if is_one_of(tokens, before, &["EXPLAIN", "ANALYZE", "VERBOSE"]) => true,
        // CREATE TABLE p AS PIVOT c
        _ => {
            is_one_of(tokens, before, &["AS"])
                && is_one_of(tokens, 0, &["CREATE"])
                && next_outside(tokens, 0, |place| is_one_of(tokens, place, &["AS"])) == before
        }
    }
}

/// The query that `tokens`, up to the end of the bracket or of the statement, stand for.
fn query(tokens: &[TokenWithSpan]) -> Result<Option<Tokens>> {
    let is_name = match tokens.get(1).map(|next| &next.token) {
        Some(Token::Word(_) | Token::SingleQuotedString(_) | Token::LParen) => false,
        Some(_) => true,
        None => !is_one_of(tokens, 0, &["DESCRIBE", "SHOW"]),
    };
    let Some(word) = word_at(tokens, 0).filter(|word| word.quote_style.is_none() && !is_name)
    else {
        return Ok(None);
    };
    let mut rest = &tokens[1..];
    let selected;
    if is_one_of(rest, 0, &["FROM"]) && !is_one_of(tokens, 0, &["SHOW"]) {
        selected = Written::at(rest[0].span).sql("SELECT *").copy(rest).tokens;
        rest = &selected;
    }
    let start = Written::at(tokens[0].span).sql("SELECT * FROM");
    let written = match word.value.to_uppercase().as_str() {
        "PIVOT" | "PIVOT_WIDER" => pivot(start, rest)?,
        "UNPIVOT" | "PIVOT_LONGER" => unpivot(start, rest)?,
        "SUMMARIZE" => call(start, SUMMARIZE, &[Argument::Source(rest)]),
        "DESCRIBE" | "DESC" if rest.is_empty() => call(start, TABLES, &[]),
        "DESCRIBE" | "DESC" if is_one_of(rest, 0, &["FUNCTION"]) && rest.len() == 2 => {
            let name = named(&rest[1]).ok_or_else(|| error_at(&rest[1], "expected the name of a function"))?;
            start.name(FUNCTIONS).sql("(").string(name).sql(")")
        }
        "DESCRIBE" | "DESC" => {
            let skipped = usize::from(is_one_of(rest, 0, &["TABLE"]) && rest.len() == 2);
            call(start, DESCRIBE, &[Argument::Source(&rest[skipped..])])
        }
        "SHOW" => match shown(rest) {
            Some(ShowForm::Tables) => call(start, TABLES, &[]),
            Some(ShowForm::TablesOf(schema)) => start
                .sql("( SELECT table_name AS name FROM information_schema . tables WHERE table_schema =")
                .string(&schema)
                .sql("ORDER BY ALL )"),
            Some(ShowForm::Databases) => start
                .sql("( SELECT DISTINCT catalog_name AS database_name FROM information_schema . schemata ORDER BY ALL )"),
            Some(ShowForm::Functions(like)) => {
                let all = start.name(FUNCTIONS).sql("( )");
                all.sql(if like.is_empty() { "" } else { "WHERE function_name" }).copy(like)
            }
            Some(ShowForm::Definition(table)) => call(start, DEFINITION, &[Argument::Source(table)]),
            Some(ShowForm::Columns(table)) => call(start, DESCRIBE, &[Argument::Source(table)]),
            None => return Ok(None),
        },
        "PRAGMA" if is_one_of(rest, 0, &["SHOW_TABLES"]) && rest.len() == 1 => {
            call(start, TABLES, &[])
        }
        "PRAGMA"
            if is_one_of(rest, 0, &["TABLE_INFO"])
                && is_token(rest, 1, &Token::LParen)
                && rest.len() == 4 =>
        {
            call(start, TABLE_INFO, &[Argument::Source(&rest[2..3])])
        }
        _ => return Ok(None),
    };
    Ok(Some(written.tokens))
}

/// A name or a string.
fn named(token: &TokenWithSpan) -> Option<&str> {
    match &token.token {
        Token::Word(word) => Some(&word.value),
        Token::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

enum ShowForm<'a> {
    Tables,
    TablesOf(String),
    Databases,
    /// Those whose names are `LIKE '…'` or ILIKE.
    Functions(&'a [TokenWithSpan]),
    Definition(&'a [TokenWithSpan]),
    Columns(&'a [TokenWithSpan]),
}

fn shown(rest: &[TokenWithSpan]) -> Option<ShowForm<'_>> {
    match rest {
        [_, _, _] if is_one_of(rest, 0, &["TABLES"]) && is_one_of(rest, 1, &["FROM", "IN"]) => {
            match word_at(rest, 2)?.value.to_lowercase().as_str() {
                // The schema of tables that name none; DuckDB calls it main.
                "main" | "public" => Some(ShowForm::Tables),
                schema => Some(ShowForm::TablesOf(schema.to_owned())),
            }
        }
        [_] if is_one_of(rest, 0, &["TABLES"]) => Some(ShowForm::Tables),
        [_] if is_one_of(rest, 0, &["DATABASES"]) => Some(ShowForm::Databases),
        [_, like @ ..]
            if is_one_of(rest, 0, &["FUNCTIONS"])
                && (like.is_empty()
                    || like.len() == 2 && is_one_of(like, 0, &["LIKE", "ILIKE"])) =>
        {
            Some(ShowForm::Functions(like))
        }
        [_, _, table @ ..]
            if is_one_of(rest, 0, &["CREATE"])
                && is_one_of(rest, 1, &["TABLE", "VIEW"])
                && !table.is_empty() =>
        {
            Some(ShowForm::Definition(table))
        }
        [_, _] if is_one_of(rest, 0, &["ALL"]) && is_one_of(rest, 1, &["TABLES"]) => {
            Some(ShowForm::Tables)
        }
        [_, _, _, ..]
            if is_one_of(rest, 0, &["COLUMNS"])
                && is_one_of(rest, 1, &["FROM", "IN"])
                && next_outside(rest, 2, |at| {
                    is_one_of(rest, at, &["LIKE", "WHERE", "FROM", "IN"])
                }) == rest.len() =>
        {
            Some(ShowForm::Columns(&rest[2..]))
        }
        _ => None,
    }
}

/// One argument of such a call.
enum Argument<'a> {
    /// A table or a query.
    Source(&'a [TokenWithSpan]),
    /// Items of a select list.
    List(&'a [TokenWithSpan]),
}

fn call(start: Written, name: &str, arguments: &[Argument<'_>]) -> Written {
    let mut written = start.name(name).sql("(");
    for (number, argument) in arguments.iter().enumerate() {
        written = written.sql(if number == 0 { "(" } else { ", (" });
        written = match argument {
            Argument::Source(tokens) if is_one_of(tokens, 0, &QUERIES) => written.copy(tokens),
            Argument::Source(tokens) if is_whole(tokens) => {
                written.copy(&tokens[1..tokens.len() - 1])
            }
            Argument::Source(tokens) => written.sql("SELECT * FROM").copy(tokens),
            Argument::List([]) => written.sql("SELECT").name(LIST),
            Argument::List(tokens) => written.sql("SELECT").name(LIST).sql(",").copy(tokens),
        };
        written = written.sql(")");
    }
    written.sql(")")
}

/// Whether all of it is one query in parentheses.
fn is_whole(tokens: &[TokenWithSpan]) -> bool {
    is_token(tokens, 0, &Token::LParen)
        && closing(tokens, 0) + 1 == tokens.len()
        && (is_one_of(tokens, 1, &QUERIES)
            || tokens.get(1).is_some_and(|token| opens(&token.token)))
}

/// `t ON … USING … GROUP BY …`, each but the table left out at will.
fn pivot(start: Written, rest: &[TokenWithSpan]) -> Result<Written> {
    let after = next_outside(rest, 0, |at| is_one_of(rest, at, &AFTER));
    let group = next_outside(rest, 0, |at| {
        at >= after || is_one_of(rest, at, &["GROUP"]) && is_one_of(rest, at + 1, &["BY"])
    });
    let on = next_outside(rest, 0, |at| at >= group || is_one_of(rest, at, &["ON"]));
    let using_from = if on < group { on } else { 0 };
    let using = next_outside(rest, using_from, |at| {
        at >= group || is_one_of(rest, at, &["USING"])
    });
    let source = on.min(using);
    if source == 0 {
        return Err(error_at(&rest[0], "PIVOT names no table"));
    }
    let list = |from: usize, words: usize, to: usize| {
        Argument::List(rest.get(from + words..to).unwrap_or_default())
    };
    let arguments = [
        Argument::Source(&rest[..source]),
        list(on, 1, using),
        list(using, 1, group),
        list(group, 2, after),
    ];
    Ok(call(start, PIVOT, &arguments).copy(&rest[after..]))
}

/// `t ON … INTO NAME n VALUE v`, of which INTO may be left out.
fn unpivot(start: Written, rest: &[TokenWithSpan]) -> Result<Written> {
    let after = next_outside(rest, 0, |at| is_one_of(rest, at, &AFTER));
    let into = next_outside(rest, 0, |at| at >= after || is_one_of(rest, at, &["INTO"]));
    let on = next_outside(rest, 0, |at| at >= into || is_one_of(rest, at, &["ON"]));
    if on == into {
        return Err(error_at(
            &rest[0],
            "UNPIVOT needs ON and the columns to stack",
        ));
    }
    let mut names: Tokens = Vec::new();
    if into < after {
        let value = next_outside(rest, into, |at| {
            at >= after || is_one_of(rest, at, &["VALUE", "VALUES"])
        });
        let name = rest.get(into + 2..value).unwrap_or_default();
        if !is_one_of(rest, into + 1, &["NAME"]) || name.len() != 1 || value + 1 >= after {
            let message = "INTO is written INTO NAME column VALUE column";
            return Err(error_at(&rest[into], message));
        }
        names = Written::at(rest[into].span)
            .copy(name)
            .sql(",")
            .copy(&rest[value + 1..after])
            .tokens;
    }
    let arguments = [
        Argument::Source(&rest[..on]),
        Argument::List(&rest[on + 1..into]),
        Argument::List(&names),
    ];
    Ok(call(start, UNPIVOT, &arguments).copy(&rest[after..]))
}
