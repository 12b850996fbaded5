//! Aggregates that share states: `first_value(a ORDER BY t), first_value(b ORDER BY t)` keep one row per group, not two, and
//! quantiles of the same values these values once.
//!
//! In: DataFusion's aggregation with such aggregates. Out: a `GroupByExec` with one aggregate for each set of them, and a
//! projection that hands out its parts under the aggregation's columns.
//! Invariant: a set has one FILTER, and of rows one order, in which the keys, each group's constants, are left out;
//! `last_value` is the first of the reversed order. Where values cannot be copied row by row, or the input has an order of its
//! own, each aggregate has states of its own. So has one that finds none to share with, unless its order has several columns.
//! Of these `top_rows` looks at the others only where the first is equal; first_value's states make all of them one text.
//! First rows of 100,000 integers of g1 by four columns took 1,934 ms with a text per aggregate, and take 165.
//! Not here: the states (`grouse_groupby::states`: `top_rows`, `quantiles`).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use grouse_groupby::keys::row::has_floats;
use grouse_groupby::states::top_rows::{SortKey, TopRows as Shape};
use grouse_groupby::states::{End, NullRows, Quantile};

use crate::aggregate::native::{end_of, quantile_of};
use crate::exec::{GroupByExec, Replaced, Tuning};
use crate::expr::columns::applied;
use crate::expr::columns::place_of;
use crate::expr::function_methods::function_methods;
use crate::functions::{Quantiles, TopRows};
use crate::wire::portable;

/// The plan in which aggregates of `replaced` share states; `None` where none does.
pub(crate) fn replacing(
    replaced: &Replaced<'_>,
    tuning: Tuning,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let first = replaced.first;
    let sets = SharingSet::all(first);
    if sets.is_empty() {
        return Ok(None);
    }
    let all = first.aggr_expr();
    let places = (0..all.len()).map(|at| {
        let mut parts = sets.iter().enumerate();
        let part = parts.find_map(|(nth, set)| Some(AggregatePlace::Part(nth, set.part(at)?)));
        part.or_else(|| key_of(first, at).map(AggregatePlace::Key))
    });
    let places: Vec<Option<AggregatePlace>> = places.collect();
    let own: Vec<usize> = (0..all.len()).filter(|at| places[*at].is_none()).collect();
    // Some type has no place in the operator: each for itself.
    let Ok(ours) = grouped(first, &own, &sets, tuning) else {
        return Ok(None);
    };
    handed_out(replaced, Arc::new(ours), &places).map(Some)
}

/// The group-by with the aggregates of their `own` states, then one for each set.
fn grouped(
    first: &AggregateExec,
    own: &[usize],
    sets: &[SharingSet],
    tuning: Tuning,
) -> Result<GroupByExec> {
    let (all, filters) = (first.aggr_expr(), first.filter_expr());
    let mut aggregates: Vec<_> = own.iter().map(|at| Arc::clone(&all[*at])).collect();
    let mut with_filters: Vec<_> = own.iter().map(|at| filters[*at].clone()).collect();
    for set in sets {
        aggregates.push(Arc::new(set.aggregate(first)?));
        with_filters.push(set.filter.clone());
    }
    let grouped = AggregateExec::try_new(
        AggregateMode::Single,
        first.group_expr().clone(),
        aggregates,
        with_filters,
        Arc::clone(first.input()),
        first.input_schema(),
    )?;
    let shared = Replaced {
        first: &grouped,
        last: &grouped,
    };
    GroupByExec::replacing(&shared, tuning)
}

/// Where an aggregate's values are that has no states of its own.
enum AggregatePlace {
    /// The value of each group's only row of a set, at a place in it.
    Part(usize, usize),
    /// A key.
    Key(usize),
}

/// The columns of `replaced` over those of `groups`: keys, aggregates with states of their own, sets.
fn handed_out(
    replaced: &Replaced<'_>,
    groups: Arc<dyn ExecutionPlan>,
    places: &[Option<AggregatePlace>],
) -> Result<Arc<dyn ExecutionPlan>> {
    let (wanted, given) = (replaced.last.schema(), groups.schema());
    let (keys, aggregates) = wanted
        .fields()
        .split_at(wanted.fields().len() - places.len());
    let column =
        |at: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(given.field(at).name(), at)) };
    let mut columns: Vec<_> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| (column(at), key.name().clone()))
        .collect();
    let own = places.iter().filter(|place| place.is_none()).count();
    let mut next = keys.len();
    for (place, field) in places.iter().zip(aggregates) {
        let expr = match place {
            Some(AggregatePlace::Key(key)) => column(*key),
            Some(AggregatePlace::Part(set, part)) => {
                part_of(column(keys.len() + own + set), *part, field)
            }
            None => {
                next += 1;
                column(next - 1)
            }
        };
        columns.push((expr, field.name().clone()));
    }
    Ok(Arc::new(ProjectionExec::try_new(columns, groups)?))
}

