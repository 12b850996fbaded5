//! `CUBE ((a, b), c)`, `ROLLUP ((a, b), c)` and `ROLLUP (a, a)`: elements of several columns, or twice, which DataFusion does not
//! plan.
//!
//! In: a parsed statement. Out: the same statement with each such CUBE or ROLLUP written as the GROUPING SETS it
//! stands for, also where one is nested in GROUPING SETS.
//! Invariant: CUBE and ROLLUP of different single columns stay as they are; DataFusion expands those.
//! More sets than `SETS_MAX`, of all keys together, are refused before any is made.
//! Not here: GROUPING(), which DataFusion resolves against the sets.

use std::ops::ControlFlow;

use crate::sql::walk::{done, flow, visit};
use datafusion::common::{Result, plan_err};
use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, VisitorMut};

/// Sets of one GROUP BY. DataFusion would take 65,535, which it copies in each step of planning: of 14 keys 22 s.
const SETS_MAX: usize = 4_096;

/// Elements of a CUBE that has no more sets than that: DataFusion makes all before it looks at their number.
const CUBE_MAX: usize = SETS_MAX.ilog2() as usize;

/// Writes composite CUBE and ROLLUP as GROUPING SETS.
pub fn composite_groups(statement: &mut Statement) -> Result<()> {
    done(visit(statement, &mut Expand))
}

struct Expand;

impl VisitorMut for Expand {
    type Break = DataFusionError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<DataFusionError> {
        let GroupByExpr::Expressions(keys, _) = &select.group_by else {
            return ControlFlow::Continue(());
        };
        let cube = keys.iter().find_map(|key| match key {
            Expr::Cube(elements) if elements.len() > CUBE_MAX => Some(elements.len()),
            _ => None,
        });
        if let Some(elements) = cube {
            return flow(too_wide(elements));
        }
        let sets = keys.iter().map(number_of_sets);
        flow(match sets.fold(1, usize::saturating_mul) {
            0..=SETS_MAX => Ok(()),
            more => plan_err!(
                "GROUP BY has {} grouping sets; {SETS_MAX} is the most",
                written(more)
            ),
        })
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let composite = |elements: &[Vec<Expr>]| elements.iter().any(|element| element.len() != 1);
        let expands = match expr {
            Expr::Cube(elements) | Expr::Rollup(elements) => {
                composite(elements) || repeats(elements)
            }
            Expr::GroupingSets(sets) => sets.iter().any(|set| nested(set).is_some()),
            _ => false,
        };
        if expands {
            match sets_of(expr) {
                Ok(sets) => *expr = Expr::GroupingSets(sets),
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

/// How many sets a key stands for.
fn number_of_sets(key: &Expr) -> usize {
    match key {
        Expr::Cube(elements) => 1_usize
            .checked_shl(u32::try_from(elements.len()).unwrap_or(u32::MAX))
            .unwrap_or(usize::MAX),
        Expr::Rollup(elements) => elements.len() + 1,
        Expr::GroupingSets(sets) => {
            let sets = sets.iter().map(|set| nested(set).map_or(1, number_of_sets));
            sets.fold(0, usize::saturating_add)
        }
        _ => 1,
    }
}

fn written(sets: usize) -> String {
    match sets {
        usize::MAX => "more than 2^63".to_string(),
        sets => sets.to_string(),
    }
}

/// Whether an element stands twice: DataFusion would make two columns of one name.
fn repeats(elements: &[Vec<Expr>]) -> bool {
    let mut pairs = elements.iter().enumerate();
    pairs.any(|(index, element)| elements[..index].contains(element))
}

/// The columns of an element, which may stand in parentheses.
pub(in crate::sql) fn columns_of(element: Expr) -> Vec<Expr> {
    match element {
        Expr::Tuple(columns) => columns.into_iter().flat_map(columns_of).collect(),
        Expr::Nested(inner) => columns_of(*inner),
        column => vec![column],
    }
}

/// The CUBE, ROLLUP or GROUPING SETS that stands in the place of a set.
fn nested(set: &[Expr]) -> Option<&Expr> {
    match set {
        [inner @ (Expr::Cube(_) | Expr::Rollup(_) | Expr::GroupingSets(_))] => Some(inner),
        _ => None,
    }
}

/// The sets that a CUBE, ROLLUP or GROUPING SETS stands for, the widest first.
pub(in crate::sql) fn sets_of(expr: &Expr) -> Result<Vec<Vec<Expr>>> {
    let sets: Vec<Vec<Expr>> = match expr {
        Expr::Cube(elements) if elements.len() > CUBE_MAX => {
            return too_wide(elements.len());
        }
        Expr::Cube(elements) => (0..1_usize << elements.len())
            .map(|left_out| {
                union(elements.iter().enumerate().filter_map(|(index, element)| {
                    // The first element is left out last, as ROLLUP would do it.
                    let bit = elements.len() - 1 - index;
                    (left_out >> bit & 1 == 0).then_some(element)
                }))
            })
            .collect(),
        Expr::Rollup(elements) => (0..=elements.len())
            .rev()
            .map(|kept| union(elements[..kept].iter()))
            .collect(),
        Expr::GroupingSets(sets) => {
            let mut flat = Vec::new();
            for set in sets {
                match nested(set) {
                    Some(inner) => flat.extend(sets_of(inner)?),
                    None => flat.push(set.clone()),
                }
            }
            flat
        }
        other => return plan_err!("{other} is not a grouping"),
    };
    match sets.len() {
        0..=SETS_MAX => Ok(sets),
        more => plan_err!("GROUP BY has {more} grouping sets; {SETS_MAX} is the most"),
    }
}

fn too_wide<T>(elements: usize) -> Result<T> {
    plan_err!(
        "CUBE of {elements} elements makes 2^{elements} grouping sets; {SETS_MAX} is the most. List the sets that you need in GROUPING SETS"
    )
}

/// The columns of all elements, each once.
fn union<'a>(elements: impl Iterator<Item = &'a Vec<Expr>>) -> Vec<Expr> {
    let mut set: Vec<Expr> = Vec::new();
    for expr in elements.flatten() {
        if !set.contains(expr) {
            set.push(expr.clone());
        }
    }
    set
}
