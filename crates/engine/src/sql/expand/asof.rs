//! ASOF JOIN: each row of the left table with the one row of the right that is nearest before it, or after it.
//!
//! In: `GLOBAL JOIN` and `GLOBAL LEFT JOIN`, which table_forms.rs puts for it. Out: an equi-join with the right table, whose
//! rows know the left times that they are nearest to.
//! How: times of both sides are sorted together, each key by itself; a running max (or min) of the right times says for
//! each left time what is nearest. Of right rows with equal keys and times one is kept, as in DuckDB any.
//! Invariant: NULL keys and NULL times match nothing; a left row has at most one match.
//! Not here: RIGHT and FULL, which are refused.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, Select,
    SelectItem, TableFactor, TableWithJoins,
};

use crate::error::{Error, Result};
use crate::sql::ast::{derived, parse_expr, parse_query, quoted};
use crate::sql::expand::hidden;
use crate::sql::expand::pivot::set_alias;
use crate::sql::expand::positional::{alias_of, is_positional};
use crate::sql::expand::{Column, Scope};
use crate::sql::walk::{Walk, each};

/// How the times compare, the left one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeOrder {
    AtOrBefore,
    Before,
    AtOrAfter,
    After,
}

/// The condition of such a join: pairs of equal keys, left and right, and the times.
struct Condition {
    keys: Vec<(Expr, Expr)>,
    times: (Expr, Expr),
    nearest: TimeOrder,
}

/// Whether unmatched rows of the left table stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AsofJoinKind {
    Inner,
    Left,
}

pub(super) fn expand(select: &mut Select, scope: &Scope<'_>) -> Result<()> {
    let is_asof = |join: &Join| join.global && !is_positional(join);
    let mut count = 0;
    for place in 0..select.from.len() {
        for number in 0..select.from[place].joins.len() {
            if is_asof(&select.from[place].joins[number]) {
                join(select, place, number, count, scope)?;
                count += 1;
            }
        }
    }
    Ok(())
}

fn join(
    select: &mut Select,
    place: usize,
    number: usize,
    count: usize,
    scope: &Scope<'_>,
) -> Result<()> {
    let table = &select.from[place];
    let left = TableWithJoins {
        relation: table.relation.clone(),
        joins: table.joins[..number].to_vec(),
    };
    let Join {
        relation,
        join_operator,
        ..
    } = table.joins[number].clone();
    let right = TableWithJoins {
        relation: relation.clone(),
        joins: Vec::new(),
    };
    let columns = [
        scope.columns_from(std::slice::from_ref(&left))?,
        scope.columns_from(std::slice::from_ref(&right))?,
    ];
    let (kind, constraint) = match join_operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (AsofJoinKind::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (AsofJoinKind::Left, constraint)
        }
        _ => {
            return Err(Error::unsupported(
                "ASOF joins other than ASOF JOIN and ASOF LEFT JOIN",
            ));
        }
    };
    let (condition, merged) = match constraint {
        JoinConstraint::On(condition) => (on(condition, &columns)?, Vec::new()),
        JoinConstraint::Using(names) => {
            let names = names
                .iter()
                .filter_map(|name| name.0.last()?.as_ident().cloned());
            let names: Vec<Ident> = names.collect();
            (using(&names, &columns)?, names)
        }
        _ => return Err(Error::unsupported("ASOF JOIN without ON or USING")),
    };
    let name = hidden::name_of("time", count);
    let (matched, on) = matched(&condition, &left, &relation, &name)?;
    let joined = &mut select.from[place].joins[number];
    joined.global = false;
    joined.relation = matched;
    joined.join_operator = match kind {
        AsofJoinKind::Inner => JoinOperator::Inner(JoinConstraint::On(on)),
        AsofJoinKind::Left => JoinOperator::Left(JoinConstraint::On(on)),
    };
    let alias = alias_of(&relation).map(|alias| alias.name.value);
    if merged.is_empty() {
        hidden::hide(select, &[name], alias.as_deref());
        return Ok(());
    }
    merge(select, &merged, &columns)?;
    hidden::hide(select, &[name], alias.as_deref());
    Ok(())
}

