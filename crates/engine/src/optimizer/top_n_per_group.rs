//! The first rows of each group by a grouping instead of a window.
//!
//! In: a filter `n <= 2` over the window `row_number() OVER (PARTITION BY k ORDER BY v) AS n`, perhaps with projections between
//! them. Out: a `GroupByExec` by k whose states keep the first rows, a node of DataFusion's that turns their lists into rows, and
//! the window's columns above. What else the filter asks for stays a filter.
//! Invariant: the window stays, visible as such in EXPLAIN, where it computes anything else, or where k has floats. It stays
//! where the filter lets more than `TOP_ROWS_MAX` rows of a group pass. It stays, too, where values cannot be copied row by row
//! (dictionaries, views in nested values), and where the input has the window's order already or never ends.
//! Not here: the states (`grouse_groupby::states::top_rows`).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, UnnestOptions};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::{AggregateUDF, Operator};
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::utils::{conjunction_opt, split_conjunction};
use datafusion::physical_expr::window::StandardWindowExpr;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::unnest::{ListUnnest, UnnestExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowExpr, WindowUDFExpr};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use grouse_groupby::keys::row::has_floats;
use grouse_groupby::states::top_rows::{ROW_NUMBER, SortKey, TOP_ROWS_MAX, TopRows as Shape};

use crate::exec::{GroupByExec, Replaced, Tuning};
use crate::expr::columns::place_of;
use crate::functions::TopRows;
use crate::functions::equal_values::plain;

/// The plan without the window whose rows `node` filters; `None` where there is none or it has to stay.
pub(crate) fn replacing(
    node: &Arc<dyn ExecutionPlan>,
    tuning: Tuning,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else {
        return Ok(None);
    };
    if filter.fetch().is_some() {
        return Ok(None);
    }
    let Some(found) = NumberedWindow::below(filter) else {
        return Ok(None);
    };
    let Some(mut plan) = found.grouped(tuning)? else {
        return Ok(None);
    };
    for projection in found.projections.into_iter().rev() {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan = projection.replace_children(vec![plan], recompute)?;
    }
    let remaining = split_conjunction(filter.predicate())
        .into_iter()
        .filter(|predicate| !is_implied(predicate, found.column))
        .cloned();
    if let Some(remaining) = conjunction_opt(remaining) {
        plan = Arc::new(FilterExec::try_new(remaining, plan)?);
    }
    let Some(projected) = filter.projection() else {
        return Ok(Some(plan));
    };
    let schema = plan.schema();
    let columns = projected.iter().map(|at| column(&schema, *at));
    let columns: Vec<_> = columns.collect();
    Ok(Some(Arc::new(ProjectionExec::try_new(columns, plan)?)))
}

/// A column of a plan under its own name.
fn column(schema: &Schema, at: usize) -> (Arc<dyn PhysicalExpr>, String) {
    let name = schema.field(at).name();
    (Arc::new(Column::new(name, at)), name.clone())
}

/// A window of row numbers of which a filter lets the first of each partition pass.
struct NumberedWindow<'a> {
    window: &'a BoundedWindowAggExec,
    numbers: &'a Arc<dyn WindowExpr>,
    /// Between filter and window, the highest first.
    projections: Vec<Arc<dyn ExecutionPlan>>,
    /// The row number among the columns that the filter sees.
    column: usize,
    rows_max: usize,
}

impl<'a> NumberedWindow<'a> {
    fn below(filter: &'a FilterExec) -> Option<Self> {
        let mut projections = Vec::new();
        let mut node = filter.input();
        while node.is::<ProjectionExec>() {
            projections.push(Arc::clone(node));
            node = node.children().first()?;
        }
        let window = node.downcast_ref::<BoundedWindowAggExec>()?;
        let [numbers] = window.window_expr() else {
            return None;
        };
        let columns = filter.input().schema().fields().len();
        let number = window.input().schema().fields().len();
        (0..columns)
            .filter(|column| source(&projections, *column) == Some(number))
            .find_map(|column| {
                let rows_max = usize::try_from(rows_max(filter.predicate(), column)?).ok()?;
                Some((column, rows_max))
            })
            .filter(|(_, rows_max)| (1..=TOP_ROWS_MAX).contains(rows_max))
            .filter(|_| is_row_number(numbers) && !numbers.partition_by().is_empty())
            .map(|(column, rows_max)| Self {
                window,
                numbers,
                projections,
                column,
                rows_max,
            })
    }

