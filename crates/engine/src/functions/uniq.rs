//! `uniq(x, ...)`, the approximate, and `uniq_exact(x, ...)`, the exact number of distinct values.
//!
//! In: one or more arguments of any type that can be hashed. Out: a count.
//! Invariant: a row with a NULL argument does not count; several arguments count as one tuple. `uniq` is the host's
//! `approx_distinct` wherever that takes the argument; other types and tuples reach its sketch as 64-bit hashes.
//! `uniq_exact` is `count(DISTINCT ...)`.
//! Not here: the sketch itself.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, UInt64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::hash_utils::{HLL_RANDOM_STATE, create_hashes};
use datafusion::common::{Result, ScalarValue, not_impl_err, plan_err};
use datafusion::functions::core::named_struct;
use datafusion::functions_aggregate::approx_distinct::approx_distinct_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, Expr, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility, lit,
};

/// The approximate count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Uniq {
    signature: Signature,
}

impl Uniq {
    pub(super) fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

/// Whether the host's sketch takes the arguments as they are.
fn host_counts(types: &[&DataType]) -> bool {
    match types {
        [one] => !matches!(
            one,
            DataType::Float16
                | DataType::Float32
                | DataType::Float64
                | DataType::Dictionary(..)
                | DataType::RunEndEncoded(..)
        ),
        _ => false,
    }
}

/// Calls `$make` with the arguments the host's sketch gets: as they are, or the hash of the tuple.
macro_rules! with_sketch {
    ($args:expr, $make:ident, $hashed:ident) => {{
        let types: Vec<_> = $args
            .expr_fields
            .iter()
            .map(|field| field.data_type())
            .collect();
        if host_counts(&types) {
            approx_distinct_udaf().$make($args)
        } else {
            let hash_field = [hash_field()];
            let args = AccumulatorArgs {
                expr_fields: &hash_field,
                ..$args
            };
            Ok(Box::new($hashed {
                sketch: approx_distinct_udaf().$make(args)?,
            }))
        }
    }};
}

impl AggregateUDFImpl for Uniq {
    fn name(&self) -> &str {
        "uniq"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        if arg_types.is_empty() {
            return plan_err!("uniq takes one or more arguments, e.g. uniq(x)");
        }
        Ok(DataType::UInt64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::UInt64(Some(0)))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        with_sketch!(args, accumulator, HashedRows)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let types: Vec<_> = args
            .input_fields
            .iter()
            .map(|field| field.data_type())
            .collect();
        if host_counts(&types) {
            return approx_distinct_udaf().state_fields(args);
        }
        let hash_field = [hash_field()];
        approx_distinct_udaf().state_fields(StateFieldsArgs {
            input_fields: &hash_field,
            ..args
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        let types: Vec<_> = args
            .expr_fields
            .iter()
            .map(|field| field.data_type())
            .collect();
        !host_counts(&types) || approx_distinct_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        with_sketch!(args, create_groups_accumulator, HashedGroups)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

fn hash_field() -> FieldRef {
    Arc::new(Field::new("hash", DataType::UInt64, true))
}

/// One hash per row over all arguments, NULL where an argument is.
fn hashes(values: &[ArrayRef]) -> Result<ArrayRef> {
    let columns: Vec<ArrayRef> = values.iter().map(one_nan).collect();
    let mut hashes = vec![0; values.first().map_or(0, |first| first.len())];
    create_hashes(&columns, &HLL_RANDOM_STATE, &mut hashes)?;
    let nulls = columns
        .iter()
        .fold(None, |nulls: Option<NullBuffer>, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
    Ok(Arc::new(UInt64Array::new(hashes.into(), nulls)))
}

/// All NaN are one value; the host's hash tells their bits apart.
fn one_nan(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => Arc::new(
            column
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }),
        ),
        DataType::Float64 => Arc::new(
            column
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }),
        ),
        _ => Arc::clone(column),
    }
}

/// The host's sketch over the rows' hashes.
#[derive(Debug)]
struct HashedRows {
    sketch: Box<dyn Accumulator>,
}

impl Accumulator for HashedRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sketch.update_batch(&[hashes(values)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sketch.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sketch.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sketch.evaluate()
    }

    fn size(&self) -> usize {
        self.sketch.size()
    }
}

/// The host's sketches per group over the rows' hashes.
struct HashedGroups {
    sketch: Box<dyn GroupsAccumulator>,
}

impl GroupsAccumulator for HashedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        let hashes = [hashes(values)?];
        self.sketch
            .update_batch(&hashes, group_indices, opt_filter, total_num_groups)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.sketch
            .merge_batch(values, group_indices, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.sketch.evaluate(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sketch.state(emit_to)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.sketch.convert_to_state(&[hashes(values)?], opt_filter)
    }

    fn size(&self) -> usize {
        self.sketch.size()
    }
}

/// The exact count.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct UniqExact {
    signature: Signature,
}

impl UniqExact {
    pub(super) fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

/// The arguments of `uniq_exact(x)` as those of `count(DISTINCT x)`; a window gets no rewrite, and no tuples.
fn distinct_args<'a>(args: AccumulatorArgs<'a>) -> Result<AccumulatorArgs<'a>> {
    if args.exprs.len() > 1 {
        return not_impl_err!(
            "uniq_exact over a window takes one argument, e.g. a struct of several"
        );
    }
    Ok(AccumulatorArgs {
        is_distinct: true,
        ..args
    })
}

impl AggregateUDFImpl for UniqExact {
    fn name(&self) -> &str {
        "uniq_exact"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        if arg_types.is_empty() {
            return plan_err!("uniq_exact takes one or more arguments, e.g. uniq_exact(x)");
        }
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        count_udaf().accumulator(distinct_args(args)?)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        count_udaf().create_sliding_accumulator(distinct_args(args)?)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        count_udaf().state_fields(StateFieldsArgs {
            is_distinct: true,
            ..args
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|aggregate, _| Ok(count_distinct(aggregate))))
    }
}

/// `uniq_exact(x)` as `count(DISTINCT x)`, and of several arguments as the count of tuples without NULL.
fn count_distinct(aggregate: AggregateFunction) -> Expr {
    let mut params = aggregate.params;
    if params.args.len() > 1 {
        let has_all = params
            .args
            .iter()
            .map(|arg| arg.clone().is_not_null())
            .chain(params.filter.take().map(|filter| *filter))
            .reduce(Expr::and);
        params.filter = has_all.map(Box::new);
        let fields = params.args.into_iter().enumerate();
        let tuple = fields
            .flat_map(|(index, arg)| [lit(format!("c{index}")), arg])
            .collect();
        params.args = vec![named_struct().call(tuple)];
    }
    params.distinct = true;
    params.order_by = Vec::new();
    Expr::AggregateFunction(AggregateFunction {
        func: count_udaf(),
        params,
    })
}