/// The names of the columns that hold the keys.
fn key_names(condition: &Condition) -> impl Iterator<Item = String> {
    (0..condition.keys.len()).map(|number| format!("\"key {number}\""))
}

/// The condition that none of the values is NULL.
fn known<'a>(exprs: impl Iterator<Item = &'a Expr>) -> String {
    let all: Vec<String> = exprs.map(|expr| format!("({expr}) IS NOT NULL")).collect();
    all.join(" AND ")
}

/// For each key and time of the left table the time of the right one that is nearest to it.
fn nearest_times(condition: &Condition, left: &TableWithJoins, right: &TableFactor) -> String {
    let (left_time, right_time) = &condition.times;
    let side = |exprs: &mut dyn Iterator<Item = &Expr>| -> String {
        exprs
            .zip(key_names(condition))
            .map(|(expr, key)| format!("{expr} AS {key}, "))
            .collect()
    };
    let left_keys = side(&mut condition.keys.iter().map(|(left, _)| left));
    let right_keys = side(&mut condition.keys.iter().map(|(_, right)| right));
    let left_known = known(
        condition
            .keys
            .iter()
            .map(|(left, _)| left)
            .chain([left_time]),
    );
    let right_known = known(
        condition
            .keys
            .iter()
            .map(|(_, right)| right)
            .chain([right_time]),
    );
    let (aggregate, order) = match condition.nearest {
        TimeOrder::AtOrBefore => ("max", "\"time\" ASC, \"side\" ASC"),
        TimeOrder::Before => ("max", "\"time\" ASC, \"side\" DESC"),
        TimeOrder::AtOrAfter => ("min", "\"time\" DESC, \"side\" ASC"),
        TimeOrder::After => ("min", "\"time\" DESC, \"side\" DESC"),
    };
    let partition = match condition.keys.is_empty() {
        true => String::new(),
        false => format!(
            "PARTITION BY {} ",
            key_names(condition).collect::<Vec<_>>().join(", ")
        ),
    };
    let all_keys: String = key_names(condition).map(|key| format!("{key}, ")).collect();
    let both = format!(
        "SELECT DISTINCT {left_keys}{left_time} AS \"time\", {left_time} AS \"left time\", nullif({left_time}, {left_time}) AS \"right time\", 1 AS \"side\" FROM {left} WHERE {left_known} \
         UNION ALL SELECT DISTINCT {right_keys}{right_time} AS \"time\", nullif({right_time}, {right_time}) AS \"left time\", {right_time} AS \"right time\", 0 AS \"side\" FROM {right} WHERE {right_known}"
    );
    format!(
        "SELECT {all_keys}\"left time\", \"side\", {aggregate}(\"right time\") OVER ({partition}ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS \"nearest\" FROM ({both}) AS \"both sides\""
    )
}

/// The right table with the left times that its rows are nearest to, under its own name, and the condition to join it on.
fn matched(
    condition: &Condition,
    left: &TableWithJoins,
    right: &TableFactor,
    time: &str,
) -> Result<(TableFactor, Expr)> {
    let (left_time, right_time) = &condition.times;
    let nearest = nearest_times(condition, left, right);
    let right_known = known(
        condition
            .keys
            .iter()
            .map(|(_, right)| right)
            .chain([right_time]),
    );
    let all_keys: String = key_names(condition).map(|key| format!("{key}, ")).collect();
    let distinct: String = condition
        .keys
        .iter()
        .map(|(_, right)| format!("{right}, "))
        .collect();
    let once =
        format!("SELECT DISTINCT ON ({distinct}{right_time}) * FROM {right} WHERE {right_known}");
    let alias = alias_of(right);
    let named = alias
        .as_ref()
        .map_or_else(String::new, |alias| format!(" AS {}", alias.name));
    let equal: String = condition
        .keys
        .iter()
        .zip(key_names(condition))
        .map(|((_, right), key)| format!("\"near\".{key} = {right} AND "))
        .collect();
    let time = quoted(time);
    let columns = alias
        .as_ref()
        .map_or_else(|| "*".to_string(), |alias| format!("{}.*", alias.name));
    let near: String = match alias {
        Some(_) => format!("{columns}, \"near\".\"left time\" AS {time}"),
        None => format!(
            "* EXCLUDE ({all_keys}\"left time\", \"side\", \"nearest\"), \"near\".\"left time\" AS {time}"
        ),
    };
    let query = format!(
        "SELECT {near} FROM ({once}){named} JOIN (SELECT * FROM ({nearest}) AS \"all sides\" WHERE \"side\" = 1 AND \"nearest\" IS NOT NULL) AS \"near\" ON {equal}\"near\".\"nearest\" = {right_time}"
    );
    let mut matched = derived(parse_query(&query)?, None);
    set_alias(&mut matched, alias);
    let keys: String = condition
        .keys
        .iter()
        .map(|(left, right)| format!("{left} = {right} AND "))
        .collect();
    let on = parse_expr(&format!("{keys}{left_time} = {time}"))?;
    Ok((matched, on))
}

