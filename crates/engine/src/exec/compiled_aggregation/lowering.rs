//! From DataFusion's aggregates to states, from its keys to an encoding.
//!
//! In: one aggregate of a plan, or its keys. Out: the states that run, the expressions that they read, how keys are encoded.
//! Invariant: an expression that occurs several times is evaluated once per batch, unless it is volatile.
//! Not here: which states are native (aggregate/native.rs), evaluation.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use grouse_groupby::TableKind;
use grouse_groupby::keys::{KeyLayout, KeyValues, decoded};
use grouse_groupby::states::{Aggregate, in_order};

use crate::aggregate::from_datafusion::{DataFusionAggregate, GroupingKind, Stages};
use crate::aggregate::native::{AggregateInput, Native, datafusion_of_distinct, end_of, native};
use crate::error::to_datafusion;
use crate::exec::column_bounds::values_of;

/// What stands behind the keys of pairs.
#[derive(Clone, Copy)]
pub(super) struct PairValues<'a> {
    pub expressions: &'a [Arc<dyn PhysicalExpr>],
    /// False if pairs with a NULL are left out.
    pub with_null: bool,
}

impl PairValues<'_> {
    pub(super) const NONE: PairValues<'static> = PairValues::of(&[], false);

    pub(super) const fn of(
        expressions: &[Arc<dyn PhysicalExpr>],
        with_null: bool,
    ) -> PairValues<'_> {
        PairValues {
            expressions,
            with_null,
        }
    }
}

/// The first `keys` keys as the algorithm groups by them.
pub(super) fn key_fields(schema: &Schema, keys: usize) -> Vec<FieldRef> {
    let fields = schema.fields()[..keys].iter();
    let fields = fields.map(|field| {
        let data_type = decoded(field.data_type()).clone();
        Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
    });
    fields.collect()
}

/// How the first `keys` keys, with values behind them, are encoded, by what their files state of them.
pub(super) fn key_layout(
    described: &AggregateExec,
    schema: &Schema,
    keys: usize,
    values: PairValues<'_>,
    table: TableKind,
) -> Result<KeyLayout> {
    let group_by = described.group_expr();
    let input = described.input();
    let mut fields = key_fields(schema, keys);
    let keys = group_by.expr().iter();
    let known = keys.map(|(key, _)| values_of(input, key));
    // Of the column that tells sets apart nothing is.
    let known = known.chain(std::iter::repeat(KeyValues::Any));
    let mut known: Vec<_> = known.take(fields.len()).collect();
    for value in values.expressions {
        let data_type = value.data_type(&input.schema())?;
        let nullable = values.with_null;
        let field = Field::new(value.to_string(), decoded(&data_type).clone(), nullable);
        fields.push(Arc::new(field));
        known.push(values_of(input, value));
    }
    KeyLayout::knowing(&fields, &known, table).map_err(to_datafusion)
}

/// Distinct expressions.
#[derive(Default)]
pub(super) struct DistinctExpressions(pub Vec<Arc<dyn PhysicalExpr>>);

impl DistinctExpressions {
    pub(super) fn place(&mut self, expression: &Arc<dyn PhysicalExpr>) -> usize {
        let known = self.0.iter().position(|known| known == expression);
        if let Some(at) = known.filter(|_| !is_volatile(expression)) {
            return at;
        }
        self.0.push(Arc::clone(expression));
        self.0.len() - 1
    }
}

/// An aggregate with the columns that its states read.
pub(super) struct Lowered {
    pub aggregate: Arc<dyn Aggregate>,
    pub columns: Vec<Arc<dyn PhysicalExpr>>,
    pub is_native: bool,
    /// The encoding of the pairs that it takes instead of rows, and what it reads of them.
    pub distinct_grouping: Option<(KeyLayout, AggregateInput)>,
}

pub(super) fn lower(
    stages: &Stages<'_>,
    input: &Arc<dyn ExecutionPlan>,
    grouping: GroupingKind,
    lay_out: impl Fn(PairValues<'_>) -> Result<KeyLayout>,
) -> Result<Lowered> {
    let expression = stages.updating;
    let is_sorted = input.output_ordering().is_some();
    let input = &input.schema();
    if let Some(native) = native(expression, input)? {
        // Arguments of a type that nothing can be grouped by stay with DataFusion.
        let is_grouped_apart = native.reads != AggregateInput::Rows;
        let values = PairValues::of(&native.columns, native.reads.with_null());
        let layout = is_grouped_apart.then(|| lay_out(values));
        if let Ok(layout) = layout.transpose() {
            let distinct_grouping = layout.map(|layout| (layout, native.reads));
            let Native {
                aggregate, columns, ..
            } = native;
            let aggregate = match is_sorted && end_of(expression).is_some() {
                true => in_order(aggregate),
                false => aggregate,
            };
            return Ok(Lowered {
                aggregate,
                columns,
                is_native: true,
                distinct_grouping,
            });
        }
    }
    if let Some((plain, columns)) = datafusion_of_distinct(expression, input)? {
        // As above.
        if let Ok(layout) = lay_out(PairValues::of(&columns, false)) {
            let plain = Arc::new(plain);
            let stages = Stages {
                updating: &plain,
                merging: &plain,
            };
            let types = columns.iter().map(|column| column.data_type(input));
            let types = types.collect::<Result<Vec<_>>>()?;
            let types: Vec<_> = types.iter().map(|of| decoded(of).clone()).collect();
            return Ok(Lowered {
                aggregate: Arc::new(DataFusionAggregate::new(&stages, &types, grouping)?),
                columns,
                is_native: false,
                distinct_grouping: Some((layout, AggregateInput::Distinct)),
            });
        }
    }
    // DataFusion's states read what they are ordered by behind their arguments.
    let mut columns = expression.expressions();
    columns.extend(
        expression
            .order_bys()
            .iter()
            .map(|key| Arc::clone(&key.expr)),
    );
    let types = columns
        .iter()
        .map(|column| column.data_type(input))
        .collect::<Result<Vec<_>>>()?;
    let aggregate = Arc::new(DataFusionAggregate::new(stages, &types, grouping)?);
    Ok(Lowered {
        aggregate,
        columns,
        is_native: false,
        distinct_grouping: None,
    })
}
