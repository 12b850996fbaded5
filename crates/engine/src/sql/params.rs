//! Values for the parameters of a statement: `$1`, `?` or `$name`.
//!
//! In: a parsed statement and the values given for it. Out: the statement with functions in the places of its
//! parameters; of DataFusion's plan for it, the plan with the values.
//! Invariant: a parameter has the type of its value from the first moment of planning, as a literal in its place would.
//! Not here: statements that get their values later (prepared.rs); `CREATE FUNCTION`, whose parameters are its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ParamValues, Result as DataFusionResult, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Function, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Statement as SqlStatement, Value, ValueWithSpan, VisitorMut,
};

use crate::error::{Error, Result};
use crate::expr::function_methods::function_methods;
use crate::sql::walk::visit;

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
/// DataFusion would see the values after planning only, and until then it takes every parameter for NULL: `? || ?` and
/// `sum(?)` fail. A function has a type.
pub(crate) fn bind(
    statement: &mut DataFusionStatement,
    params: &Params,
    variables: BTreeMap<String, ScalarValue>,
    state: &mut SessionState,
) -> Result<()> {
    for (name, value) in &variables {
        state.register_udf(Arc::new(Parameter::function(
            name.clone(),
            value,
            Part::Whole,
        )))?;
    }
    if let DataFusionStatement::Statement(sql) = statement
        && let SqlStatement::CreateFunction(_) = **sql
    {
        return Ok(());
    }
    let values = params.values();
    let mut marks = Marks {
        names: BTreeSet::new(),
        values: &values,
        elements: Vec::new(),
    };
    let ControlFlow::Continue(()) = visit(statement, &mut marks);
    check(&marks.names, &values)?;
    for (name, value) in marks.elements {
        let element = Parameter::function(name, &value, Part::Element);
        state.register_udf(Arc::new(element))?;
    }
    for (name, value) in values {
        state.register_udf(Arc::new(Parameter::function(name, value, Part::Whole)))?;
    }
    Ok(())
}