/// Which table an expression is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AsofSide {
    Left,
    Right,
}

fn on(condition: Expr, columns: &[Vec<Column>; 2]) -> Result<Condition> {
    let mut parts = Vec::new();
    conjuncts(condition, &mut parts);
    let mut keys = Vec::new();
    let mut times = None;
    for part in parts {
        let Expr::BinaryOp { left, op, right } = part else {
            return Err(not_such(&part));
        };
        let sides = (side_of(&left, columns)?, side_of(&right, columns)?);
        let (left, right, op) = match sides {
            (AsofSide::Left, AsofSide::Right) => (*left, *right, op),
            (AsofSide::Right, AsofSide::Left) => (*right, *left, turned(op)),
            _ => {
                return Err(Error::unsupported(format!(
                    "ASOF JOIN … ON {left} {op} {right}, which compares one table with itself"
                )));
            }
        };
        let nearest = match op {
            BinaryOperator::Eq => {
                keys.push((left, right));
                continue;
            }
            BinaryOperator::GtEq => TimeOrder::AtOrBefore,
            BinaryOperator::Gt => TimeOrder::Before,
            BinaryOperator::LtEq => TimeOrder::AtOrAfter,
            BinaryOperator::Lt => TimeOrder::After,
            op => {
                return Err(not_such(&Expr::BinaryOp {
                    left: Box::new(left),
                    op,
                    right: Box::new(right),
                }));
            }
        };
        if times.replace((left, right, nearest)).is_some() {
            return Err(Error::unsupported("ASOF JOIN with two inequalities"));
        }
    }
    let Some((left, right, nearest)) = times else {
        let message = "ASOF JOIN needs one inequality of times, such as a.t >= b.t".to_string();
        return Err(Error::planning(message));
    };
    Ok(Condition {
        keys,
        times: (left, right),
        nearest,
    })
}

fn using(names: &[Ident], columns: &[Vec<Column>; 2]) -> Result<Condition> {
    let of = |columns: &[Column], name: &Ident| {
        let found = columns
            .iter()
            .find(|column| column.has_name(&name.value))
            .map(Column::expr);
        found.ok_or_else(|| Error::UnknownColumn {
            name: name.value.clone(),
            nearest: crate::error::nearest_names(&name.value, columns.iter().map(Column::name)),
            position: None,
        })
    };
    let pairs = names
        .iter()
        .map(|name| Ok((of(&columns[0], name)?, of(&columns[1], name)?)));
    let mut keys: Vec<(Expr, Expr)> = pairs.collect::<Result<_>>()?;
    let times = keys
        .pop()
        .ok_or_else(|| Error::unsupported("ASOF JOIN USING without a column"))?;
    Ok(Condition {
        keys,
        times,
        nearest: TimeOrder::AtOrBefore,
    })
}

