//! The distinct values of dates, times and integers for a function that has one result for all values of a step.
//!
//! In: `date_part`, `date_trunc` and `to_char` of a column without a time zone or in UTC, a cast of integers to strings; then
//! batches.
//! Out: DataFusion's results. As a key of a group-by, strings as codes of those of a batch.
//! Invariant: a result of DataFusion's stands for all values of its step. Each step's value lies between two that the batch has,
//! and cannot fail where these do not. A batch of too many steps is DataFusion's.
//! Not here: other time zones, whose days begin at other seconds.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, max, min};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::functions::datetime::date_part::DatePartFunc;
use datafusion::functions::datetime::date_trunc::DateTruncFunc;
use datafusion::functions::datetime::to_char::ToCharFunc;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::{CastExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use grouse_groupby::keys::is_bytes;
use grouse_kernels::divide::Divisor;

use super::{DistinctValues, OverColumn, Spread, ValueSource};
use crate::expr::columns::{dictionary, has_offset};
use crate::expr::specialised::{Kernel, Specialised, specialise};
use crate::expr::truncated_times::TruncatedTimes;
use crate::expr::units::per_second;

/// A batch has so many rows for each step, or more.
const ROWS_PER_STEP: usize = 4;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// `expr` with whatever has steps computed once per step.
pub(crate) fn once_per_step(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    specialise(expr, |expr| Steps::of(expr, schema))
}

/// A key of strings that is computed once per step, as codes.
pub(super) fn coded(
    key: &Arc<dyn PhysicalExpr>,
    data_type: &DataType,
) -> Option<Arc<dyn PhysicalExpr>> {
    let specialised = key.downcast_ref::<Specialised<Steps>>()?;
    let steps = specialised.kernel().clone();
    let column = Arc::clone(specialised.datafusion().children()[steps.at]);
    let codes = dictionary(data_type);
    is_bytes(data_type)
        .then(|| DistinctValues::codes(vec![column], ValueSource::Steps(steps), codes))
}

/// How such an expression is computed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Steps {
    /// Values of so many units have one result.
    step: i64,
    /// Which of the expression's children the column is.
    at: usize,
    body: OverColumn,
}

impl Steps {
    /// Of an expression that has steps of more than a unit, or whose column mostly has few values.
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Steps> {
        let (at, seconds) = match expr.downcast_ref::<ScalarFunctionExpr>() {
            Some(function) => step_of(function)?,
            None => {
                let to = expr.downcast_ref::<CastExpr>()?.cast_type();
                (is_bytes(to) && to.is_string()).then_some((0, 0))?
            }
        };
        let data_type = expr.children()[at].data_type(schema).ok()?;
        let is_function = expr.is::<ScalarFunctionExpr>();
        let step = match data_type {
            DataType::Date32 => 1,
            DataType::Timestamp(unit, ref zone)
                if is_function && !zone.as_deref().is_some_and(has_offset) =>
            {
                seconds * per_second(unit)
            }
            DataType::UInt64 => return None,
            _ if data_type.is_integer() && !is_function => 1,
            _ => return None,
        };
        let body = over(expr, at, &data_type)?;
        Some(Steps { step, at, body })
    }

    /// The results of a column as codes.
    pub(super) fn codes(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let spread = match self.spread(column)? {
            Some(spread) => spread,
            None => Spread::of_each_row(self.body.results(column)?),
        };
        spread.coded()
    }

    /// The result of each step of a column, and each row's step; `None` if its steps are many.
    fn spread(&self, column: &ArrayRef) -> Result<Option<Spread>> {
        let words = cast(column, &DataType::Int64)?;
        let words = words.as_primitive::<Int64Type>();
        let nulls = words.nulls().filter(|nulls| nulls.null_count() > 0);
        let (Some(low), Some(high)) = (min(words), max(words)) else {
            return Ok(None);
        };
        let (first, last) = (low.div_euclid(self.step), high.div_euclid(self.step));
        let count = last.abs_diff(first).saturating_add(1);
        // The first step may begin before all numbers.
        if count > (column.len() / ROWS_PER_STEP) as u64 || first.checked_mul(self.step).is_none() {
            return Ok(None);
        }
        let start = first * self.step;
        // Each step's first value, but none below all of the batch's.
        let starts = (0..count as i64).map(|at| (start + at * self.step).max(low));
        let starts: ArrayRef = Arc::new(Int64Array::from_iter_values(starts));
        let results = self.body.results(&starts)?;
        let distances = words.values().iter().map(|word| word.wrapping_sub(start));
        let distances: Vec<i64> = distances.collect();
        let places = match Divisor::new(self.step) {
            Some(divisor) if self.step > 1 => divisor.quotients(&distances),
            _ => distances,
        };
        // What lies under a NULL is anything.
        let places = places.into_iter().map(|place| match nulls {
            None => place as u32,
            Some(_) => (place as u32).min(count as u32 - 1),
        });
        let places = UInt32Array::new(places.collect::<Vec<_>>().into(), nulls.cloned());
        Ok(Some(Spread::new(results, places)))
    }
}

