//! `JOIN … USING (k)` and NATURAL joins, written as joins with ON.
//!
//! In: a parsed statement, and the columns of what its joins join. Out: the statement without USING and NATURAL. `k` is the
//! column of the side whose rows are all kept, `coalesce` of both for FULL joins, and `*` has it once, where the left side has
//! it.
//! Invariant: `a.k` and `b.k` stay what they are. A statement stays as it is where the columns of a side are not known; then
//! its error is DataFusion's to tell.
//! Not here: which statements have such joins, and who knows the columns (scopes.rs).

mod scopes;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, JoinConstraint, JoinOperator, ObjectName, Select, SelectItem,
    TableAlias, TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

pub use scopes::{ColumnsByQuery, rewrite, wanted};

/// A column that a FROM clause makes.
#[derive(Debug, Clone)]
struct FromColumn {
    name: String,
    expr: Expr,
    /// Whether it is of both sides of a join.
    is_merged: bool,
}

/// What a FROM clause makes: the columns in the order of `*`.
type FromColumns = Vec<FromColumn>;

/// Writes the joins of a SELECT with ON; the columns that are merged, or `None` where it stays as it is.
fn rewrite_select(
    select: &mut Select,
    columns_of: &dyn Fn(&TableFactor) -> Option<Vec<String>>,
) -> Option<FromColumns> {
    let mut from = select.from.clone();
    let mut scope = FromColumns::new();
    for (number, table) in from.iter_mut().enumerate() {
        scope.extend(scope_of(table, number, columns_of)?);
    }
    let mut items = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(options) => items.extend(expanded(&scope, options)?),
            other => items.push(other.clone()),
        }
    }
    select.from = from;
    select.projection = items;
    scope.retain(|made| made.is_merged);
    Some(scope)
}

/// The columns of a table with joins, which are written with ON.
fn scope_of(
    table: &mut TableWithJoins,
    number: usize,
    columns_of: &dyn Fn(&TableFactor) -> Option<Vec<String>>,
) -> Option<FromColumns> {
    let mut left = scope_of_factor(&mut table.relation, (number, 0), columns_of)?;
    for (place, join) in table.joins.iter_mut().enumerate() {
        let right = scope_of_factor(&mut join.relation, (number, place + 1), columns_of)?;
        left = joined(left, right, &mut join.join_operator)?;
    }
    Some(left)
}

fn scope_of_factor(
    factor: &mut TableFactor,
    (number, place): (usize, usize),
    columns_of: &dyn Fn(&TableFactor) -> Option<Vec<String>>,
) -> Option<FromColumns> {
    if let TableFactor::NestedJoin {
        table_with_joins,
        alias: None,
    } = factor
    {
        return scope_of(table_with_joins, (number + 1) * 100 + place, columns_of);
    }
    let names = columns_of(factor)?;
    let qualifier = qualifier_of(factor, (number, place))?;
    let made = names.into_iter().map(|name| {
        let column = Ident::with_quote('"', name.clone());
        let parts = qualifier.iter().cloned().chain([column]);
        FromColumn {
            expr: Expr::CompoundIdentifier(parts.collect()),
            name,
            is_merged: false,
        }
    });
    Some(made.collect())
}

/// The name before the columns of a factor, which gets one if it has none.
fn qualifier_of(factor: &mut TableFactor, (number, place): (usize, usize)) -> Option<Vec<Ident>> {
    let own = |name: String| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name),
        columns: Vec::new(),
        at: None,
    };
    let unnamed = format!("__side_{number}_{place}");
    match factor {
        TableFactor::Table {
            name, alias, args, ..
        } => match (alias, args) {
            (Some(alias), _) => Some(vec![alias.name.clone()]),
            (None, None) => name.0.iter().map(|part| part.as_ident().cloned()).collect(),
            (alias, Some(_)) => {
                let name = name.0.last()?.as_ident()?.value.clone();
                Some(vec![alias.insert(own(name)).name.clone()])
            }
        },
        TableFactor::Derived { alias, .. } => {
            let alias = alias.get_or_insert_with(|| own(unnamed));
            Some(vec![alias.name.clone()])
        }
        _ => None,
    }
}

/// Which side of a join gives the merged column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergedSide {
    Left,
    Right,
    Both,
}

/// Which columns a join has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sides {
    Left,
    Right,
    Both,
}

/// The columns of a join, which is written with ON.
fn joined(
    left: FromColumns,
    right: FromColumns,
    operator: &mut JoinOperator,
) -> Option<FromColumns> {
    use JoinOperator as J;
    let is_cross = matches!(operator, J::CrossJoin(_));
    let (constraint, merged, sides) = match operator {
        J::Join(of) | J::Inner(of) | J::Left(of) | J::LeftOuter(of) | J::CrossJoin(of) => {
            (of, MergedSide::Left, Sides::Both)
        }
        J::Right(of) | J::RightOuter(of) => (of, MergedSide::Right, Sides::Both),
        J::FullOuter(of) => (of, MergedSide::Both, Sides::Both),
        J::Semi(of) | J::LeftSemi(of) | J::Anti(of) | J::LeftAnti(of) => {
            (of, MergedSide::Left, Sides::Left)
        }
        J::RightSemi(of) | J::RightAnti(of) => (of, MergedSide::Right, Sides::Right),
        _ => return None,
    };
    let names = match constraint {
        JoinConstraint::Using(names) => names
            .iter()
            .map(|name| {
                let ident = name.0.last()?.as_ident()?;
                Some((place_of(&left, ident)?, place_of(&right, ident)?))
            })
            .collect::<Option<Vec<_>>>()?,
        JoinConstraint::Natural => left
            .iter()
            .enumerate()
            .filter(|(_, made)| right.iter().any(|other| other.name == made.name))
            .map(|(place, made)| {
                let ident = Ident::with_quote('"', made.name.clone());
                Some((
                    place_of(&left, &ident).filter(|one| *one == place)?,
                    place_of(&right, &ident)?,
                ))
            })
            .collect::<Option<Vec<_>>>()?,
        JoinConstraint::On(_) | JoinConstraint::None => Vec::new(),
    };
    if !is_cross
        && matches!(
            constraint,
            JoinConstraint::Using(_) | JoinConstraint::Natural
        )
    {
        *constraint = JoinConstraint::On(condition(&left, &right, &names));
    }
    Some(match sides {
        Sides::Left => left,
        Sides::Right => right,
        Sides::Both => merged_scope(left, right, &names, merged),
    })
}

