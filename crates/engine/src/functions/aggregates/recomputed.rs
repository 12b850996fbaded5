//! Aggregates over a window whose frame DataFusion would move wrongly.
//!
//! In: an aggregate and its frame. Out: the same aggregate, which takes the rows in the order of its window, where DataFusion
//! would rather use the reversed order of its input. Over a moving frame that rows cannot be taken out of it keeps the frame's
//! rows and aggregates them anew: `bool_and`, `bit_or`, `string_agg`, `any_value`, sums of floats and others.
//! Invariant: the result is the aggregate's own over the rows of the frame.
//! Not here: which plans ask for it (optimizer/fixes/orders/window_orders.rs).

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::AccumulatorArgs;

use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, SetMonotonicity, WindowFrame,
    WindowFrameBound,
};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use crate::functions::wrapped::as_wrapped;
use crate::wire::portable;

/// Aggregates of DataFusion's and ours without a way back.
const ONE_WAY: [&str; 11] = [
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "bit_and",
    "bit_or",
    "bool_and",
    "bool_or",
    "percentile_cont",
    "string_agg",
    "uniq",
];

/// Aggregates that give the values of floats as they are, in which a row that has left a frame leaves no trace.
const CHOSEN: [&str; 7] = [
    "array_agg",
    "count",
    "first_value",
    "last_value",
    "max",
    "min",
    "nth_value",
];

/// The aggregate as it runs over frames that may have no row: its value is NULL there, also that of a count.
pub(crate) fn over_no_rows(function: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Recomputed(function))
}

/// The aggregate as it runs over a frame.
pub(in crate::functions) fn over_frame(
    function: Arc<AggregateUDF>,
    frame: &WindowFrame,
) -> Arc<AggregateUDF> {
    match is_growing(frame) || !ONE_WAY.contains(&function.name()) {
        true => function,
        false => Arc::new(AggregateUDF::from(Recomputed(function))),
    }
}

/// The aggregate as it runs in the order of its window alone; `None` where the reversed order gives the same. In that order a list
/// is another one, and a frame that grows shrinks, which floats and many an aggregate do not bear.
pub(crate) fn in_order(function: &Arc<AggregateUDF>, frame: &WindowFrame) -> Option<AggregateUDF> {
    let bears_reversal = match function.reverse_udf() {
        ReversedUDAF::NotSupported => true,
        ReversedUDAF::Identical => !is_growing(frame),
        ReversedUDAF::Reversed(_) => false,
    };
    let may_round = !is_growing(frame) && !CHOSEN.contains(&function.name());
    (!bears_reversal || may_round).then(|| AggregateUDF::from(Recomputed(Arc::clone(function))))
}

