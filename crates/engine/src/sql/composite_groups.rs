//! `CUBE ((a, b), c)`, `ROLLUP ((a, b), c)` and `ROLLUP (a, a)`: elements of several columns, or twice, which DataFusion does not
//! plan.
//!
//! In: a parsed statement. Out: the same statement with each such CUBE or ROLLUP written as the GROUPING SETS it
//! stands for, also where one is nested in GROUPING SETS.
//! Invariant: CUBE and ROLLUP of different single columns stay as they are; DataFusion expands those.
//! Not here: GROUPING(), which DataFusion resolves against the sets.

use std::ops::ControlFlow;

use crate::sql::statement::visit;
use crate::sql::walk::done;
use datafusion::common::{Result, plan_err};
use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, VisitorMut};

/// DataFusion's own bound on the sets of one GROUP BY.
const SETS_MAX: usize = 65_535;

/// Elements of a CUBE that has no more sets than that: DataFusion makes all before it looks at their number.
const CUBE_MAX: usize = SETS_MAX.ilog2() as usize;

/// Writes composite CUBE and ROLLUP as GROUPING SETS.
pub fn composite_groups(statement: &mut Statement) -> Result<()> {
    done(visit(statement, &mut Expand))
}

struct Expand;

impl VisitorMut for Expand {
    type Break = DataFusionError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let composite = |elements: &[Vec<Expr>]| elements.iter().any(|element| element.len() != 1);
        let expands = match expr {
            Expr::Cube(elements) if elements.len() > CUBE_MAX => true,
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

/// Whether an element stands twice: DataFusion would make two columns of one name.
fn repeats(elements: &[Vec<Expr>]) -> bool {
    let mut pairs = elements.iter().enumerate();
    pairs.any(|(index, element)| elements[..index].contains(element))
}

/// The columns of an element, which may stand in parentheses.
pub(super) fn columns_of(element: Expr) -> Vec<Expr> {
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
pub(super) fn sets_of(expr: &Expr) -> Result<Vec<Vec<Expr>>> {
    let sets: Vec<Vec<Expr>> = match expr {
        Expr::Cube(elements) if elements.len() > CUBE_MAX => {
            return plan_err!(
                "CUBE of {} elements makes 2^{0} grouping sets; {SETS_MAX} is the most. List the sets that you need in GROUPING SETS",
                elements.len()
            );
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
