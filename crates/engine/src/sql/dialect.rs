//! The dialect of SQL that is parsed: the parser's generic one, with PostgreSQL's operators for powers.
//!
//! In: tokens. Out: [`DIALECT`], what the parser takes them for.
//! Invariant: all else is the generic dialect's; each method that it has is listed here.
//! `^` and `**` bind tighter than `*` and looser than a sign, from left to right: `-2 ^ 2` is 4, `2 ^ 3 ^ 2` is 64. Operators on
//! bits and `@` bind as `||` does, looser than `+`, from left to right, as in PostgreSQL. Comparisons bind looser than LIKE and IN.
//! DuckDB's own is not it, though we follow DuckDB's functions: there `f(a = b)` is a named argument, so `count_if(a = 1)`
//! would not parse.
//! Not here: forms of ours within expressions (expression_forms.rs), what DataFusion does not plan (statement.rs,
//! optimizer/fixes/).

mod operator_words;
pub(in crate::sql) mod expression_forms;

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::sql::ast::call;

/// The dialect of every statement.
pub(crate) const DIALECT: GrouseDialect = GrouseDialect {};

#[derive(Debug)]
pub(crate) struct GrouseDialect {}

const GENERIC: GenericDialect = GenericDialect {};

#[derive(Debug, PartialEq, Eq)]
enum Containment {
    In,
    NotIn,
}

/// Whether `[NOT] IN ?` follows, a list as one value, where the parser wants parentheses.
fn placeholder_list(parser: &Parser<'_>) -> Option<Containment> {
    in_before(parser, |token| matches!(token, Token::Placeholder(_)))
}

/// Whether `[NOT] IN [1, 2]` or `[NOT] IN l` follows: what a list contains.
fn list_of_list(parser: &Parser<'_>) -> Option<Containment> {
    in_before(parser, |token| match token {
        Token::LBracket => true,
        Token::Word(word) => !matches!(word.keyword, Keyword::UNNEST),
        _ => false,
    })
}

/// Steps over `[NOT] IN`.
fn skip_in(parser: &mut Parser<'_>, form: &Containment) {
    let words = if *form == Containment::NotIn { 2 } else { 1 };
    (0..words).for_each(|_| parser.advance_token());
}

