//! Definitions of a session: macros, variables and prepared statements.
//!
//! In: `CREATE MACRO`, `SET VARIABLE`, `PREPARE`. Out: statements in which calls of macros are what they stand for, and `getvariable`
//! is a function of the session with the value.
//! Invariant: arguments are expressions in parentheses, so that they bind as they are written; a macro that calls itself is
//! an error.
//! Not here: functions of DataFusion (functions/), options (options.rs).

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use datafusion::common::ScalarValue;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, MacroArg,
    MacroDefinition, ObjectName, TableFactor, VisitorMut,
};
use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::sql::ast::{derived, function_name, literal_text, plain_arguments, quoted};
use crate::sql::params;
use crate::sql::prepared::{self, Prepared};
use crate::sql::substitute::put;
use crate::sql::walk::{Walk, done, visit};

/// How deep macros may call macros.
const DEPTH_MAX: usize = 64;

/// What a session has defined.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    macros: RwLock<HashMap<String, Macro>>,
    variables: RwLock<HashMap<String, ScalarValue>>,
    prepared: RwLock<HashMap<String, Prepared>>,
}

/// A macro: parameters, some with defaults, and what it stands for.
#[derive(Debug, Clone)]
struct Macro {
    parameters: Vec<MacroArg>,
    definition: MacroDefinition,
}

impl Definitions {
    /// Defines a macro.
    pub fn create_macro(
        &self,
        name: &ObjectName,
        parameters: Vec<MacroArg>,
        definition: MacroDefinition,
        replace: Replace,
    ) -> Result<()> {
        let name = last_name(name);
        let mut macros = self.macros.write();
        if macros.contains_key(&name) && replace == Replace::No {
            return Err(Error::planning(format!(
                "macro '{name}' exists; write CREATE OR REPLACE MACRO"
            )));
        }
        macros.insert(
            name,
            Macro {
                parameters,
                definition,
            },
        );
        Ok(())
    }

    /// Removes a macro; whether there was one.
    pub fn drop_macro(&self, name: &str) -> bool {
        self.macros.write().remove(&name.to_lowercase()).is_some()
    }

    /// Gives a variable its value, or takes it away.
    pub fn set_variable(&self, name: &str, value: Option<ScalarValue>) {
        let mut variables = self.variables.write();
        match value {
            Some(value) => variables.insert(name.to_lowercase(), value),
            None => variables.remove(&name.to_lowercase()),
        };
    }

    /// Keeps a statement for EXECUTE; an older one of the same name is replaced.
    pub fn prepare(&self, name: &str, statement: Prepared) {
        self.prepared.write().insert(prepared::key(name), statement);
    }

    /// The prepared statement of that name.
    pub fn prepared(&self, name: &str) -> Result<Prepared> {
        let found = self.prepared.read().get(&prepared::key(name)).cloned();
        found.ok_or_else(|| prepared::unknown(name))
    }

    /// Forgets a prepared statement, or all of them.
    pub fn deallocate(&self, name: &Ident) -> Result<()> {
        let mut all = self.prepared.write();
        match all.remove(&prepared::key(&name.value)) {
            Some(_) => Ok(()),
            None if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all") => {
                all.clear();
                Ok(())
            }
            None => Err(prepared::unknown(&name.value)),
        }
    }

    /// Puts what macros stand for in the places of their calls.
    pub fn expand_macros(&self, statement: &mut DataFusionStatement) -> Result<()> {
        let macros = self.macros.read();
        if macros.is_empty() {
            return Ok(());
        }
        done(visit(
            statement,
            &mut MacroCalls {
                macros: &macros,
                depth: 0,
            },
        ))
    }

    /// Puts functions in the places of `getvariable('v')`; each with the value that it has.
    pub fn bind_variables(
        &self,
        statement: &mut DataFusionStatement,
    ) -> BTreeMap<String, ScalarValue> {
        let mut variables = Variables {
            variables: &self.variables.read(),
            used: BTreeMap::new(),
        };
        let _: ControlFlow<()> = visit(statement, &mut variables);
        variables.used
    }
}

/// Whether a definition may take the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replace {
    No,
    Yes,
}

fn last_name(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or_else(|| name.to_string(), |ident| ident.value.clone())
        .to_lowercase()
}

struct MacroCalls<'a> {
    macros: &'a HashMap<String, Macro>,
    /// Expansions one within the other at this place.
    depth: usize,
}

