//! Words that are names where they stand, though the parser knows them: `SELECT top FROM t`, `SELECT a, values FROM t`,
//! `ORDER BY interval`, `user.a`.
//!
//! In: tokens. Out: the same tokens, in which such a word is a name like any other.
//! Invariant: what may begin an expression, a clause or a type stays a keyword; a word before a dot is a name.
//! Not here: forms that begin with a word (tokens.rs, token_forms.rs).

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Makes names of such words.
pub(super) fn name_words(tokens: &mut [TokenWithSpan]) {
    let places: Vec<usize> = (0..tokens.len())
        .filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_)))
        .collect();
    for (nth, &at) in places.iter().enumerate() {
        let before = nth.checked_sub(1).map(|nth| &tokens[places[nth]].token);
        let after = places.get(nth + 1).map(|&at| &tokens[at].token);
        if let Some(keyword) = keyword_of(&tokens[at].token)
            && is_name(keyword, before, after)
            && let Token::Word(word) = &mut tokens[at].token
        {
            word.keyword = Keyword::NoKeyword;
        }
    }
}

fn keyword_of(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

fn is_name(keyword: Keyword, before: Option<&Token>, after: Option<&Token>) -> bool {
    use Keyword::*;
    if matches!(after, Some(Token::Period)) {
        return !matches!(keyword, END | NoKeyword);
    }
    match keyword {
        TOP => {
            let follows_select =
                matches!(before.and_then(keyword_of), Some(SELECT | DISTINCT | ALL));
            let is_number = matches!(
                after,
                Some(Token::Number(..) | Token::LParen | Token::Placeholder(_))
            );
            !(follows_select && is_number)
        }
        INTERVAL | STRUCT | EXISTS | TRIM => begins_expression(before) && ends_expression(after),
        // Behind a comma the parser takes them for the end of the list, behind an item not for its alias.
        VALUES | EXCLUDE | VIEW | CLUSTER | SORT | DISTRIBUTE | EXPLAIN | ANALYZE | START
        | SAMPLE | MATCH => {
            let is_begun = matches!(before, Some(Token::Comma)) || ended_expression(before);
            is_begun && ends_expression(after)
        }
        _ => false,
    }
}

/// Whether an expression, or a table of FROM, may have ended with this token.
fn ended_expression(before: Option<&Token>) -> bool {
    match before {
        Some(Token::Word(word)) => {
            word.quote_style.is_some() || matches!(word.keyword, Keyword::NoKeyword | Keyword::AS)
        }
        Some(
            Token::Number(..) | Token::SingleQuotedString(_) | Token::RParen | Token::RBracket,
        ) => true,
        _ => false,
    }
}

/// Whether an expression begins behind this token, and no type.
fn begins_expression(before: Option<&Token>) -> bool {
    use Keyword::*;
    match before {
        Some(Token::Word(word)) => matches!(
            word.keyword,
            SELECT
                | DISTINCT
                | ALL
                | BY
                | WHERE
                | AND
                | OR
                | NOT
                | ON
                | HAVING
                | QUALIFY
                | CASE
                | WHEN
                | THEN
                | ELSE
                | IN
                | BETWEEN
                | LIKE
                | SET
        ),
        Some(
            Token::Comma
            | Token::LParen
            | Token::LBracket
            | Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div,
        ) => true,
        _ => false,
    }
}

/// Whether an expression may end before this token, and begin no more.
fn ends_expression(after: Option<&Token>) -> bool {
    use Keyword::*;
    match after {
        None => true,
        Some(Token::Word(word)) => matches!(
            word.keyword,
            FROM | AS
                | IS
                | IN
                | ORDER
                | GROUP
                | WHERE
                | HAVING
                | QUALIFY
                | LIMIT
                | UNION
                | ASC
                | DESC
                | NULLS
                | AND
                | OR
                | THEN
                | ELSE
                | END
                | WHEN
                | LIKE
                | ILIKE
                | BETWEEN
        ),
        Some(
            Token::EOF
            | Token::SemiColon
            | Token::Comma
            | Token::RParen
            | Token::RBracket
            | Token::LBracket
            | Token::Eq
            | Token::Neq
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Mul
            | Token::Div
            | Token::DoubleColon,
        ) => true,
        _ => false,
    }
}