/// The plan of a bound statement with the values in the places of the functions.
pub(crate) fn resolve(plan: LogicalPlan, params: Params) -> Result<LogicalPlan> {
    let values = match params {
        Params::Positional(values) => ParamValues::from(values),
        Params::Named(values) => ParamValues::from(values),
        Params::None => return Ok(plan),
    };
    // DataFusion's own way from here on: it computes anew what depends on a value and not on its type alone.
    let plan = plan.transform_up_with_subqueries(|plan| {
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let expr = expr.transform_up(|part| Ok(as_placeholder(part)))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
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
    match parameter.map(Parameter::resolved) {
        Some(value) => Transformed::yes(value),
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
    Err(Error::invalid("parameters", message))
}

/// The names of a statement's parameters without the dollar sign: numbers as they count, then the others.
pub(crate) fn names(statement: &DataFusionStatement) -> Vec<String> {
    let mut marks = Marks {
        names: BTreeSet::new(),
        values: &BTreeMap::new(),
        elements: Vec::new(),
    };
    let ControlFlow::Continue(()) = visit(&mut statement.clone(), &mut marks);
    let names = marks.names.iter().filter_map(|name| name.strip_prefix('$'));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_by_key(|name| name.parse::<usize>().unwrap_or(usize::MAX));
    names
}

/// A value for each parameter of a statement that has none yet.
pub(crate) fn without_values(statement: &DataFusionStatement) -> Params {
    let names = names(statement).into_iter();
    let nulls: HashMap<_, _> = names.map(|name| (name, ScalarValue::Null)).collect();
    match nulls.is_empty() {
        true => Params::None,
        false => Params::Named(nulls),
    }
}

/// The parameters of a statement; each becomes a call on the way.
struct Marks<'a> {
    names: BTreeSet<String>,
    values: &'a BTreeMap<String, &'a ScalarValue>,
    /// Values of lists behind IN, under names of their own.
    elements: Vec<(String, ScalarValue)>,
}

impl Marks<'_> {
    /// The first parameter of the same value: `SELECT n % ? … GROUP BY n % ?` is then a grouping by what it selects.
    fn first_equal<'a>(&'a self, name: &'a str) -> &'a str {
        let Some(wanted) = self.values.get(name) else {
            return name;
        };
        let mut same = self.values.iter().filter(|(_, value)| *value == wanted);
        same.next().map_or(name, |(first, _)| first.as_str())
    }

    /// `IN ?` with a list means its values; an empty one has none that is equal, not even to NULL.
    fn spread(&mut self, expr: &mut SqlExpr) {
        let SqlExpr::InList { list, negated, .. } = expr else {
            return;
        };
        let [SqlExpr::Value(value)] = list.as_slice() else {
            return;
        };
        let Value::Placeholder(name) = &value.value else {
            return;
        };
        let Some(values) = self.values.get(name).and_then(|value| list_of(value)) else {
            return;
        };
        self.names.insert(name.clone());
        if values.is_empty() {
            *expr = SqlExpr::Value(Value::Boolean(*negated).into());
            return;
        }
        let first = self.elements.len();
        let named = values.into_iter().enumerate();
        let named = named.map(|(nth, value)| (format!("{name}[{}]", first + nth), value));
        let named: Vec<(String, ScalarValue)> = named.collect();
        *list = named.iter().map(|(name, _)| call(name.clone())).collect();
        self.elements.extend(named);
    }
}

/// The values of a list.
fn list_of(value: &ScalarValue) -> Option<Vec<ScalarValue>> {
    let values: ArrayRef = match value {
        ScalarValue::List(list) if list.is_valid(0) => list.value(0),
        ScalarValue::LargeList(list) if list.is_valid(0) => list.value(0),
        ScalarValue::FixedSizeList(list) if list.is_valid(0) => list.value(0),
        _ => return None,
    };
    let rows = 0..values.len();
    rows.map(|row| ScalarValue::try_from_array(&values, row).ok())
        .collect()
}

impl VisitorMut for Marks<'_> {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<Infallible> {
        self.spread(expr);
        ControlFlow::Continue(())
    }

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
            *expr = call(self.first_equal(name).to_string());
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
    part: Part,
    signature: Signature,
}

/// What a function stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// A parameter.
    Whole,
    /// A value of a parameter's list.
    Element,
}

impl Parameter {
    fn function(name: String, value: &ScalarValue, part: Part) -> ScalarUDF {
        ScalarUDF::new_from_impl(Parameter {
            name,
            value: value.clone(),
            part,
            signature: Signature::nullary(Volatility::Immutable),
        })
    }

    fn resolved(&self) -> Expr {
        if self.part == Part::Element {
            return Expr::Literal(self.value.clone(), None);
        }
        let field = Field::new("", self.value.data_type(), true);
        Expr::Placeholder(Placeholder::new_with_field(
            self.name.clone(),
            Some(Arc::new(field)),
        ))
    }
}

impl ScalarUDFImpl for Parameter {
    function_methods!();

    fn name(&self) -> &str {
        &self.name
    }

    /// The same as DataFusion's for a parameter, so that columns keep their names.
    fn schema_name(&self, _: &[Expr]) -> DataFusionResult<String> {
        Ok(self.name.clone())
    }

    /// The same, so that an aggregate whose FILTER or ORDER BY has it keeps its name.
    fn display_name(&self, _: &[Expr]) -> DataFusionResult<String> {
        Ok(self.name.clone())
    }

    fn return_type(&self, _: &[DataType]) -> DataFusionResult<DataType> {
        Ok(self.value.data_type())
    }

    /// What planning needs at once, such as the count of `numbers($1)`, it gets at once.
    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> DataFusionResult<ExprSimplifyResult> {
        let literal = Expr::Literal(self.value.clone(), None);
        Ok(ExprSimplifyResult::Simplified(literal))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value.clone()))
    }
}
