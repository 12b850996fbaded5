//! Lambdas that also see the place: `list_transform(l, lambda x, i: x * i)`.
//!
//! In: a list and a lambda of element and place, counted from 1. Out: a lambda of both in one struct, over the list zipped
//! with its places.
//! Invariant: a list that is NULL gives NULL.
//! Not here: lambdas of one parameter, which DataFusion plans; list_reduce (functions/list_reduce.rs).

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{AccessExpr, Expr, Ident, Subscript};

use crate::error::Result;
use crate::sql::ast::{call, parse_expr, quoted, text};
use crate::sql::dialect::expression_forms::lambda_of;
use crate::sql::substitute::put;

/// Such a lambda.
pub(super) struct NumberedLambda<'a> {
    pub element: &'a Ident,
    pub place: &'a Ident,
    pub body: &'a Expr,
}

/// What is done with the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// Each becomes the result.
    Transform,
    /// Those stay for which the result is true.
    Filter,
}

impl NumberedLambda<'_> {
    /// The list with the lambda applied.
    pub fn over(&self, list: &Expr, applied: Applied) -> Result<Expr> {
        // The struct's name: a lambda within a lambda sees both, so it is made of the parameters' own.
        let both = format!("{} and {}", self.element.value, self.place.value);
        let field = |name: &str| Expr::CompoundFieldAccess {
            root: Box::new(Expr::Identifier(quoted(&both))),
            access_chain: vec![AccessExpr::Subscript(Subscript::Index {
                index: text(name),
            })],
        };
        let mut body = self.body.clone();
        put(
            &mut body,
            HashMap::from([
                (self.element.value.to_lowercase(), field("1")),
                (self.place.value.to_lowercase(), field("2")),
            ]),
        );
        let lambda = |body| lambda_of(vec![quoted(&both)], body);
        let zipped = parse_expr(&format!(
            "arrays_zip({list}, range(1, CAST(cardinality({list}) AS BIGINT) + 1))"
        ))?;
        let result = match applied {
            Applied::Transform => call("array_transform", vec![zipped, lambda(body)]),
            Applied::Filter => {
                let kept = call("array_filter", vec![zipped, lambda(body)]);
                call("array_transform", vec![kept, lambda(field("1"))])
            }
        };
        parse_expr(&format!(
            "CASE WHEN {list} IS NULL THEN NULL ELSE {result} END"
        ))
    }
}
