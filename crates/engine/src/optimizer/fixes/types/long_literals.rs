//! Literals of more digits than a double holds, such as `12345678901234567.89`.
//!
//! In: a parsed statement, before DataFusion plans it. Out: the statement with a function without arguments in the place of
//! each such literal, and the functions.
//! Invariant: the function has the literal's name. With a point it is a double, as DataFusion would have it, and its text is
//! read again beside a DECIMAL (decimals.rs). A whole number beyond 64 bits is a DECIMAL, where DataFusion has a double.
//! Not here: literals of up to 15 digits, which a double gives back as they were written.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, UnaryOperator, Value, VisitorMut};

use crate::expr::function_methods::function_methods;
use crate::optimizer::fixes::types::decimals::WrittenNumber;
use crate::sql::params::call;
use crate::sql::walk::visit;
use crate::wire::portable;

/// Digits that every double gives back as they were written.
const DOUBLE_DIGITS: usize = 15;

/// Puts the functions in their places and tells the state that will plan the statement about them.
pub fn keep_long_literals(statement: &mut Statement, state: &mut SessionState) -> Result<()> {
    if state.config_options().sql_parser.parse_float_as_decimal {
        return Ok(());
    }
    let mut literals = LongLiterals::default();
    let ControlFlow::Continue(()) = visit(statement, &mut literals);
    for text in literals.strings {
        let function = LongLiteral::new(text);
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)))?;
    }
    Ok(())
}

/// The text of the literal that a call stands for.
pub(in crate::optimizer::fixes) fn text_of(call: &ScalarFunction) -> Option<&str> {
    let literal = call.func.inner().downcast_ref::<LongLiteral>();
    literal.map(|literal| literal.text.as_str())
}

#[derive(Debug, Default)]
struct LongLiterals {
    strings: BTreeSet<String>,
}

impl VisitorMut for LongLiterals {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Infallible> {
        if let SqlExpr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: inner,
        } = expr
        {
            // The number in -(9223372036854775808) is none alone.
            while let SqlExpr::Nested(nested) = inner.as_mut()
                && matches!(**nested, SqlExpr::Value(_) | SqlExpr::Nested(_))
            {
                let number = std::mem::replace(nested.as_mut(), SqlExpr::value(Value::Null));
                **inner = number;
            }
        }
        let text = match &*expr {
            SqlExpr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => long(expr, "-"),
            expr => long(expr, ""),
        };
        if let Some(text) = text {
            *expr = call(text.clone());
            self.strings.insert(text);
        }
        ControlFlow::Continue(())
    }
}

/// The text of a literal whose double has lost digits, and whose decimal has not, with its sign.
fn long(expr: &SqlExpr, sign: &str) -> Option<String> {
    let SqlExpr::Value(value) = expr else {
        return None;
    };
    let Value::Number(text, _) = &value.value else {
        return None;
    };
    let text = format!("{sign}{}", text.replace('_', ""));
    let significant = text
        .trim_start_matches(['-', '0', '.'])
        .trim_end_matches('0');
    let digits = significant.bytes().filter(u8::is_ascii_digit).count();
    let is_long = match text.contains('.') {
        true => digits > DOUBLE_DIGITS,
        false => text.parse::<u64>().is_err() && text.parse::<i64>().is_err(),
    };
    (is_long && WrittenNumber::parse(&text).is_some()).then_some(text)
}

/// A function without arguments that stands for a literal.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct LongLiteral {
    text: String,
    value: ScalarValue,
    signature: Signature,
}

impl LongLiteral {
    fn new(text: String) -> Self {
        let whole = match text.contains('.') {
            true => None,
            false => WrittenNumber::parse(&text).map(WrittenNumber::narrowest),
        };
        Self {
            value: whole.unwrap_or_else(|| ScalarValue::Float64(text.parse().ok())),
            text,
            signature: Signature::nullary(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for LongLiteral {
    function_methods!();

    fn name(&self) -> &str {
        &self.text
    }

    /// The text as it was written, which the double has lost.
    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(self.text.clone())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.value.data_type())
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let literal = Expr::Literal(self.value.clone(), None);
        Ok(ExprSimplifyResult::Simplified(literal))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}

portable!(LongLiteral, "long_literal", text: text => LongLiteral::new);