impl Kernel for Steps {
    fn rebind(&self, datafusion: &Arc<dyn PhysicalExpr>) -> Option<Steps> {
        Some(Steps {
            body: over(datafusion, self.at, self.body.takes())?,
            ..self.clone()
        })
    }

    fn evaluate(
        &self,
        datafusion: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> Result<ColumnarValue> {
        let column = match datafusion.children()[self.at].evaluate(batch)? {
            ColumnarValue::Array(column) if column.data_type() == self.body.takes() => column,
            _ => return datafusion.evaluate(batch),
        };
        let values = match self.spread(&column)? {
            Some(spread) => spread.rows()?,
            None => self.body.results(&column)?,
        };
        Ok(ColumnarValue::Array(values))
    }
}

/// The expression over its child at this place, of `data_type`; `None` if it has others than literals beside it.
fn over(expr: &Arc<dyn PhysicalExpr>, at: usize, data_type: &DataType) -> Option<OverColumn> {
    let field = Field::new("column", data_type.clone(), true);
    let body = |column: Arc<dyn PhysicalExpr>| {
        let children = expr.children().into_iter().enumerate();
        let children = children.map(|(place, child)| match place == at {
            true => Ok(Arc::clone(&column)),
            false if child.is::<Literal>() => Ok(Arc::clone(child)),
            false => Err(internal_datafusion_err!("{child} is no literal")),
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        Arc::clone(expr).with_new_children(children)
    };
    OverColumn::new(field, body).ok()
}

/// Which argument is the time, and for how many seconds from a whole number of them on the result is the same.
fn step_of(function: &ScalarFunctionExpr) -> Option<(usize, i64)> {
    let text = |at: usize| {
        let literal = function.args().get(at)?.downcast_ref::<Literal>()?;
        literal.value().try_as_str()?
    };
    let function = function.fun().inner();
    let truncates = function.is::<DateTruncFunc>() || function.is::<TruncatedTimes>();
    if function.is::<DatePartFunc>() || truncates {
        Some((1, step_of_part(text(0)?)?))
    } else if function.is::<ToCharFunc>() {
        Some((0, step_of_format(text(1)?)?))
    } else {
        None
    }
}

fn step_of_part(part: &str) -> Option<i64> {
    match part.to_lowercase().as_str() {
        "year" | "isoyear" | "quarter" | "month" | "week" | "day" | "doy" | "dow" | "isodow" => {
            Some(DAY)
        }
        "hour" => Some(HOUR),
        "minute" => Some(MINUTE),
        _ => None,
    }
}

/// By the smallest part of a time that a format of `to_char` has.
fn step_of_format(format: &str) -> Option<i64> {
    let mut step = DAY;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            continue;
        }
        let mut kind = letters.next()?;
        if matches!(kind, '-' | '_' | '0') {
            kind = letters.next()?;
        }
        step = step.min(match kind {
            'Y' | 'C' | 'y' | 'G' | 'g' | 'q' | 'm' | 'b' | 'B' | 'h' | 'd' | 'e' | 'a' | 'A'
            | 'w' | 'u' | 'U' | 'W' | 'V' | 'j' | 'D' | 'F' | 'v' | 'n' | 't' | '%' => DAY,
            'H' | 'k' | 'I' | 'l' | 'P' | 'p' => HOUR,
            'M' | 'R' => MINUTE,
            'S' | 'T' => 1,
            _ => return None,
        });
    }
    Some(step)
}
