//! `duckdb_functions()`, and what SHOW FUNCTIONS and DESCRIBE FUNCTION read: the functions of a session as rows.
//!
//! In: the texts (documented.rs), the session's functions. Out: a row per name.
//! Invariant: a function that was added to the session is there, too, without a text.
//! Not here: the types that functions take (`information_schema.parameters`).

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use datafusion::catalog::{MemTable, Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;

use super::documented::{FunctionClass, FunctionText, function_texts};
use crate::error::{Error, nearest_names};

/// What SHOW FUNCTIONS reads; with a name, DESCRIBE FUNCTION.
pub(crate) const FUNCTIONS: &str = "functions of";

/// Registers both.
pub(super) fn tables(context: &SessionContext) {
    context.register_udtf("duckdb_functions", Arc::new(FunctionTable::AsDuckDb));
    context.register_udtf(FUNCTIONS, Arc::new(FunctionTable::AsShown));
}

/// Which columns there are.
#[derive(Debug)]
enum FunctionTable {
    AsDuckDb,
    AsShown,
}

/// A function of the session, and what is known of it.
struct KnownFunction {
    class: FunctionClass,
    name: String,
    text: Option<&'static FunctionText>,
}

impl TableFunctionImpl for FunctionTable {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let mut known = functions(args.session());
        match args.exprs() {
            [] => {}
            [Expr::Literal(name, _)] if matches!(self, FunctionTable::AsShown) => {
                known = named(known, name)?;
            }
            _ => return plan_err!("duckdb_functions() takes no arguments"),
        }
        let batch = match self {
            FunctionTable::AsDuckDb => as_duckdb(&known)?,
            FunctionTable::AsShown => as_shown(&known)?,
        };
        Ok(Arc::new(MemTable::try_new(
            batch.schema(),
            vec![vec![batch]],
        )?))
    }
}

/// All functions of a session, by name.
fn functions(session: &dyn Session) -> Vec<KnownFunction> {
    let texts = function_texts();
    let mut known: Vec<KnownFunction> = texts.iter().map(KnownFunction::of).collect();
    let has_text: BTreeSet<&str> = texts.iter().map(|text| text.name).collect();
    let scalars = session.scalar_functions().keys();
    let scalars = scalars.chain(session.higher_order_functions().keys());
    let classes = [
        (FunctionClass::Scalar, scalars.collect::<Vec<_>>()),
        (
            FunctionClass::Aggregate,
            session.aggregate_functions().keys().collect(),
        ),
        (
            FunctionClass::Window,
            session.window_functions().keys().collect(),
        ),
    ];
    for (class, names) in classes {
        // What is no word, as "*row" and "json of", is one of ours for a form.
        let is_word = |name: &str| name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
        let added = names.into_iter().filter(|name| {
            is_word(name) && !name.starts_with("__") && !has_text.contains(name.as_str())
        });
        known.extend(added.map(|name| KnownFunction {
            class,
            name: name.clone(),
            text: None,
        }));
    }
    known.sort_by(|one, other| {
        let order = |function: &KnownFunction| (function.name.clone(), function.class.name());
        order(one).cmp(&order(other))
    });
    known
}

impl KnownFunction {
    fn of(text: &'static FunctionText) -> KnownFunction {
        KnownFunction {
            class: text.class,
            name: text.name.to_string(),
            text: Some(text),
        }
    }
}

/// Those of one name, in any case.
fn named(known: Vec<KnownFunction>, name: &ScalarValue) -> Result<Vec<KnownFunction>> {
    let name = name.try_as_str().flatten().unwrap_or_default();
    let (meant, others): (Vec<_>, Vec<_>) = known
        .into_iter()
        .partition(|function| function.name.eq_ignore_ascii_case(name));
    if meant.is_empty() {
        let others = others.iter().map(|function| function.name.as_str());
        return Err(DataFusionError::from(Error::UnknownFunction {
            name: name.to_string(),
            nearest: nearest_names(name, others),
            position: None,
        }));
    }
    Ok(meant)
}

type FunctionColumn = (&'static str, ArrayRef);

fn as_shown(known: &[KnownFunction]) -> Result<RecordBatch> {
    let columns = [
        names(known),
        of_texts("call", known, |text| Some(text.call.as_str())),
        of_texts("description", known, |text| Some(text.description)),
        of_texts("example", known, |text| Some(text.example)),
        of_texts("result", known, |text| Some(text.result)),
        kinds(known),
        of_texts("category", known, |text| Some(text.category)),
        of_texts("alias_of", known, |text| text.alias_of),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn as_duckdb(known: &[KnownFunction]) -> Result<RecordBatch> {
    let is_internal = known.iter().map(|function| Some(function.text.is_some()));
    let internal = is_internal.collect::<BooleanArray>();
    let columns = [
        names(known),
        of_texts("alias_of", known, |text| text.alias_of),
        kinds(known),
        of_texts("description", known, |text| Some(text.description)),
        lists("parameters", known, FunctionText::parameters),
        ("internal", Arc::new(internal)),
        lists("examples", known, |text| vec![text.example]),
        lists("categories", known, |text| vec![text.category]),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn names(known: &[KnownFunction]) -> FunctionColumn {
    let names = known.iter().map(|function| Some(function.name.as_str()));
    ("function_name", Arc::new(names.collect::<StringArray>()))
}

fn kinds(known: &[KnownFunction]) -> FunctionColumn {
    let kinds = known.iter().map(|function| Some(function.class.name()));
    ("function_type", Arc::new(kinds.collect::<StringArray>()))
}

fn of_texts(
    name: &'static str,
    known: &[KnownFunction],
    said: impl Fn(&'static FunctionText) -> Option<&'static str>,
) -> FunctionColumn {
    let values = known.iter().map(|function| function.text.and_then(&said));
    (name, Arc::new(values.collect::<StringArray>()))
}

fn lists(
    name: &'static str,
    known: &[KnownFunction],
    said: impl Fn(&'static FunctionText) -> Vec<&'static str>,
) -> FunctionColumn {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for function in known {
        match function.text {
            Some(text) => lists.append_value(said(text).into_iter().map(Some)),
            None => lists.append_null(),
        }
    }
    (name, Arc::new(lists.finish()))
}