/// Whether `[NOT] IN (` follows, and then a list that begins with a parenthesis, `((SELECT 1) + 1, 5)`: the parser takes it for a
/// query.
fn list_of_queries(parser: &Parser<'_>) -> Option<Containment> {
    let form = in_before(parser, |token| *token == Token::LParen)?;
    let words = if form == Containment::NotIn { 2 } else { 1 };
    let tokens = (parser.index()..).map(|at| &parser.token_at(at).token);
    let mut tokens = tokens
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .skip(words + 1);
    let mut depth = 0_usize;
    loop {
        match tokens.next()? {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => break,
            Token::RParen => depth -= 1,
            Token::EOF => return None,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    expression_forms::goes_on(tokens.next()?).then_some(form)
}

/// The list of `[NOT] IN (…)`.
fn list(parser: &mut Parser<'_>) -> Result<Vec<Expr>, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(list)
}

/// Whether `[NOT] IN` follows, and then such a token.
fn in_before(parser: &Parser<'_>, is_list: impl Fn(&Token) -> bool) -> Option<Containment> {
    let word = |nth: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(nth).token, Token::Word(word) if word.keyword == keyword);
    let (form, at) = match word(0, Keyword::NOT) {
        true => (Containment::NotIn, 1),
        false => (Containment::In, 0),
    };
    let is_in = word(at, Keyword::IN) && is_list(&parser.peek_nth_token_ref(at + 1).token);
    is_in.then_some(form)
}

/// How tight a power binds: between a product and AT TIME ZONE, for which the generic dialect leaves no room.
const POWER: u8 = 41;
const AT_TIME_ZONE: u8 = 42;

/// How tight `=` and its kin bind: looser than LIKE, IN and BETWEEN, tighter than IS.
const COMPARISON: u8 = 18;

/// What the generic dialect says yes or no to.
macro_rules! as_generic {
    ($($question:ident)*) => {
        $(fn $question(&self) -> bool {
            GENERIC.$question()
        })*
    };
}

impl GrouseDialect {
    /// `x [NOT] IN` before what the parser does not take for a list.
    fn in_list(&self, parser: &mut Parser<'_>, expr: &Expr) -> Option<Result<Expr, ParserError>> {
        if let Some(form) = list_of_list(parser) {
            skip_in(parser, &form);
            let list = parser.parse_subexpr(self.prec_value(Precedence::Between));
            return Some(list.map(|list| {
                let found = call("list_contains", vec![list, expr.clone()]);
                match form {
                    Containment::In => found,
                    Containment::NotIn => Expr::UnaryOp {
                        op: UnaryOperator::Not,
                        expr: Box::new(found),
                    },
                }
            }));
        }
        let (form, list) = if let Some(form) = placeholder_list(parser) {
            skip_in(parser, &form);
            let placeholder = parser.parse_subexpr(self.prec_value(Precedence::Between));
            (form, placeholder.map(|placeholder| vec![placeholder]))
        } else {
            let form = list_of_queries(parser)?;
            skip_in(parser, &form);
            (form, list(parser))
        };
        Some(list.map(|list| Expr::InList {
            expr: Box::new(expr.clone()),
            list,
            negated: form == Containment::NotIn,
        }))
    }
}

impl Dialect for GrouseDialect {
    /// To the parser's own questions it is the generic one.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        GENERIC.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        GENERIC.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        GENERIC.is_identifier_part(character)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::AtTz => AT_TIME_ZONE,
            Precedence::Eq => COMPARISON,
            other => GENERIC.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        if is_power(parser) {
            return Some(Ok(POWER));
        }
        if parser.peek_token_ref().token == Token::ExclamationMark {
            return Some(Ok(AT_TIME_ZONE));
        }
        expression_forms::precedence(self, parser).map(Ok)
    }

    /// A sign binds tighter than a power; the parser's own would take `2 ^ 2` in `-2 ^ 2`.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return expression_forms::prefix(self, parser),
        };
        parser.advance_token();
        let signed = parser.parse_subexpr(POWER);
        Some(signed.map(|expr| Expr::UnaryOp {
            op,
            expr: Box::new(expr),
        }))
    }

    /// `a IS [NOT] DISTINCT FROM b AND c`: the parser takes all that follows FROM, `b AND c`, for the second operand.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if is_power(parser) {
            let words = if parser.consume_token(&Token::Caret) {
                0
            } else {
                2
            };
            (0..words).for_each(|_| parser.advance_token());
            let second = parser.parse_subexpr(POWER);
            return Some(second.map(|second| Expr::BinaryOp {
                left: Box::new(expr.clone()),
                op: BinaryOperator::PGExp,
                right: Box::new(second),
            }));
        }
        // PostgreSQL's exclusive or, for which the generic dialect has `^`.
        if parser.consume_token(&Token::Sharp) {
            let second = parser.parse_subexpr(self.prec_value(Precedence::Caret));
            return Some(second.map(|second| Expr::BinaryOp {
                left: Box::new(expr.clone()),
                op: BinaryOperator::PGBitwiseXor,
                right: Box::new(second),
            }));
        }
        if parser.consume_token(&Token::ExclamationMark) {
            return Some(Ok(call("factorial", vec![expr.clone()])));
        }
        use Keyword::{DISTINCT, FROM, IS, NOT};
        if let Some(found) = self.in_list(parser, expr) {
            return Some(found);
        }
        let form = if parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            Expr::IsDistinctFrom
        } else if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) {
            Expr::IsNotDistinctFrom
        } else {
            return expression_forms::infix(self, parser, expr);
        };
        let second = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(second.map(|second| form(Box::new(expr.clone()), Box::new(second))))
    }

    /// ON of `INSERT INTO t SELECT 1 ON CONFLICT DO NOTHING` is no alias.
    fn is_select_item_alias(
        &self,
        explicit: bool,
        word: &Keyword,
        parser: &mut Parser<'_>,
    ) -> bool {
        let is_conflict = !explicit && *word == Keyword::ON && begins_conflict(parser);
        !is_conflict && GENERIC.is_select_item_alias(explicit, word, parser)
    }

    /// `1_000_000` is a number; token_forms.rs takes the underscores out.
    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    fn supports_alter_column_type_using(&self) -> bool {
        true
    }

    /// `CREATE TABLE u (LIKE t)`.
    fn supports_create_table_like_parenthesized(&self) -> bool {
        true
    }

    /// Grouping sets are read by expression_forms.rs.
    fn supports_group_by_expr(&self) -> bool {
        false
    }

    as_generic! {
        supports_unicode_string_literal
        supports_partition_by_after_order_by
        supports_array_join_syntax
        supports_group_by_with_modifier
        supports_left_associative_joins_without_parens
        supports_connect_by
        supports_match_recognize
        supports_pipe_operator
        supports_start_transaction_modifier
        supports_window_function_null_treatment_arg
        supports_dictionary_syntax
        supports_window_clause_named_window_reference
        supports_parenthesized_set_variables
        supports_select_wildcard_except
        support_map_literal_syntax
        allow_extract_custom
        allow_extract_single_quotes
        supports_extract_comma_syntax
        supports_create_view_comment_syntax
        supports_parens_around_table_factor
        supports_values_as_table_factor
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_limit_comma
        supports_update_order_by
        supports_from_first_select
        supports_projection_trailing_commas
        supports_asc_desc_in_column_definition
        supports_try_convert
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_assignment_operator
        supports_struct_literal
        supports_empty_projections
        supports_nested_comments
        supports_multiline_comment_hints
        supports_user_host_grantee
        supports_string_escape_constant
        supports_array_typedef_with_brackets
        supports_match_against
        supports_set_names
        supports_comma_separated_set_assignments
        supports_filter_during_aggregation
        supports_select_wildcard_exclude
        supports_data_type_signed_suffix
        supports_interval_options
        supports_quote_delimited_string
        supports_select_wildcard_replace
        supports_select_wildcard_ilike
        supports_select_wildcard_rename
        supports_optimize_table
        supports_install
        supports_detach
        supports_prewhere
        supports_with_fill
        supports_limit_by
        supports_interpolate
        supports_settings
        supports_select_format
        supports_comment_optimizer_hint
        supports_constraint_keyword_without_name
        supports_key_column_option
        supports_comma_separated_trim
        supports_cte_without_as
        supports_select_item_multi_column_alias
        supports_xml_expressions
    }
}

/// Whether what follows ON is that of INSERT.
fn begins_conflict(parser: &Parser<'_>) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(word) if word.keyword == Keyword::CONFLICT)
}

/// Whether `^` or `**` comes next.
fn is_power(parser: &Parser<'_>) -> bool {
    match parser.peek_token_ref().token {
        Token::Caret => true,
        Token::Mul => {
            let second = parser.peek_nth_token_ref(1);
            let touches = parser.peek_token_ref().span.end == second.span.start;
            second.token == Token::Mul && touches
        }
        _ => false,
    }
}