impl MacroCalls<'_> {
    /// What a call stands for, with all macros within it.
    fn expr(&mut self, function: &Function) -> Result<Option<Expr>> {
        let Some(name) = function_name(function) else {
            return Ok(None);
        };
        let Some(Macro {
            parameters,
            definition: MacroDefinition::Expr(body),
        }) = self.macros.get(&name)
        else {
            return Ok(None);
        };
        let FunctionArguments::List(list) = &function.args else {
            return Ok(None);
        };
        let arguments = bound(&name, parameters, &list.args)?;
        let mut body = body.clone();
        self.within(&name, &mut body, arguments)?;
        Ok(Some(Expr::Nested(Box::new(body))))
    }

    fn table(&mut self, factor: &TableFactor) -> Result<Option<TableFactor>> {
        let TableFactor::Table {
            name: called,
            args: Some(args),
            alias,
            ..
        } = factor
        else {
            return Ok(None);
        };
        let name = last_name(called);
        let Some(Macro {
            parameters,
            definition: MacroDefinition::Table(query),
        }) = self.macros.get(&name)
        else {
            return Ok(None);
        };
        let arguments = bound(&name, parameters, &args.args)?;
        let mut query = query.clone();
        self.within(&name, query.as_mut(), arguments)?;
        let mut factor = derived(query, Some(quoted(&name)));
        if let (Some(given), TableFactor::Derived { alias, .. }) = (alias, &mut factor) {
            *alias = Some(given.clone());
        }
        Ok(Some(factor))
    }

    /// A body with its arguments, and with what macros within it stand for.
    fn within(
        &mut self,
        name: &str,
        body: &mut impl Walk,
        arguments: HashMap<String, Expr>,
    ) -> Result<()> {
        if self.depth == DEPTH_MAX {
            return Err(Error::planning(format!("macro '{name}' calls itself")));
        }
        put(body, arguments);
        self.depth += 1;
        let flow = body.walk(self);
        self.depth -= 1;
        done(flow)
    }
}

impl VisitorMut for MacroCalls<'_> {
    type Break = Error;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expr {
            match self.expr(function) {
                Ok(Some(body)) => *expr = body,
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match self.table(factor) {
            Ok(Some(table)) => *factor = table,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

/// The argument of each parameter, in parentheses.
fn bound(
    name: &str,
    parameters: &[MacroArg],
    given: &[FunctionArg],
) -> Result<HashMap<String, Expr>> {
    let wrong = |message: String| Error::planning(format!("macro '{name}' {message}"));
    let mut arguments = HashMap::new();
    let mut places = parameters.iter();
    for argument in given {
        let (parameter, value) = match argument {
            FunctionArg::Named { name, arg, .. } => {
                let is_it =
                    |parameter: &&MacroArg| parameter.name.value.eq_ignore_ascii_case(&name.value);
                let parameter = parameters.iter().find(is_it);
                (
                    parameter.ok_or_else(|| wrong(format!("has no parameter '{}'", name.value)))?,
                    arg,
                )
            }
            FunctionArg::Unnamed(value) => {
                let parameter = places.next();
                (
                    parameter
                        .ok_or_else(|| wrong(format!("takes {} arguments", parameters.len())))?,
                    value,
                )
            }
            FunctionArg::ExprNamed { .. } => {
                return Err(wrong("takes names for its arguments".to_string()));
            }
        };
        let FunctionArgExpr::Expr(value) = value else {
            return Err(wrong("takes expressions, not *".to_string()));
        };
        arguments.insert(parameter.name.value.to_lowercase(), in_parentheses(value));
    }
    for parameter in parameters {
        let key = parameter.name.value.to_lowercase();
        match (arguments.contains_key(&key), &parameter.default_expr) {
            (true, _) => {}
            (false, Some(value)) => {
                arguments.insert(key, in_parentheses(value));
            }
            (false, None) => {
                return Err(wrong(format!(
                    "needs a value for '{}'",
                    parameter.name.value
                )));
            }
        }
    }
    Ok(arguments)
}

/// Operands bind as they are written; what is no operation needs no parentheses, which some places do not take.
fn in_parentheses(expr: &Expr) -> Expr {
    match expr {
        Expr::Value(_)
        | Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::Nested(_)
        | Expr::Function(_)
        | Expr::Lambda(_) => expr.clone(),
        other => Expr::Nested(Box::new(other.clone())),
    }
}

struct Variables<'a> {
    variables: &'a HashMap<String, ScalarValue>,
    used: BTreeMap<String, ScalarValue>,
}

impl VisitorMut for Variables<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        if function_name(function).as_deref() != Some("getvariable") {
            return ControlFlow::Continue(());
        }
        let arguments = plain_arguments(function).unwrap_or_default();
        if let [argument] = arguments.as_slice()
            && let Some(name) = literal_text(argument)
        {
            let value = self.variables.get(&name.to_lowercase());
            let call = format!("getvariable('{name}')");
            self.used
                .insert(call.clone(), value.cloned().unwrap_or(ScalarValue::Null));
            *expr = params::call(call);
        }
        ControlFlow::Continue(())
    }
}