/// The key that the aggregate at a place hands out.
fn key_of(first: &AggregateExec, at: usize) -> Option<usize> {
    let aggregate = &first.aggr_expr()[at];
    let is_of_rows = end_of(aggregate).is_some() && first.filter_expr()[at].is_none();
    let value = aggregate.expressions().into_iter().next()?;
    constant(first, &value).filter(|_| is_of_rows)
}

/// Aggregates with the same states.
struct SharingSet {
    of: StateSource,
    filter: Option<Arc<dyn PhysicalExpr>>,
    /// What states of rows keep.
    values: Vec<Arc<dyn PhysicalExpr>>,
    /// What states of values are asked for.
    quantiles: Vec<Quantile>,
    /// The aggregates, by their places, and the part that each takes.
    members: Vec<usize>,
    parts: Vec<usize>,
}

/// What states are of.
#[derive(PartialEq)]
enum StateSource {
    /// The first row of each group.
    Row(Vec<PhysicalSortExpr>),
    /// All values of a column, or digests of so many centroids.
    Values(Arc<dyn PhysicalExpr>, Option<usize>),
}

impl SharingSet {
    /// The sets of an aggregation that are worth it.
    fn all(first: &AggregateExec) -> Vec<SharingSet> {
        if first.input().output_ordering().is_some() {
            // Of rows that are equal in their order people expect the first or the last, which states of one row do not know.
            return Vec::new();
        }
        let mut sets: Vec<SharingSet> = Vec::new();
        let filters = first.filter_expr().iter();
        for (at, (aggregate, filter)) in first.aggr_expr().iter().zip(filters).enumerate() {
            let is_random = filter.as_ref().is_some_and(is_volatile);
            let of = of(aggregate, first);
            let Some(of) = of.filter(|_| !is_random && key_of(first, at).is_none()) else {
                continue;
            };
            let is_same = |set: &&mut SharingSet| set.of == of && set.filter == *filter;
            if let Some(set) = sets.iter_mut().find(is_same) {
                set.add(at, aggregate);
                continue;
            }
            let mut set = SharingSet {
                of,
                filter: filter.clone(),
                values: Vec::new(),
                quantiles: Vec::new(),
                members: Vec::new(),
                parts: Vec::new(),
            };
            set.add(at, aggregate);
            sets.push(set);
        }
        sets.retain(|set| {
            let written = first.aggr_expr()[set.members[0]].order_bys();
            set.members.len() > 1 || matches!(set.of, StateSource::Row(_)) && written.len() > 1
        });
        sets
    }

    fn add(&mut self, at: usize, aggregate: &AggregateFunctionExpr) {
        self.members.push(at);
        self.parts.push(match quantile_of(aggregate) {
            Some((quantile, _)) => place_of(&mut self.quantiles, &quantile),
            None => place_of(&mut self.values, &aggregate.expressions()[0]),
        });
    }

    /// The part that is an aggregate's.
    fn part(&self, aggregate: usize) -> Option<usize> {
        let mut members = self.members.iter().zip(&self.parts);
        members.find_map(|(member, part)| (*member == aggregate).then_some(*part))
    }

    /// The aggregate that has the states.
    fn aggregate(&self, first: &AggregateExec) -> Result<AggregateFunctionExpr> {
        let schema = first.input().schema();
        let (function, arguments) = match &self.of {
            StateSource::Row(order) => {
                let (shape, arguments) = self.row(order, &schema)?;
                (AggregateUDF::from(TopRows::new(shape)), arguments)
            }
            StateSource::Values(x, digest) => {
                let function = Quantiles::new(self.quantiles.clone(), *digest);
                (AggregateUDF::from(function), vec![Arc::clone(x)])
            }
        };
        let members = self.members.iter().map(|at| &first.aggr_expr()[*at]);
        let names = members.map(|member| member.human_display().unwrap_or(member.name()));
        let names: Vec<_> = names.collect();
        AggregateExprBuilder::new(Arc::new(function), arguments)
            .schema(schema)
            .alias(names.join(", "))
            .build()
    }