fn conjuncts(expr: Expr, parts: &mut Vec<Expr>) {
    match expr {
        Expr::Nested(inner) => conjuncts(*inner, parts),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            conjuncts(*left, parts);
            conjuncts(*right, parts);
        }
        other => parts.push(other),
    }
}

fn turned(op: BinaryOperator) -> BinaryOperator {
    match op {
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        other => other,
    }
}

fn side_of(expr: &Expr, columns: &[Vec<Column>; 2]) -> Result<AsofSide> {
    let mut names: Vec<Vec<String>> = Vec::new();
    let ControlFlow::Continue(()) = expr.clone().walk(&mut each(|expr| match expr {
        Expr::Identifier(name) => names.push(vec![name.value.clone()]),
        Expr::CompoundIdentifier(parts) => {
            names.push(parts.iter().map(|part| part.value.clone()).collect());
        }
        _ => {}
    }));
    let mut side = None;
    for parts in names {
        let of = |columns: &[Column]| columns.iter().any(|column| is_meant(&parts, column));
        let own = match (of(&columns[0]), of(&columns[1])) {
            (true, false) => AsofSide::Left,
            (false, true) => AsofSide::Right,
            (true, true) => {
                return Err(Error::AmbiguousColumn {
                    name: parts.join("."),
                    candidates: Vec::new(),
                    position: None,
                });
            }
            (false, false) => {
                return Err(Error::UnknownColumn {
                    name: parts.join("."),
                    nearest: Vec::new(),
                    position: None,
                });
            }
        };
        if side.replace(own).is_some_and(|other| other != own) {
            return Err(Error::unsupported(format!(
                "ASOF JOIN … ON with {expr}, which is of both tables"
            )));
        }
    }
    side.ok_or_else(|| {
        Error::unsupported(format!("ASOF JOIN … ON with {expr}, which is of no table"))
    })
}

fn is_meant(parts: &[String], column: &Column) -> bool {
    match parts {
        [name] => column.has_name(name),
        [.., table, name] => {
            column.has_name(name)
                && column
                    .table
                    .last()
                    .is_some_and(|own| own.eq_ignore_ascii_case(table))
        }
        [] => false,
    }
}

/// What USING names is the left table's column, and is in `*` once.
fn merge(select: &mut Select, names: &[Ident], [left, right]: &[Vec<Column>; 2]) -> Result<()> {
    let is_merged = |column: &Column| names.iter().any(|name| column.has_name(&name.value));
    let mut items = Vec::new();
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(options)
                if options.opt_exclude.is_some()
                    || options.opt_replace.is_some()
                    || options.opt_except.is_some()
                    || options.opt_rename.is_some() =>
            {
                return Err(Error::unsupported(
                    "* with options over ASOF JOIN … USING; write ON, or a subquery",
                ));
            }
            SelectItem::Wildcard(_) => {
                let others = right.iter().filter(|column| !is_merged(column));
                let columns = left.iter().chain(others);
                items.extend(columns.map(|column| SelectItem::UnnamedExpr(column.expr())));
            }
            other => items.push(other),
        }
    }
    select.projection = items;
    let merged = left.iter().filter(|column| is_merged(column));
    let columns: Vec<&Column> = merged.collect();
    // The left table before names of merged columns.
    let mut qualify = each(|expr| {
        if let Expr::Identifier(name) = expr
            && let Some(column) = columns.iter().find(|column| column.has_name(&name.value))
        {
            *expr = column.expr();
        }
    });
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            let ControlFlow::Continue(()) = expr.walk(&mut qualify);
        }
    }
    let conditions = [
        &mut select.selection,
        &mut select.having,
        &mut select.qualify,
    ];
    for expr in conditions.into_iter().flatten() {
        let ControlFlow::Continue(()) = expr.walk(&mut qualify);
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        for key in keys {
            let ControlFlow::Continue(()) = key.walk(&mut qualify);
        }
    }
    Ok(())
}

fn not_such(expr: &Expr) -> Error {
    Error::unsupported(format!(
        "ASOF JOIN … ON {expr}; it takes equalities and one of >=, >, <=, < joined by AND"
    ))
}