    /// The window's rows up to the last that is asked for, by a grouping.
    fn grouped(&self, tuning: Tuning) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let input = self.window.input();
        let schema = input.schema();
        for key in self.numbers.partition_by() {
            if has_floats(&key.data_type(&schema)?) {
                return Ok(None);
            }
        }
        if input.boundedness().is_unbounded() || self.has_order()? {
            return Ok(None);
        }
        let wanted = WantedRows::of(self)?;
        let aggregate = wanted.aggregation(self)?;
        let replaced = Replaced {
            first: &aggregate,
            last: &aggregate,
        };
        match GroupByExec::replacing(&replaced, tuning) {
            Ok(ours) => Ok(Some(wanted.rows(self, Arc::new(ours))?)),
            // A type that has no place in the operator: the window stays.
            Err(_) => Ok(None),
        }
    }

    /// True if DataFusion needs no sort.
    fn has_order(&self) -> Result<bool> {
        let input = self.window.input();
        if input.output_ordering().is_none() {
            return Ok(false);
        }
        // Rows without an order of their own come in that of the input.
        let order = self.numbers.order_by();
        if order.is_empty() {
            return Ok(true);
        }
        let keys = self.numbers.partition_by();
        let known = input.equivalence_properties();
        let (sorted, _) = known.find_longest_permutation(keys)?;
        let all = sorted.iter().chain(order).cloned();
        Ok(sorted.len() == keys.len() && known.ordering_satisfy(all)?)
    }
}

/// Which column of the lowest projection's input a column of the highest one is; row numbers may be BIGINT above.
fn source(projections: &[Arc<dyn ExecutionPlan>], column: usize) -> Option<usize> {
    projections.iter().try_fold(column, |at, projection| {
        let projection = projection.downcast_ref::<ProjectionExec>()?;
        let expr = &projection.expr().get(at)?.expr;
        let wider = expr.downcast_ref::<CastExpr>();
        let wider = wider.filter(|cast| *cast.cast_type() == DataType::Int64);
        let expr = wider.map_or(expr, CastExpr::expr);
        expr.downcast_ref::<Column>().map(Column::index)
    })
}

fn is_row_number(expr: &Arc<dyn WindowExpr>) -> bool {
    let standard = expr.as_any().downcast_ref::<StandardWindowExpr>();
    let function = standard.and_then(|expr| expr.get_standard_func_expr().as_any().downcast_ref());
    function.is_some_and(|function: &WindowUDFExpr| *function.fun() == row_number_udwf())
}

/// How many rows of a partition a predicate lets pass at most, numbered by `column`.
fn rows_max(predicate: &Arc<dyn PhysicalExpr>, column: usize) -> Option<u64> {
    if let Some((operator, number)) = compared(predicate, column) {
        return match operator {
            Operator::LtEq | Operator::Eq => Some(number),
            Operator::Lt => number.checked_sub(1),
            _ => None,
        };
    }
    let binary = predicate.downcast_ref::<BinaryExpr>()?;
    let sides = [binary.left(), binary.right()].map(|side| rows_max(side, column));
    match (binary.op(), sides) {
        (Operator::And, sides) => sides.into_iter().flatten().min(),
        (Operator::Or, [Some(left), Some(right)]) => Some(left.max(right)),
        _ => None,
    }
}

/// True for predicates that hold for all rows up to the last that is asked for.
fn is_implied(predicate: &Arc<dyn PhysicalExpr>, column: usize) -> bool {
    match compared(predicate, column) {
        Some((Operator::LtEq | Operator::Lt, _)) => true,
        Some((Operator::Eq, number)) => number == 1,
        _ => false,
    }
}

/// The comparison of `column` with a number, the column on the left.
fn compared(predicate: &Arc<dyn PhysicalExpr>, column: usize) -> Option<(Operator, u64)> {
    let binary = predicate.downcast_ref::<BinaryExpr>()?;
    let is_number = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<Column>()
            .is_some_and(|expr| expr.index() == column)
    };
    let literal = |expr: &Arc<dyn PhysicalExpr>| {
        let value = expr.downcast_ref::<Literal>()?.value();
        match value.cast_to(&DataType::UInt64).ok()? {
            ScalarValue::UInt64(number) if value.data_type().is_integer() => number,
            _ => None,
        }
    };
    if is_number(binary.left()) {
        return Some((*binary.op(), literal(binary.right())?));
    }
    if is_number(binary.right()) {
        return Some((binary.op().swap()?, literal(binary.left())?));
    }
    None
}