fn condition(left: &FromColumns, right: &FromColumns, names: &[(usize, usize)]) -> Expr {
    let equal = names.iter().map(|(l, r)| Expr::BinaryOp {
        left: Box::new(left[*l].expr.clone()),
        op: BinaryOperator::Eq,
        right: Box::new(right[*r].expr.clone()),
    });
    let all = equal.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    });
    // A natural join of sides without common names joins all rows.
    all.unwrap_or_else(|| Expr::value(datafusion::sql::sqlparser::ast::Value::Boolean(true)))
}

fn merged_scope(
    left: FromColumns,
    right: FromColumns,
    names: &[(usize, usize)],
    merged: MergedSide,
) -> FromColumns {
    let mut scope = left;
    for (l, r) in names {
        let (of_left, of_right) = (scope[*l].expr.clone(), right[*r].expr.clone());
        scope[*l].is_merged = true;
        scope[*l].expr = match merged {
            MergedSide::Left => of_left,
            MergedSide::Right => of_right,
            MergedSide::Both => coalesce(of_left, of_right),
        };
    }
    let is_own = |place: &usize| names.iter().all(|(_, r)| r != place);
    let own = right.into_iter().enumerate();
    scope.extend(own.filter(|(place, _)| is_own(place)).map(|(_, made)| made));
    scope
}

fn coalesce(left: Expr, right: Expr) -> Expr {
    let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![argument(left), argument(right)],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The place of the one column of that name.
fn place_of(scope: &FromColumns, ident: &Ident) -> Option<usize> {
    let places = scope.iter().enumerate();
    let mut places = places
        .filter(|(_, made)| is_name(ident, &made.name))
        .map(|(place, _)| place);
    let place = places.next()?;
    places.next().is_none().then_some(place)
}

/// Whether `ident` names a column: in quotes as it is written, else in any case.
fn is_name(ident: &Ident, name: &str) -> bool {
    match ident.quote_style {
        Some(_) => ident.value == name,
        None => ident.value.eq_ignore_ascii_case(name),
    }
}

/// The columns of `*`; `None` where it has an option that is not known here.
fn expanded(scope: &FromColumns, options: &WildcardAdditionalOptions) -> Option<Vec<SelectItem>> {
    use datafusion::sql::sqlparser::ast::{ExcludeSelectItem, RenameSelectItem};
    if options.opt_ilike.is_some() || options.opt_alias.is_some() {
        return None;
    }
    let mut left_out: Vec<Ident> = Vec::new();
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => left_out.push(name.0.last()?.as_ident()?.clone()),
        Some(ExcludeSelectItem::Multiple(names)) => {
            for name in names {
                left_out.push(name.0.last()?.as_ident()?.clone());
            }
        }
        None => {}
    }
    if let Some(except) = &options.opt_except {
        left_out.push(except.first_element.clone());
        left_out.extend(except.additional_elements.iter().cloned());
    }
    let renamed = match &options.opt_rename {
        Some(RenameSelectItem::Single(one)) => vec![one.clone()],
        Some(RenameSelectItem::Multiple(all)) => all.clone(),
        None => Vec::new(),
    };
    let replaced = options
        .opt_replace
        .iter()
        .flat_map(|replace| &replace.items);
    let replaced: Vec<_> = replaced.collect();
    let knows = |ident: &Ident| scope.iter().any(|made| is_name(ident, &made.name));
    let idents = left_out.iter().chain(renamed.iter().map(|one| &one.ident));
    if !idents
        .chain(replaced.iter().map(|one| &one.column_name))
        .all(knows)
    {
        return None;
    }
    let kept = scope
        .iter()
        .filter(|made| !left_out.iter().any(|ident| is_name(ident, &made.name)));
    let items = kept.map(|made| {
        let replacing = replaced
            .iter()
            .find(|one| is_name(&one.column_name, &made.name));
        let renaming = renamed.iter().find(|one| is_name(&one.ident, &made.name));
        let name = || Ident::with_quote('"', made.name.clone());
        let alias = match renaming {
            Some(one) => Some(one.alias.clone()),
            None => (made.is_merged || replacing.is_some()).then(name),
        };
        let expr = replacing.map_or(&made.expr, |one| &one.expr).clone();
        match alias {
            Some(alias) => SelectItem::ExprWithAlias { expr, alias },
            None => SelectItem::UnnamedExpr(expr),
        }
    });
    Some(items.collect())
}
