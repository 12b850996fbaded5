//! Operators that are words and that the parser has not: `5 DIV 2`, `5 MOD 2`, `x BETWEEN SYMMETRIC b AND a`.
//!
//! In: the parser before an operator. Out: how tight it binds, the expression, or nothing where the parser knows better.
//! Invariant: DIV and MOD are operators only before an operand, so that both are names elsewhere.
//! Not here: signs and powers (dialect.rs), GLOB (expression_forms.rs).

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// How tight the next token binds.
pub(super) fn precedence(dialect: &dyn Dialect, parser: &Parser<'_>) -> Option<u8> {
    match &parser.peek_token_ref().token {
        Token::Word(word) if word.keyword == Keyword::DIV => Some(match division(parser) {
            Some(_) => dialect.prec_value(Precedence::MulDivModOp),
            None => 0,
        }),
        _ => division(parser).map(|_| dialect.prec_value(Precedence::MulDivModOp)),
    }
}

/// The operator that DIV or MOD is here.
fn division(parser: &Parser<'_>) -> Option<BinaryOperator> {
    let Token::Word(word) = &parser.peek_token_ref().token else {
        return None;
    };
    let operator = match word.value.to_uppercase().as_str() {
        "DIV" if word.quote_style.is_none() => BinaryOperator::DuckIntegerDivide,
        "MOD" if word.quote_style.is_none() => BinaryOperator::Modulo,
        _ => return None,
    };
    let is_operand = match &parser.peek_nth_token_ref(1).token {
        Token::Number(..) | Token::Placeholder(_) | Token::LParen | Token::Minus | Token::Plus => {
            true
        }
        Token::Word(word) => !RESERVED_FOR_COLUMN_ALIAS.contains(&word.keyword),
        _ => false,
    };
    is_operand.then_some(operator)
}

/// `5 DIV 2`, `x [NOT] BETWEEN SYMMETRIC b AND a`.
pub(super) fn infix(
    dialect: &dyn Dialect,
    parser: &mut Parser<'_>,
    expr: &Expr,
) -> Option<Result<Expr, ParserError>> {
    if let Some(op) = division(parser) {
        parser.advance_token();
        let second = parser.parse_subexpr(dialect.prec_value(Precedence::MulDivModOp));
        return Some(second.map(|second| Expr::BinaryOp {
            left: Box::new(expr.clone()),
            op,
            right: Box::new(second),
        }));
    }
    let word = |nth: usize| match &parser.peek_nth_token_ref(nth).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_negated = word(0) == Keyword::NOT;
    let words = usize::from(is_negated);
    if word(words) != Keyword::BETWEEN || word(words + 1) != Keyword::SYMMETRIC {
        return None;
    }
    (0..words + 2).for_each(|_| parser.advance_token());
    let between = symmetric(dialect, parser, expr);
    Some(between.map(|between| match is_negated {
        true => Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(between),
        },
        false => between,
    }))
}

/// Between the bounds in either order: NULL among them has the outcome of both comparisons.
fn symmetric(
    dialect: &dyn Dialect,
    parser: &mut Parser<'_>,
    expr: &Expr,
) -> Result<Expr, ParserError> {
    let bound = dialect.prec_value(Precedence::Between);
    let first = parser.parse_subexpr(bound)?;
    parser.expect_keyword(Keyword::AND)?;
    let second = parser.parse_subexpr(bound)?;
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: Box::new(expr.clone()),
        negated: false,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    Ok(Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(between(&first, &second)),
        op: BinaryOperator::Or,
        right: Box::new(between(&second, &first)),
    })))
}