    /// The first row in an order, as states keep it, and what of.
    fn row(
        &self,
        order: &[PhysicalSortExpr],
        schema: &Schema,
    ) -> Result<(Shape, Vec<Arc<dyn PhysicalExpr>>)> {
        let mut arguments = self.values.clone();
        let order = order.iter().map(|key| SortKey {
            column: place_of(&mut arguments, &key.expr),
            options: key.options,
        });
        let order: Vec<_> = order.collect();
        let fields = arguments.iter().map(|expr| expr.return_field(schema));
        let shape = Shape {
            rows_max: 1,
            columns: fields.collect::<Result<Vec<FieldRef>>>()?.into(),
            results: self.values.len(),
            order,
        };
        Ok((shape, arguments))
    }
}

/// What the states of `aggregate` are of, where it can share them.
fn of(aggregate: &AggregateFunctionExpr, first: &AggregateExec) -> Option<StateSource> {
    let value = Arc::clone(&aggregate.expressions()[0]);
    let Some((_, digest)) = quantile_of(aggregate) else {
        return order_of(aggregate, first).map(StateSource::Row);
    };
    let data_type = value.data_type(&first.input_schema()).ok()?;
    (data_type.is_floating() && !is_volatile(&value)).then_some(StateSource::Values(value, digest))
}

/// The order whose first row `aggregate` takes a value of; `None` where it takes another row or none.
fn order_of(
    aggregate: &AggregateFunctionExpr,
    first: &AggregateExec,
) -> Option<Vec<PhysicalSortExpr>> {
    let (end, NullRows::Respected) = end_of(aggregate)? else {
        return None;
    };
    let order = aggregate.order_bys();
    let mut read = order.iter().map(|key| &key.expr);
    if is_volatile(&aggregate.expressions()[0]) || read.any(is_volatile) {
        return None;
    }
    let order = order
        .iter()
        .filter(|sort| constant(first, &sort.expr).is_none());
    let order = order.map(|sort| match end {
        End::First => sort.clone(),
        End::Last => sort.reverse(),
    });
    let order: Vec<_> = order.collect();
    // In no order the first row is not the last.
    (!order.is_empty()).then_some(order)
}

/// The key that `expr` is, if a group has one value of it: a grouping set may lack it, and floats have two zeros.
fn constant(first: &AggregateExec, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    let group_by = first.group_expr();
    let data_type = expr.data_type(&first.input_schema()).ok()?;
    let is_constant = group_by.is_single() && !is_volatile(expr) && !has_floats(&data_type);
    let mut keys = group_by.expr().iter();
    let key = keys.position(|(key, _)| key == expr);
    key.filter(|_| is_constant)
}

/// Part of a set's column, as a column of `field`.
fn part_of(column: Arc<dyn PhysicalExpr>, part: usize, field: &FieldRef) -> Arc<dyn PhysicalExpr> {
    let part = PartFunction {
        at: part,
        result_type: field.data_type().clone(),
        signature: Signature::any(1, Volatility::Immutable),
    };
    applied(part, vec![column], field)
}

/// The value at a place of each struct, or of the only row of each list, NULL of lists without one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PartFunction {
    at: usize,
    result_type: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for PartFunction {
    function_methods!("part");

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.result_type.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let [whole] = columns.as_slice() else {
            return internal_err!("part takes one");
        };
        let part = match whole.as_struct_opt() {
            Some(parts) => Arc::clone(parts.column(self.at)),
            None => in_only_rows(whole, self.at)?,
        };
        Ok(ColumnarValue::Array(part))
    }
}

portable!(PartFunction, "part", at: count, result_type: data_type;
    signature: Signature::any(1, Volatility::Immutable));

/// A column of the structs in lists of one struct at most.
fn in_only_rows(lists: &ArrayRef, at: usize) -> Result<ArrayRef> {
    let lists = lists.as_list::<i32>();
    let column = lists.values().as_struct().column(at);
    let ends = lists.value_offsets();
    let (start, end) = (ends[0] as usize, ends[lists.len()] as usize);
    if end - start == lists.len() {
        return Ok(column.slice(start, lists.len()));
    }
    let place = |ends: &[i32]| (ends[0] < ends[1]).then_some(ends[0] as u32);
    let places: UInt32Array = ends.windows(2).map(place).collect();
    Ok(take(column, &places, None)?)
}
