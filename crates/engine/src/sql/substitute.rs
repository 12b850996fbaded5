//! Expressions in the places of names: arguments for parameters.
//!
//! In: a parsed piece, an expression for each name in lower case. Out: the piece with the expressions.
//! Invariant: parameters of lambdas hide names of the same spelling; what is put is not looked at again.
//! Not here: aliases, which columns hide (aliases.rs).

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, VisitorMut};

use crate::sql::expand::aliases::parameters;
use crate::sql::walk::Walk;

/// Puts an expression in the place of each name that stands alone.
pub(super) fn put(body: &mut impl Walk, arguments: HashMap<String, Expr>) {
    let mut visitor = ArgumentSubstitution {
        arguments,
        hidden: Vec::new(),
    };
    let _: ControlFlow<()> = body.walk(&mut visitor);
}

/// Puts arguments in the places of parameters.
struct ArgumentSubstitution {
    arguments: HashMap<String, Expr>,
    /// Parameters of the lambdas around.
    hidden: Vec<String>,
}

impl VisitorMut for ArgumentSubstitution {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Lambda(lambda) = expr {
            self.hidden.extend(parameters(&lambda.params));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Lambda(lambda) => {
                let count = parameters(&lambda.params).len();
                self.hidden
                    .truncate(self.hidden.len().saturating_sub(count));
            }
            Expr::Identifier(Ident { value, .. }) => {
                let name = value.to_lowercase();
                if !self.hidden.contains(&name)
                    && let Some(argument) = self.arguments.get(&name)
                {
                    *expr = argument.clone();
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
