//! The tables of all kinds: what travels beside what has a name.
//!
//! In: functions, expressions and nodes; kinds and values. Out: the one of the other.
//! Invariant: one kind has one name. What no table has is `None`: its name has to do, or it stays.
//! Not here: what each has (beside its type).

use std::sync::{Arc, LazyLock};

use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use crate::functions::kinds as functions;
use crate::optimizer::kinds as optimizer;
use crate::wire::{Apart, ExpressionKind, FunctionKind, NodeKind, WireReader, WireValue};

static SCALARS: LazyLock<Vec<FunctionKind<ScalarUDF>>> = LazyLock::new(|| {
    functions::scalars()
        .into_iter()
        .chain(optimizer::scalars())
        .collect()
});
static AGGREGATES: LazyLock<Vec<FunctionKind<AggregateUDF>>> = LazyLock::new(functions::aggregates);
static WINDOWS: LazyLock<Vec<FunctionKind<WindowUDF>>> = LazyLock::new(functions::windows);
static EXPRESSIONS: LazyLock<Vec<ExpressionKind>> = LazyLock::new(optimizer::expressions);
static NODES: LazyLock<Vec<NodeKind>> = LazyLock::new(optimizer::nodes);

fn apart<F>(kinds: &[FunctionKind<F>], function: &F) -> Option<Apart> {
    kinds.iter().find_map(|kind| {
        let values = (kind.apart)(function)?;
        Some(Apart {
            kind: kind.name,
            values,
        })
    })
}

fn whole<F>(kinds: &[FunctionKind<F>], kind: &str, values: Vec<WireValue>) -> Result<Arc<F>> {
    let Some(known) = kinds.iter().find(|known| known.name == kind) else {
        return internal_err!("no function is of the kind {kind}");
    };
    let mut values = WireReader::new(values);
    let function = (known.whole)(&mut values)?;
    values.end()?;
    Ok(function)
}

/// A scalar function that is more than its name.
pub fn function_apart(function: &ScalarUDF) -> Option<Apart> {
    apart(&SCALARS, function)
}

/// The scalar function of a kind with these values.
pub fn function_of(kind: &str, values: Vec<WireValue>) -> Result<Arc<ScalarUDF>> {
    whole(&SCALARS, kind, values)
}

/// An aggregate that is more than its name.
pub fn aggregate_apart(function: &AggregateUDF) -> Option<Apart> {
    apart(&AGGREGATES, function)
}

/// The aggregate of a kind with these values.
pub fn aggregate_of(kind: &str, values: Vec<WireValue>) -> Result<Arc<AggregateUDF>> {
    whole(&AGGREGATES, kind, values)
}

/// A window function that is more than its name.
pub fn window_apart(function: &WindowUDF) -> Option<Apart> {
    apart(&WINDOWS, function)
}

/// The window function of a kind with these values.
pub fn window_of(kind: &str, values: Vec<WireValue>) -> Result<Arc<WindowUDF>> {
    whole(&WINDOWS, kind, values)
}

/// An expression of ours that travels.
pub fn expression_apart(expression: &dyn PhysicalExpr) -> Option<Apart> {
    EXPRESSIONS.iter().find_map(|kind| {
        let values = (kind.apart)(expression)?;
        Some(Apart {
            kind: kind.name,
            values,
        })
    })
}

/// The expression of a kind with these parts and values.
pub fn expression_of(
    kind: &str,
    parts: Vec<Arc<dyn PhysicalExpr>>,
    values: Vec<WireValue>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let Some(known) = EXPRESSIONS.iter().find(|known| known.name == kind) else {
        return internal_err!("no expression is of the kind {kind}");
    };
    let mut values = WireReader::new(values);
    let expression = (known.whole)(parts, &mut values)?;
    values.end()?;
    Ok(expression)
}

/// A node of ours that travels; an error says why it has to stay.
pub fn node_apart(node: &dyn ExecutionPlan) -> Option<Result<Apart>> {
    NODES.iter().find_map(|kind| {
        let values = (kind.apart)(node)?;
        Some(values.map(|values| Apart {
            kind: kind.name,
            values,
        }))
    })
}

/// The node of a kind with these inputs and values.
pub fn node_of(
    kind: &str,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    values: Vec<WireValue>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(known) = NODES.iter().find(|known| known.name == kind) else {
        return internal_err!("no node is of the kind {kind}");
    };
    let mut values = WireReader::new(values);
    let node = (known.whole)(inputs, &mut values)?;
    values.end()?;
    Ok(node)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[track_caller]
    fn check_names<'a>(names: impl Iterator<Item = &'a str>) {
        let mut seen = HashSet::new();
        for name in names {
            assert!(seen.insert(name), "two kinds are called {name}");
        }
    }

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        check_names(SCALARS.iter().map(|kind| kind.name));
        check_names(AGGREGATES.iter().map(|kind| kind.name));
        check_names(WINDOWS.iter().map(|kind| kind.name));
        check_names(EXPRESSIONS.iter().map(|kind| kind.name));
        check_names(NODES.iter().map(|kind| kind.name));
    }

    #[test]
    fn what_no_table_has_is_an_error() {
        assert!(function_of("nothing", Vec::new()).is_err());
        assert!(expression_of("nothing", Vec::new(), Vec::new()).is_err());
        assert!(node_of("nothing", Vec::new(), Vec::new()).is_err());
    }
}
