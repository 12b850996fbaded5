//! Values for the parameters of a statement: `$1`, `?` or `$name`.
//!
//! In: a parsed statement and the values given for it. Out: the statement with functions in the places of its
//! parameters; of the host's plan for it, the plan with the values.
//! Invariant: a parameter has the type of its value from the first moment of planning, as a literal in its place would.
//! Not here: `PREPARE` and `CREATE FUNCTION`, whose parameters get their values later.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ParamValues, Result as HostResult, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Statement as PlanStatement, Volatility,
};
use datafusion::sql::parser::Statement as HostStatement;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Function, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Statement as SqlStatement, Value, ValueWithSpan, VisitorMut,
};

use crate::error::{Error, Result};
use crate::sql::statement::visit;

/// Values for `$1`, `?` or `$name` in a statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Params {
    /// There are none.
    #[default]
    None,
    /// For `$1`, `$2`, … or `?`.
    Positional(Vec<ScalarValue>),
    /// For `$name`.
    Named(HashMap<String, ScalarValue>),
}

impl Params {
    /// Each value under the name that the statement has for it, dollar sign included.
    fn values(&self) -> BTreeMap<String, &ScalarValue> {
        match self {
            Params::None => BTreeMap::new(),
            Params::Positional(values) => {
                let numbered = values.iter().enumerate();
                numbered
                    .map(|(index, value)| (format!("${}", index + 1), value))
                    .collect()
            }
            Params::Named(values) => {
                let named = values.iter();
                named
                    .map(|(name, value)| (format!("${name}"), value))
                    .collect()
            }
        }
    }
}

/// Puts a function in the place of each parameter and tells the state that will plan the statement about them.
///
/// The host would see the values after planning only, and until then it takes every parameter for NULL: `? || ?` and
/// `sum(?)` fail. A function has a type.
pub(crate) fn bind(
    statement: &mut HostStatement,
    params: &Params,
    variables: BTreeMap<String, ScalarValue>,
    state: &mut SessionState,
) -> Result<()> {
    for (name, value) in &variables {
        state.register_udf(Arc::new(Parameter::function(name.clone(), value)))?;
    }
    if let HostStatement::Statement(sql) = statement
        && let SqlStatement::Prepare { .. } | SqlStatement::CreateFunction(_) = **sql
    {
        return Ok(());
    }
    let mut marks = Marks::default();
    let ControlFlow::Continue(()) = visit(statement, &mut marks);
    let values = params.values();
    check(&marks.names, &values)?;
    for (name, value) in values {
        state.register_udf(Arc::new(Parameter::function(name, value)))?;
    }
    Ok(())
}

/// The plan of a bound statement with the values in the places of the functions.
pub(crate) fn resolve(plan: LogicalPlan, params: Params) -> Result<LogicalPlan> {
    let is_prepare = matches!(plan, LogicalPlan::Statement(PlanStatement::Prepare(_)));
    let values = match params {
        Params::Positional(values) if !is_prepare => ParamValues::from(values),
        Params::Named(values) if !is_prepare => ParamValues::from(values),
        _ => return Ok(plan),
    };
    // The host's own way from here on: it computes anew what depends on a value and not on its type alone.
    let plan = plan.transform_up_with_subqueries(|plan| {
        plan.map_expressions(|expr| expr.transform_up(|part| Ok(as_placeholder(part))))
    })?;
    Ok(plan.data.with_param_values(values)?)
}

fn as_placeholder(expr: Expr) -> Transformed<Expr> {
    let parameter = match &expr {
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<Parameter>(),
        _ => None,
    };
    // Variables of the session stay functions.
    let parameter = parameter.filter(|parameter| parameter.name.starts_with('$'));
    match parameter.map(Parameter::placeholder) {
        Some(placeholder) => Transformed::yes(placeholder),
        None => Transformed::no(expr),
    }
}

fn check(wanted: &BTreeSet<String>, given: &BTreeMap<String, &ScalarValue>) -> Result<()> {
    let listed = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(", ");
    let missing: Vec<&String> = wanted
        .iter()
        .filter(|name| !given.contains_key(*name))
        .collect();
    let extra: Vec<&String> = given
        .keys()
        .filter(|name| !wanted.contains(*name))
        .collect();
    let message = match (missing.is_empty(), extra.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => format!("no value is given for {}", listed(missing)),
        (true, false) => format!("the statement does not use {}", listed(extra)),
    };
    Err(Error::Invalid {
        name: "parameters".to_string(),
        message,
    })
}

/// The parameters of a statement; each becomes a call on the way.
#[derive(Debug, Default)]
struct Marks {
    names: BTreeSet<String>,
}

impl VisitorMut for Marks {
    type Break = Infallible;

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<Infallible> {
        if let Value::Placeholder(name) = &value.value {
            self.names.insert(name.clone());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Infallible> {
        if let SqlExpr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            *expr = call(name.clone());
        }
        ControlFlow::Continue(())
    }
}

/// A call of a function without arguments.
pub(crate) fn call(name: String) -> SqlExpr {
    SqlExpr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote(
            '"', name,
        ))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A function without arguments that stands for a parameter while the statement is planned.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Parameter {
    name: String,
    value: ScalarValue,
    signature: Signature,
}

impl Parameter {
    fn function(name: String, value: &ScalarValue) -> ScalarUDF {
        ScalarUDF::new_from_impl(Parameter {
            name,
            value: value.clone(),
            signature: Signature::nullary(Volatility::Immutable),
        })
    }

    fn placeholder(&self) -> Expr {
        let field = Field::new("", self.value.data_type(), true);
        Expr::Placeholder(Placeholder::new_with_field(
            self.name.clone(),
            Some(Arc::new(field)),
        ))
    }
}

impl ScalarUDFImpl for Parameter {
    fn name(&self) -> &str {
        &self.name
    }

    /// The same as the host's for a parameter, so that columns keep their names.
    fn schema_name(&self, _: &[Expr]) -> HostResult<String> {
        Ok(self.name.clone())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> HostResult<DataType> {
        Ok(self.value.data_type())
    }

    /// What planning needs at once, such as the count of `numbers($1)`, it gets at once.
    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> HostResult<ExprSimplifyResult> {
        let literal = Expr::Literal(self.value.clone(), None);
        Ok(ExprSimplifyResult::Simplified(literal))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> HostResult<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}
