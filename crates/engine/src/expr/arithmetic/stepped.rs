//! Functions of dates, times and integers that have one result for all values of a step, once per step.
//!
//! In: `date_part`, `date_trunc` and `to_char` of a column without a time zone or in UTC, a cast of integers to strings; then batches.
//! Out: DataFusion's results. As a key of a group-by, strings as codes of those of a batch.
//! Invariant: a result of DataFusion's stands for all values of its step, and each step's value lies between two that the batch
//! has: such a value cannot fail where these do not. A batch of too many steps is DataFusion's.
//! Not here: other time zones, whose days begin at other seconds; strings (functions/patterns.rs, expr/per_value.rs).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int64Array, RecordBatch, UInt32Array,
};
use datafusion::arrow::compute::{cast, max, min, take};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit, UInt32Type};
use datafusion::common::{Result, internal_err};
use datafusion::functions::datetime::date_part::DatePartFunc;
use datafusion::functions::datetime::date_trunc::DateTruncFunc;
use datafusion::functions::datetime::to_char::ToCharFunc;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use grouse_groupby::keys::is_bytes;
use grouse_kernels::divide::Divisor;

use crate::expr::columns::{applied, has_offset};

/// A batch has so many rows for each step, or more.
const ROWS_PER_STEP: usize = 4;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How such an expression is computed.
#[derive(Debug, Clone)]
pub(super) struct Stepped {
    /// Values of so many units have one result.
    step: i64,
    /// Which of the expression's children the column is.
    at: usize,
    /// The column's type.
    data_type: DataType,
    /// The expression over that column alone.
    over: Arc<dyn PhysicalExpr>,
}

impl PartialEq for Stepped {
    fn eq(&self, other: &Self) -> bool {
        let key = |of: &Self| (of.step, of.at, of.data_type.clone());
        key(self) == key(other) && self.over.eq(&other.over)
    }
}

impl Eq for Stepped {}

impl Hash for Stepped {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.step, self.at, &self.data_type, &self.over).hash(state);
    }
}

impl Stepped {
    /// Of an expression that has steps of more than a unit, or whose column mostly has few values.
    pub fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Stepped> {
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
        Some(Stepped {
            step,
            at,
            data_type,
            over: over(expr, at)?,
        })
    }

    /// The same of the expression with other children.
    pub fn of_other(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Stepped> {
        Some(Stepped {
            over: over(expr, self.at)?,
            ..self.clone()
        })
    }

    /// The values of a batch.
    pub fn computed(
        &self,
        host: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> Result<ColumnarValue> {
        let column = match host.children()[self.at].evaluate(batch)? {
            ColumnarValue::Array(column) if *column.data_type() == self.data_type => column,
            _ => return host.evaluate(batch),
        };
        let values = match self.steps(&column)? {
            Some((values, places)) => take(&values, &places, None)?,
            None => self.values(column)?,
        };
        Ok(ColumnarValue::Array(values))
    }

    /// The same expression, which is a key of texts, as codes.
    pub fn coded(
        &self,
        host: &Arc<dyn PhysicalExpr>,
        of: &DataType,
    ) -> Option<Arc<dyn PhysicalExpr>> {
        if !is_bytes(of) {
            return None;
        }
        let data_type = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(of.clone()));
        let field = Arc::new(Field::new("codes", data_type, true));
        let codes = Codes {
            stepped: self.clone(),
            signature: Signature::any(1, Volatility::Immutable),
        };
        let column = Arc::clone(host.children()[self.at]);
        Some(applied(codes, vec![column], &field))
    }

    /// The result of each step of a column, and each row's place among them; `None` if its steps are many.
    fn steps(&self, column: &ArrayRef) -> Result<Option<(ArrayRef, UInt32Array)>> {
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
        let values = self.values(cast(&starts, &self.data_type)?)?;
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
        Ok(Some((values, places)))
    }

    /// DataFusion's results of a column.
    fn values(&self, column: ArrayRef) -> Result<ArrayRef> {
        let rows = column.len();
        let schema = Schema::new(vec![Field::new("column", self.data_type.clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![column])?;
        self.over.evaluate(&batch)?.into_array(rows)
    }
}

/// The expression over its child at this place, as the only column there is; `None` if it has others than literals beside it.
fn over(expr: &Arc<dyn PhysicalExpr>, at: usize) -> Option<Arc<dyn PhysicalExpr>> {
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("column", 0));
    let children = expr.children().into_iter().enumerate();
    let children = children.map(|(place, child)| match place == at {
        true => Some(Arc::clone(&column)),
        false => child.is::<Literal>().then(|| Arc::clone(child)),
    });
    let children = children.collect::<Option<Vec<_>>>()?;
    Arc::clone(expr).with_new_children(children).ok()
}

/// Which argument is the time, and for how many seconds from a whole number of them on the result is the same.
fn step_of(function: &ScalarFunctionExpr) -> Option<(usize, i64)> {
    let text = |at: usize| {
        let literal = function.args().get(at)?.downcast_ref::<Literal>()?;
        literal.value().try_as_str()?
    };
    let function = function.fun().inner();
    if function.is::<DatePartFunc>() || function.is::<DateTruncFunc>() {
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

/// By the finest part of a time that a format of `to_char` has.
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

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// An expression's values as codes of those of their batch.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Codes {
    stepped: Stepped,
    signature: Signature,
}

impl ScalarUDFImpl for Codes {
    fn name(&self) -> &str {
        "codes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        let schema = Schema::new(vec![Field::new(
            "column",
            self.stepped.data_type.clone(),
            true,
        )]);
        let of = self.stepped.over.data_type(&schema)?;
        Ok(DataType::Dictionary(
            Box::new(DataType::UInt32),
            Box::new(of),
        ))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].clone().into_array(args.number_rows)?;
        if *column.data_type() != self.stepped.data_type {
            return internal_err!(
                "{} where {} was planned",
                column.data_type(),
                self.stepped.data_type
            );
        }
        let (values, places) = match self.stepped.steps(&column)? {
            Some(steps) => steps,
            None => {
                let all = UInt32Array::from_iter_values(0..column.len() as u32);
                (self.stepped.values(column)?, all)
            }
        };
        let codes = DictionaryArray::<UInt32Type>::try_new(places, values)?;
        Ok(ColumnarValue::Array(Arc::new(codes)))
    }
}
