//! What rules put into plans, and how it travels.
//!
//! In: functions, expressions and nodes of this room. Out: the tables of their kinds.
//! Invariant: what a rule of a plan that travels makes, and what is not known by its name, stands in a table or is refused.
//! Not here: functions of other rooms (functions/kinds.rs).

use datafusion::logical_expr::ScalarUDF;

use super::fixes;
use super::shared_states::PartFunction;
use super::shared_sums::{MeanFunction, ShiftedSum};
use crate::exec::GroupByExec;
use crate::wire::{ExpressionKind, FunctionKind, NodeKind, expression, node, scalar};
use fixes::failing::checked_operation::CheckedOperation;
use fixes::failing::guarded_joins::Whole;
use fixes::failing::short_circuit::ShortCircuit;
use fixes::failing::within_digits::WithinDigits;
use fixes::grouping::grouping_sets::ForgetEquivalencesExec;
use fixes::orders::offset_order::SkipExec;

/// Scalar functions.
pub(crate) fn scalars() -> Vec<FunctionKind<ScalarUDF>> {
    let mut kinds = vec![
        scalar::<PartFunction>(),
        scalar::<MeanFunction>(),
        scalar::<ShiftedSum>(),
    ];
    kinds.extend(fixes::kinds());
    kinds
}

/// Expressions.
pub(crate) fn expressions() -> Vec<ExpressionKind> {
    vec![
        expression::<CheckedOperation>(),
        expression::<ShortCircuit>(),
        expression::<Whole>(),
        expression::<WithinDigits>(),
    ]
}

/// Nodes.
pub(crate) fn nodes() -> Vec<NodeKind> {
    vec![
        node::<GroupByExec>(),
        node::<SkipExec>(),
        node::<ForgetEquivalencesExec>(),
    ]
}
