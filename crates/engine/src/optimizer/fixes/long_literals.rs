//! Literals of more digits than a double holds, such as `12345678901234567.89`.
//!
//! In: a parsed statement, before the host plans it. Out: the statement with a function without arguments in the place of
//! each such literal, and the functions.
//! Invariant: the function is a double of the literal's name and value, as the host would have it; beside a DECIMAL its text
//! is read again (decimals.rs).
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

use super::decimals::Written;
use crate::sql::params::call;
use crate::sql::statement::visit;

/// Digits that every double gives back as they were written.
const DOUBLE_DIGITS: usize = 15;

/// Puts the functions in their places and tells the state that will plan the statement about them.
pub fn keep_long_literals(statement: &mut Statement, state: &mut SessionState) -> Result<()> {
    let mut literals = LongLiterals::default();
    let ControlFlow::Continue(()) = visit(statement, &mut literals);
    for text in literals.texts {
        let function = LongLiteral::new(text);
        state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)))?;
    }
    Ok(())
}

/// The text of the literal that a call stands for.
pub(super) fn text_of(call: &ScalarFunction) -> Option<&str> {
    let literal = call.func.inner().downcast_ref::<LongLiteral>();
    literal.map(|literal| literal.text.as_str())
}

#[derive(Debug, Default)]
struct LongLiterals {
    texts: BTreeSet<String>,
}

impl VisitorMut for LongLiterals {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Infallible> {
        let text = match &*expr {
            SqlExpr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => long(expr).map(|text| format!("-{text}")),
            expr => long(expr),
        };
        if let Some(text) = text {
            *expr = call(text.clone());
            self.texts.insert(text);
        }
        ControlFlow::Continue(())
    }
}

/// The text of a literal whose double has lost digits, and whose decimal has not.
fn long(expr: &SqlExpr) -> Option<String> {
    let SqlExpr::Value(value) = expr else {
        return None;
    };
    let Value::Number(text, _) = &value.value else {
        return None;
    };
    let text = text.replace('_', "");
    let significant = text.trim_start_matches(['0', '.']).trim_end_matches('0');
    let digits = significant.bytes().filter(u8::is_ascii_digit).count();
    let is_long = text.contains('.') && digits > DOUBLE_DIGITS;
    (is_long && Written::parse(&text).is_some()).then_some(text)
}

/// A function without arguments that stands for a literal.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LongLiteral {
    text: String,
    signature: Signature,
}

impl LongLiteral {
    fn new(text: String) -> Self {
        Self {
            text,
            signature: Signature::nullary(Volatility::Immutable),
        }
    }

    fn double(&self) -> ScalarValue {
        ScalarValue::Float64(self.text.parse().ok())
    }
}

impl ScalarUDFImpl for LongLiteral {
    fn name(&self) -> &str {
        &self.text
    }

    /// The host's for the double, so that columns keep their names.
    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(Expr::Literal(self.double(), None).schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let literal = Expr::Literal(self.double(), None);
        Ok(ExprSimplifyResult::Simplified(literal))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.double()))
    }
}
