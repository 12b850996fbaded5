//! Aggregates over frames that leave rows out.
//!
//! In: arguments, the FILTER of the call behind them, keys of the window's ORDER BY, each row's frame. Out: the aggregate of the rows left.
//! Invariant: the result is the aggregate's own over these rows; frames with the same rows are aggregated once in a row.
//! Not here: which rows these are (left_rows.rs); how long frames are put together (chunks.rs).

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{
    AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    AggregateUDF, PartitionEvaluator, Signature, Volatility, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

use super::Exclusion;
use super::chunks::ChunkedArguments;
use crate::expr::function_methods::function_methods;
use crate::functions::aggregates::exclusions::left_rows::{Frames, Left};
use crate::functions::aggregates::recomputed::Making;
use crate::wire::{Portable, WireReader, WireValue};

/// An aggregate over the rows that frames do not leave out.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct OverLeftRows {
    pub name: String,
    pub aggregate: Arc<AggregateUDF>,
    pub exclusion: Exclusion,
    pub is_distinct: bool,
    /// Whether the last argument is a FILTER.
    pub is_filtered: bool,
    pub signature: Signature,
}

impl OverLeftRows {
    /// Without the FILTER.
    fn arguments<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        &all[..all.len() - usize::from(self.is_filtered)]
    }

    /// What accumulators are made of. To them arguments are columns, but for constants, which some aggregates look into.
    fn making(&self, args: &PartitionEvaluatorArgs) -> Result<Making> {
        let fields = self.arguments(args.input_fields());
        let column =
            |(at, expr): (usize, &Arc<dyn PhysicalExpr>)| match collect_columns(expr).is_empty() {
                true => Arc::clone(expr),
                false => Arc::new(Column::new(&at.to_string(), at)) as Arc<dyn PhysicalExpr>,
            };
        let exprs = self.arguments(args.input_exprs()).iter().enumerate();
        let exprs: Vec<_> = exprs.map(column).collect();
        let named = fields.iter().enumerate();
        let named = named.map(|(at, field)| Field::clone(field).with_name(at.to_string()));
        Ok(Making::of(
            &self.aggregate,
            &AccumulatorArgs {
                return_field: self.aggregate.return_field(fields)?,
                schema: &Schema::new(named.collect::<Vec<_>>()),
                ignore_nulls: args.ignore_nulls(),
                order_bys: &[],
                is_reversed: false,
                name: self.aggregate.name(),
                is_distinct: self.is_distinct,
                exprs: &exprs,
                expr_fields: fields,
            },
        ))
    }
}

impl WindowUDFImpl for OverLeftRows {
    function_methods!();

    fn name(&self) -> &str {
        &self.name
    }

    /// Types are settled before the aggregate becomes this function.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let fields = self.arguments(args.input_fields());
        let field = self.aggregate.return_field(fields)?;
        Ok(Arc::new(Field::clone(&field).with_name(args.name())))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(AggregatePartition {
            making: self.making(&args)?,
            frames: Frames::new(self.exclusion),
            values: args.input_exprs().len(),
            is_filtered: self.is_filtered,
            arguments: None,
            last: None,
        }))
    }
}

impl Portable for OverLeftRows {
    const KIND: &'static str = "over_left_rows";

    fn apart(&self) -> Vec<WireValue> {
        vec![
            (&self.aggregate).into(),
            self.exclusion.tag().into(),
            self.is_distinct.into(),
            self.is_filtered.into(),
        ]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let aggregate = values.aggregate()?;
        let exclusion = Exclusion::of_tag(values)?;
        Ok(OverLeftRows {
            name: exclusion.name_of(aggregate.name()),
            aggregate,
            exclusion,
            is_distinct: values.flag()?,
            is_filtered: values.flag()?,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }
}

/// The rows of one partition.
#[derive(Debug)]
struct AggregatePartition {
    making: Making,
    frames: Frames,
    /// How many columns stand before the keys of ORDER BY.
    values: usize,
    is_filtered: bool,
    arguments: Option<ChunkedArguments>,
    /// What was left of the frame before, and its result.
    last: Option<(Left, ScalarValue)>,
}

impl PartitionEvaluator for AggregatePartition {
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        let (values, keys) = values.split_at(self.values.min(values.len()));
        let left = self.frames.next(keys, frame)?;
        if let Some((last, result)) = &self.last
            && *last == left
        {
            return Ok(result.clone());
        }
        let arguments = match &mut self.arguments {
            Some(arguments) => arguments,
            none => {
                let (columns, filter) =
                    values.split_at(values.len() - usize::from(self.is_filtered));
                none.insert(ChunkedArguments::new(columns, filter.first())?)
            }
        };
        let mut accumulator = self.making.accumulator()?;
        for rows in left.clone() {
            arguments.aggregate(rows, &self.making, accumulator.as_mut())?;
        }
        let result = accumulator.evaluate()?;
        self.last = Some((left, result.clone()));
        Ok(result)
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}
