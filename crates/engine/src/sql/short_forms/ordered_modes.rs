//! `mode(x ORDER BY y)`: of the values that are equally frequent the one that comes first by y, as in DuckDB.
//!
//! In: a call of `mode`. Out: the first most frequent item of `array_agg(x ORDER BY y)`; by x itself the call without the order.
//! Invariant: FILTER stays, and NULL does not count.
//! Not here: windows, which take no order there; `mode() WITHIN GROUP (ORDER BY x)`, which is `mode(x)`.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, OrderByExpr,
};

use super::quoted_call;
use crate::error::{Error, Result};
use crate::functions::FIRST_MODE;
use crate::sql::ast::object;

/// What the call stands for; `None` where it stays.
pub(super) fn in_order(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else {
        return Ok(None);
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_slice() else {
        return Ok(None);
    };
    let keys = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::OrderBy(keys) => keys.first(),
        _ => None,
    });
    let Some(first) = keys.filter(|_| function.over.is_none()) else {
        return Ok(None);
    };
    if first.expr == *value {
        return Ok(Some(by_value(function, first)));
    }
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return Err(Error::unsupported(
            "mode of DISTINCT values in the order of others; leave DISTINCT out",
        ));
    }
    let is_there = Expr::IsNotNull(Box::new(Expr::Nested(Box::new(value.clone()))));
    let mut values = function.clone();
    values.name = object(Ident::new("array_agg"));
    values.filter = Some(Box::new(match values.filter.take() {
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter)),
            op: BinaryOperator::And,
            right: Box::new(is_there),
        },
        None => is_there,
    }));
    Ok(Some(quoted_call(FIRST_MODE, vec![Expr::Function(values)])))
}

/// By the values themselves the first is the least, or the greatest.
fn by_value(function: &Function, key: &OrderByExpr) -> Expr {
    let mut function = function.clone();
    let is_descending = key.options.asc == Some(false);
    if let FunctionArguments::List(list) = &mut function.args {
        list.clauses
            .retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(_)));
        if is_descending {
            list.args.clear();
            function.within_group = vec![key.clone()];
        }
    }
    Expr::Function(function)
}
