//! `max_by(x, y)`, also called `arg_max`, and `min_by(x, y)`, also called `arg_min`: the x of the row with the extreme y.
//!
//! In: any x, any y that has an order. Out: one x, NULL where no row qualifies.
//! Invariant: a row whose x or y is NULL does not take part; of rows with equal y the first one wins; NaN is greater
//! than every number and equal to itself, -0.0 equals 0.0.
//! Not here: `max_by(x, y ORDER BY z)`. The order decides between equal y, which is what `first_value` does, so it is
//! planned as `first_value(x ORDER BY y DESC, z)`.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Expr, GroupsAccumulator, Signature, Volatility,
};
use grouse_groupby::keys::decoded;
use grouse_groupby::keys::row::canonical_values;

use super::arg_extreme_groups::group_extremes;
use super::arg_extreme_rows::{BestRow, WindowRows};
use crate::error::to_host;

/// NULL inside of a list or struct is greater than all else there, as in ORDER BY.
pub(super) const NULL_LAST: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// Which end of the order is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Extreme {
    Max,
    Min,
}

impl Extreme {
    /// Whether a candidate that compares like this to the best one so far replaces it: only a strictly better one does.
    pub(super) fn prefers(self, candidate_to_best: Ordering) -> bool {
        match self {
            Extreme::Max => candidate_to_best == Ordering::Greater,
            Extreme::Min => candidate_to_best == Ordering::Less,
        }
    }
}

/// `max_by` or `min_by`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ArgExtreme {
    extreme: Extreme,
    aliases: Vec<String>,
    signature: Signature,
}

impl ArgExtreme {
    pub(super) fn max_by() -> Self {
        Self::new(Extreme::Max, ["arg_max", "argmax"])
    }

    pub(super) fn min_by() -> Self {
        Self::new(Extreme::Min, ["arg_min", "argmin"])
    }

    fn new(extreme: Extreme, aliases: [&str; 2]) -> Self {
        Self {
            extreme,
            aliases: aliases.map(str::to_string).to_vec(),
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for ArgExtreme {
    fn name(&self) -> &str {
        match self.extreme {
            Extreme::Max => "max_by",
            Extreme::Min => "min_by",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let [x, y] = arg_types else {
            return plan_err!("{} takes two arguments, e.g. {0}(x, y)", self.name());
        };
        if !RowConverter::supports_fields(&[SortField::new(y.clone())]) {
            return plan_err!(
                "{} compares its second argument, and values of type {y} have no order",
                self.name()
            );
        }
        Ok(x.clone())
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (x, y) = argument_types(&args)?;
        Ok(Box::new(BestRow::new(self.extreme, x, &y)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (x, y) = argument_types(&args)?;
        Ok(Box::new(WindowRows::new(self.extreme, x, &y)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let [x, y] = args.input_fields else {
            return plan_err!("{} takes two arguments", self.name());
        };
        let field = |name, data_type| {
            Arc::new(Field::new(
                format_state_name(args.name, name),
                data_type,
                true,
            ))
        };
        Ok(vec![
            field("x", x.data_type().clone()),
            field("y", decoded(y.data_type()).clone()),
        ])
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let (x, y) = argument_types(&args)?;
        group_extremes(self.extreme, x, &y)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let extreme = self.extreme;
        Some(Box::new(move |aggregate, _| {
            match aggregate.params.order_by.is_empty() {
                true => Ok(Expr::AggregateFunction(aggregate)),
                false => first_by_order(extreme, aggregate),
            }
        }))
    }
}

/// `max_by(x, y ORDER BY z)` as `first_value(x ORDER BY y DESC, z)` over the rows that take part.
fn first_by_order(extreme: Extreme, aggregate: AggregateFunction) -> Result<Expr> {
    let AggregateFunctionParams {
        args,
        filter,
        order_by,
        ..
    } = aggregate.params;
    let Ok([x, y]) = <[Expr; 2]>::try_from(args) else {
        return plan_err!("max_by and min_by take two arguments");
    };
    let takes_part = x.clone().is_not_null().and(y.clone().is_not_null());
    let filter = match filter {
        Some(filter) => filter.and(takes_part),
        None => takes_part,
    };
    let mut order = vec![y.sort(extreme == Extreme::Min, false)];
    order.extend(order_by);
    Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
        first_value_udaf(),
        vec![x],
        false,
        Some(Box::new(filter)),
        order,
        None,
    )))
}

fn argument_types(args: &AccumulatorArgs) -> Result<(DataType, DataType)> {
    match args.expr_fields {
        [x, y] => Ok((x.data_type().clone(), y.data_type().clone())),
        _ => exec_err!("{} takes two arguments", args.name),
    }
}

/// The y column as it is compared: decoded, with one NaN and one zero.
pub(super) fn key_column(y: &ArrayRef) -> Result<ArrayRef> {
    canonical_values(&cast(y, decoded(y.data_type()))?).map_err(to_host)
}

/// The rows in which both arguments have a value.
pub(super) fn rows_with_both(x: &ArrayRef, y: &ArrayRef) -> Option<NullBuffer> {
    NullBuffer::union(x.logical_nulls().as_ref(), y.logical_nulls().as_ref())
}

/// A one-row column of `data_type` that holds NULL.
pub(super) fn null_row(data_type: &DataType) -> ArrayRef {
    new_null_array(data_type, 1)
}

/// The same rows without the batch they were taken from: a view column shares its batch's bytes until it is compacted.
pub(super) fn rows_of_their_own(rows: ArrayRef) -> ArrayRef {
    match rows.data_type() {
        DataType::Utf8View => Arc::new(rows.as_string_view().gc()),
        DataType::BinaryView => Arc::new(rows.as_binary_view().gc()),
        _ => rows,
    }
}
