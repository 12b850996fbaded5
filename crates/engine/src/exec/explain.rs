//! The operator's lines in EXPLAIN.
//!
//! In: a node. Out: its text in each of DataFusion's formats.
//! Invariant: what runs in DataFusion's accumulators instead of native states is said, and what arrives as codes or in 64 bits.
//! Not here: figures of an execution; those are metrics (exec/metrics.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::aggregates::PhysicalGroupBy;

use crate::exec::{GroupByExec, NAME};

/// Writes `node` as EXPLAIN shows it.
pub(crate) fn group_by(
    node: &GroupByExec,
    format: DisplayFormatType,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let entries = entries(node).into_iter();
    match format {
        DisplayFormatType::Default | DisplayFormatType::Verbose => {
            let entries = entries.map(|(key, value)| match value {
                ExplainValue::List(names) => format!("{key}=[{}]", names.join(", ")),
                ExplainValue::One(text) => format!("{key}={text}"),
            });
            write!(f, "{NAME}: {}", entries.collect::<Vec<_>>().join(", "))
        }
        DisplayFormatType::TreeRender => {
            for (key, value) in entries {
                match value {
                    ExplainValue::List(names) if names.is_empty() => {}
                    ExplainValue::List(names) => writeln!(f, "{key}={}", names.join(", "))?,
                    ExplainValue::One(text) => writeln!(f, "{key}={text}")?,
                }
            }
            Ok(())
        }
    }
}

/// The value of a key.
enum ExplainValue {
    /// Names; in brackets where all keys stand in one line.
    List(Vec<String>),
    One(String),
}

/// The keys of EXPLAIN with their values, in order.
fn entries(node: &GroupByExec) -> Vec<(&'static str, ExplainValue)> {
    let one = |text: Option<String>| text.map(ExplainValue::One);
    let list = |names: Vec<String>| (!names.is_empty()).then_some(ExplainValue::List(names));
    let owned =
        |names: Vec<&str>| -> Vec<String> { names.into_iter().map(str::to_string).collect() };
    let entries = [
        ("stage", one(node.stage().map(str::to_string))),
        ("keys", Some(ExplainValue::List(keys(node.group_by())))),
        ("aggregates", Some(ExplainValue::List(aggregates(node)))),
        (
            "projection",
            node.projection()
                .map(|names| ExplainValue::List(owned(names))),
        ),
        ("having", list(conditions(node))),
        ("limit", one(node.limit().map(|limit| limit.to_string()))),
        ("workers", one(Some(node.workers().to_string()))),
        ("table", one(Some(node.table().to_string()))),
        (
            "key_bits",
            one(node.key_bits().map(|bits| bits.to_string())),
        ),
        ("codes", list(node.codes())),
        ("decimal64", list(node.decimal64())),
        ("distinct_groupings", list(owned(distinct_groupings(node)))),
        (
            "base_grouping",
            one(node.has_base_grouping().then(|| true.to_string())),
        ),
        ("datafusion_states", list(owned(adapted(node)))),
    ];
    let shown = entries.into_iter();
    shown
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

/// The keys, or the grouping sets in brackets.
fn keys(group_by: &PhysicalGroupBy) -> Vec<String> {
    if group_by.is_single() {
        return group_by.expr().iter().map(named).collect();
    }
    let set = |absent: &Vec<bool>| {
        let present = group_by
            .expr()
            .iter()
            .zip(absent)
            .filter(|(_, absent)| !**absent);
        let names: Vec<_> = present.map(|(key, _)| named(key)).collect();
        format!("({})", names.join(", "))
    };
    group_by.groups().iter().map(set).collect()
}

fn named((expression, alias): &(Arc<dyn PhysicalExpr>, String)) -> String {
    let text = expression.to_string();
    if &text == alias {
        text
    } else {
        format!("{text} as {alias}")
    }
}

fn aggregates(node: &GroupByExec) -> Vec<String> {
    let names = node.aggregates().iter().map(|aggregate| {
        match (aggregate.human_display(), aggregate.human_display_alias()) {
            (Some(display), Some(alias)) => format!("{display} as {alias}"),
            _ => aggregate.name().to_string(),
        }
    });
    names.collect()
}

/// What has to hold of the groups that leave, before their keys are decoded.
fn conditions(node: &GroupByExec) -> Vec<String> {
    let conditions = node.conditions().iter();
    conditions.map(|condition| condition.to_string()).collect()
}

/// The DISTINCT aggregates whose arguments are grouped with the keys.
fn distinct_groupings(node: &GroupByExec) -> Vec<&str> {
    let aggregates = node.aggregates().iter().zip(node.with_distinct_groupings());
    let mut names = Vec::new();
    for (aggregate, is_with_distinct_groupings) in aggregates {
        if is_with_distinct_groupings {
            let display = aggregate.human_display();
            names.push(display.unwrap_or_else(|| aggregate.name()));
        }
    }
    names
}

/// Functions whose states are DataFusion's.
fn adapted(node: &GroupByExec) -> Vec<&str> {
    let mut names = Vec::new();
    for (aggregate, is_native) in node.aggregates().iter().zip(node.native()) {
        let name = aggregate.fun().name();
        if !is_native && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