/// A name for each key, no two the same.
fn names(keys: &[Arc<dyn PhysicalExpr>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(keys.len());
    for key in keys {
        let column = key.downcast_ref::<Column>().map(Column::name);
        let mut name = column.map_or_else(|| key.to_string(), str::to_string);
        while names.contains(&name) {
            name.push('_');
        }
        names.push(name);
    }
    names
}

/// What the states keep, and where the window's columns are among it.
struct WantedRows {
    shape: Shape,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    /// Names of the keys.
    keys: Vec<String>,
    /// For each column of the window's input its place among keys and kept columns.
    places: Vec<usize>,
}

impl WantedRows {
    fn of(found: &NumberedWindow<'_>) -> Result<Self> {
        let schema = found.window.input().schema();
        let keys = found.numbers.partition_by();
        let mut wanted = Self {
            shape: Shape {
                rows_max: found.rows_max,
                columns: Vec::<FieldRef>::new().into(),
                results: 0,
                order: Vec::new(),
            },
            arguments: Vec::new(),
            keys: names(keys),
            places: Vec::with_capacity(schema.fields().len()),
        };
        for at in 0..schema.fields().len() {
            let (expr, _) = column(&schema, at);
            let place = match keys.iter().position(|key| key == &expr) {
                Some(key) => key,
                None => {
                    wanted.arguments.push(expr);
                    keys.len() + wanted.arguments.len() - 1
                }
            };
            wanted.places.push(place);
        }
        wanted.shape.results = wanted.arguments.len();
        for PhysicalSortExpr { expr, options } in found.numbers.order_by() {
            // The states compare canonical values themselves.
            let expr = plain(expr).unwrap_or(expr);
            let column = place_of(&mut wanted.arguments, expr);
            wanted.shape.order.push(SortKey {
                column,
                options: *options,
            });
        }
        if wanted.arguments.is_empty() {
            // Rows that are nothing but their key still have to be counted.
            place_of(&mut wanted.arguments, &keys[0]);
        }
        let fields = wanted
            .arguments
            .iter()
            .map(|expr| expr.return_field(&schema));
        wanted.shape.columns = fields.collect::<Result<Vec<_>>>()?.into();
        Ok(wanted)
    }

    /// The grouping as DataFusion describes it.
    fn aggregation(&self, found: &NumberedWindow<'_>) -> Result<AggregateExec> {
        let input = found.window.input();
        let function = AggregateUDF::from(TopRows::new(self.shape.clone()));
        let aggregate = AggregateExprBuilder::new(Arc::new(function), self.arguments.clone())
            .schema(input.schema())
            .alias(shown(found))
            .build()?;
        let keys = found.numbers.partition_by().iter().cloned();
        AggregateExec::try_new(
            AggregateMode::Single,
            PhysicalGroupBy::new_single(keys.zip(self.keys.iter().cloned()).collect()),
            vec![Arc::new(aggregate)],
            vec![None],
            Arc::clone(input),
            input.schema(),
        )
    }

    /// The groups' rows with the window's columns.
    fn rows(
        &self,
        found: &NumberedWindow<'_>,
        groups: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let list = self.keys.len();
        let grouped = groups.schema();
        let mut fields: Vec<FieldRef> = grouped.fields()[..list].to_vec();
        fields.extend(self.shape.columns[..self.shape.results].iter().cloned());
        fields.push(Arc::new(Field::new(ROW_NUMBER, DataType::UInt64, false)));
        let number = fields.len() - 1;
        let schema = Schema::new_with_metadata(fields, found.window.schema().metadata().clone());
        let lists = ListUnnest {
            index_in_input_schema: list,
            depth: 1,
        };
        let schema = Arc::new(schema);
        let rows = UnnestExec::new(
            groups,
            vec![lists],
            vec![list],
            Arc::clone(&schema),
            UnnestOptions::new(),
        )?;
        let window = found.window.schema();
        let places = self.places.iter().copied().chain([number]);
        let columns: Vec<_> = places
            .zip(window.fields())
            .map(|(place, field)| (column(&schema, place).0, field.name().clone()))
            .collect();
        Ok(Arc::new(ProjectionExec::try_new(columns, Arc::new(rows))?))
    }
}

/// The aggregate as EXPLAIN names it: `top_rows(2, v DESC)`.
fn shown(found: &NumberedWindow<'_>) -> String {
    let mut text = format!("top_rows({}", found.rows_max);
    for PhysicalSortExpr { expr, options } in found.numbers.order_by() {
        let expr = plain(expr).unwrap_or(expr);
        let name = expr.downcast_ref::<Column>().map(Column::name);
        let name = name.map_or_else(|| expr.to_string(), str::to_string);
        let direction = if options.descending { " DESC" } else { "" };
        let nulls = if options.nulls_first {
            " NULLS FIRST"
        } else {
            ""
        };
        text.push_str(&format!(", {name}{direction}{nulls}"));
    }
    text.push(')');
    text
}
