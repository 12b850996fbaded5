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
    match format {
        DisplayFormatType::Default | DisplayFormatType::Verbose => line(node, f),
        DisplayFormatType::TreeRender => tree(node, f),
    }
}

fn line(node: &GroupByExec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{NAME}: ")?;
    if let Some(stage) = node.stage() {
        write!(f, "stage={stage}, ")?;
    }
    write!(f, "keys=[{}]", keys(node.group_by()).join(", "))?;
    write!(f, ", aggregates=[{}]", aggregates(node).join(", "))?;
    if let Some(columns) = node.projection() {
        write!(f, ", projection=[{}]", columns.join(", "))?;
    }
    if let Some(conditions) = conditions(node) {
        write!(f, ", having=[{conditions}]")?;
    }
    if let Some(limit) = node.limit() {
        write!(f, ", limit={limit}")?;
    }
    write!(f, ", workers={}, table={}", node.workers(), node.table())?;
    if let Some(bits) = node.key_bits() {
        write!(f, ", key_bits={bits}")?;
    }
    let codes = node.codes();
    if !codes.is_empty() {
        write!(f, ", codes=[{}]", codes.join(", "))?;
    }
    let decimal64 = node.decimal64();
    if !decimal64.is_empty() {
        write!(f, ", decimal64=[{}]", decimal64.join(", "))?;
    }
    let distinct_groupings = distinct_groupings(node);
    if !distinct_groupings.is_empty() {
        write!(
            f,
            ", distinct_groupings=[{}]",
            distinct_groupings.join(", ")
        )?;
    }
    if node.has_base_grouping() {
        write!(f, ", base_grouping=true")?;
    }
    let adapted = adapted(node);
    if !adapted.is_empty() {
        write!(f, ", datafusion_states=[{}]", adapted.join(", "))?;
    }
    Ok(())
}

fn tree(node: &GroupByExec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(stage) = node.stage() {
        writeln!(f, "stage={stage}")?;
    }
    let keys = keys(node.group_by());
    if !keys.is_empty() {
        writeln!(f, "keys={}", keys.join(", "))?;
    }
    let aggregates = aggregates(node);
    if !aggregates.is_empty() {
        writeln!(f, "aggregates={}", aggregates.join(", "))?;
    }
    if let Some(columns) = node.projection() {
        writeln!(f, "projection={}", columns.join(", "))?;
    }
    if let Some(conditions) = conditions(node) {
        writeln!(f, "having={conditions}")?;
    }
    if let Some(limit) = node.limit() {
        writeln!(f, "limit={limit}")?;
    }
    writeln!(f, "workers={}", node.workers())?;
    writeln!(f, "table={}", node.table())?;
    if let Some(bits) = node.key_bits() {
        writeln!(f, "key_bits={bits}")?;
    }
    let codes = node.codes();
    if !codes.is_empty() {
        writeln!(f, "codes={}", codes.join(", "))?;
    }
    let decimal64 = node.decimal64();
    if !decimal64.is_empty() {
        writeln!(f, "decimal64={}", decimal64.join(", "))?;
    }
    let distinct_groupings = distinct_groupings(node);
    if !distinct_groupings.is_empty() {
        writeln!(f, "distinct_groupings={}", distinct_groupings.join(", "))?;
    }
    if node.has_base_grouping() {
        writeln!(f, "base_grouping=true")?;
    }
    let adapted = adapted(node);
    if !adapted.is_empty() {
        writeln!(f, "datafusion_states={}", adapted.join(", "))?;
    }
    Ok(())
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
fn conditions(node: &GroupByExec) -> Option<String> {
    let conditions = node
        .conditions()
        .iter()
        .map(|condition| condition.to_string());
    let conditions: Vec<_> = conditions.collect();
    (!conditions.is_empty()).then(|| conditions.join(", "))
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