fn is_growing(frame: &WindowFrame) -> bool {
    match &frame.start_bound {
        WindowFrameBound::Preceding(rows) => rows.is_null(),
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Recomputed(Arc<AggregateUDF>);

impl AggregateUDFImpl for Recomputed {
    as_wrapped!(
        0: name, signature, coerce_types, return_type, accumulator, state_fields,
        order_sensitivity, window_function_schema_name, window_function_display_name,
        supports_null_handling_clause
    );

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let field = self.0.return_field(fields)?;
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn is_nullable(&self) -> bool {
        // A frame may have no row.
        true
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        // A sum of floats from which a row is taken is another than that of the rows left.
        let rounds = || {
            args.expr_fields
                .iter()
                .any(|arg| arg.data_type().is_floating())
        };
        let is_chosen = CHOSEN.contains(&self.name());
        if !ONE_WAY.contains(&self.name()) && (is_chosen || !rounds()) {
            return self.0.create_sliding_accumulator(args);
        }
        Ok(Box::new(FrameRows {
            making: Making::of(&self.0, &args),
            chunks: VecDeque::new(),
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.inner().set_monotonicity(data_type)
    }
}

portable!(Recomputed, "recomputed", 0: aggregate);

/// What accumulators of an aggregate are made of, again and again.
#[derive(Debug)]
pub(in crate::functions) struct Making {
    function: Arc<AggregateUDF>,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    pub name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    pub expr_fields: Vec<FieldRef>,
}

impl Making {
    pub(in crate::functions) fn of(function: &Arc<AggregateUDF>, args: &AccumulatorArgs) -> Making {
        Making {
            function: Arc::clone(function),
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    /// The same of rows that are distinct already, in no order.
    pub(in crate::functions) fn of_rows(
        function: &Arc<AggregateUDF>,
        args: &AccumulatorArgs,
    ) -> Making {
        Making {
            ignore_nulls: false,
            order_bys: Vec::new(),
            is_reversed: false,
            is_distinct: false,
            ..Making::of(function, args)
        }
    }

    /// True where states of some rows each, put together, are the state of all of them.
    pub(in crate::functions) fn merges(&self) -> bool {
        !ONE_WAY.contains(&self.function.name()) && !self.is_distinct
    }

    /// The state of these rows.
    pub(in crate::functions) fn state(&self, rows: &[ArrayRef]) -> Result<Vec<ScalarValue>> {
        let mut accumulator = self.accumulator()?;
        accumulator.update_batch(rows)?;
        accumulator.state()
    }

    pub(in crate::functions) fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// The rows of a frame.
#[derive(Debug)]
struct FrameRows {
    making: Making,
    chunks: VecDeque<Chunk>,
}

/// Rows of one chunk: a long frame is put together from states of chunks, and only its ends are aggregated row by row.
const CHUNK_ROWS: usize = 2048;

/// Some of a frame's rows, at most [`CHUNK_ROWS`].
#[derive(Debug)]
struct Chunk {
    /// The arguments' columns.
    columns: Vec<ArrayRef>,
    /// The state of a whole chunk, once it was asked for.
    state: Option<Vec<ArrayRef>>,
}

impl Chunk {
    fn new(columns: Vec<ArrayRef>) -> Chunk {
        Chunk {
            columns,
            state: None,
        }
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    fn sliced(&self, offset: usize, rows: usize) -> Chunk {
        let columns = self.columns.iter();
        Chunk::new(columns.map(|column| column.slice(offset, rows)).collect())
    }
}

impl FrameRows {
    /// Makes one chunk of the last ones as far as they are small, as rows come one by one.
    fn join_last(&mut self) -> Result<()> {
        let mut rows = 0;
        let mut from = self.chunks.len();
        while from > 0 && rows + self.chunks[from - 1].rows() <= CHUNK_ROWS {
            from -= 1;
            rows += self.chunks[from].rows();
        }
        if self.chunks.len() - from < 2 {
            return Ok(());
        }
        let last: Vec<Chunk> = self.chunks.drain(from..).collect();
        let columns = (0..last[0].columns.len()).map(|at| {
            let parts = last.iter().map(|chunk| chunk.columns[at].as_ref());
            concat(&parts.collect::<Vec<_>>())
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        self.chunks.push_back(Chunk::new(columns));
        Ok(())
    }
}

impl Accumulator for FrameRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let added = Chunk::new(values.to_vec());
        for offset in (0..added.rows()).step_by(CHUNK_ROWS) {
            let rows = CHUNK_ROWS.min(added.rows() - offset);
            self.chunks.push_back(added.sliced(offset, rows));
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut left = values.first().map_or(0, |column| column.len());
        while left > 0
            && let Some(first) = self.chunks.pop_front()
        {
            if first.rows() > left {
                let rest = first.sliced(left, first.rows() - left);
                self.chunks.push_front(rest);
            }
            left = left.saturating_sub(first.rows());
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.join_last()?;
        let mut accumulator = self.making.accumulator()?;
        for at in 0..self.chunks.len() {
            if !self.making.merges() || self.chunks[at].rows() < CHUNK_ROWS {
                accumulator.update_batch(&self.chunks[at].columns)?;
                continue;
            }
            if self.chunks[at].state.is_none() {
                let state = self.making.state(&self.chunks[at].columns)?.into_iter();
                let state = state.map(|value| value.to_array());
                self.chunks[at].state = Some(state.collect::<Result<_>>()?);
            }
            if let Some(state) = &self.chunks[at].state {
                accumulator.merge_batch(state)?;
            }
        }
        accumulator.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("the rows of a frame have no state")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("the rows of a frame have no state")
    }

    fn size(&self) -> usize {
        let columns = self.chunks.iter().flat_map(|chunk| &chunk.columns);
        size_of_val(self)
            + columns
                .map(|column| column.get_array_memory_size())
                .sum::<usize>()
    }
}
