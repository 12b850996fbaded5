//! `range` and `generate_series` as values: lists of numbers, dates or times.
//!
//! In: DataFusion's functions. Out: the same lists, or an error before memory is gone that they would take.
//! Invariant: a call whose lists have more than `FOLDED_MAX` elements is no constant of the plan. DataFusion compares,
//! hashes and writes constants as text again and again: ten million elements took it 18 seconds. The table functions of
//! these names give rows one batch after the other; only steps by the clock of a zone are ours there.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Date32Builder, ListBuilder, RecordBatch, TimestampNanosecondBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, Schema, TimeUnit, TimestampNanosecondType,
};
use datafusion::catalog::{
    MemTable, TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, exec_err};
use datafusion::functions_nested::range::{gen_series_udf, range_udf};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

use crate::error::Error;
use crate::expr::columns::has_offset;
use crate::expr::function_methods::function_methods;
use crate::functions::casts::intervals::NANOS_PER_DAY;
use crate::functions::casts::zones::series;
use crate::functions::wrapped::as_wrapped;
use crate::runtime::options::SessionOptions;

/// Elements of a list that is computed while planning.
const FOLDED_MAX: u128 = 10_000;

/// Lists may take this part of the memory limit: what reads them copies them.
const MEMORY_PART: u64 = 4;

/// Bytes of an element.
const ELEMENT_BYTES: u64 = 8;

/// Places in lists are 32 bits.
const ELEMENTS_MAX: u64 = i32::MAX as u64;

/// The one of both whose last element may be the stop.
const SERIES: &str = "generate_series";

/// Both functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [range_udf(), gen_series_udf()].map(|datafusion| {
        let signature = datafusion.signature().clone();
        ScalarUDF::new_from_impl(Ranges {
            datafusion,
            signature,
        })
    })
}

/// Whether a call is a constant where its arguments are.
pub(crate) fn is_folded(part: &Expr) -> bool {
    folded(part).is_some()
}

fn folded(part: &Expr) -> Option<(&ScalarFunction, &Ranges)> {
    let Expr::ScalarFunction(call) = part else {
        return None;
    };
    let own = call.func.inner().downcast_ref::<Ranges>();
    let own = own.filter(|own| own.signature.volatility == Volatility::Immutable)?;
    Some((call, own))
}

/// A call of long lists becomes one that is evaluated when the query runs.
pub(crate) fn unfolded(part: Expr) -> Transformed<Expr> {
    let Some((call, own)) = folded(&part) else {
        return Transformed::no(part);
    };
    let literals = call.args.iter().map(|arg| match arg {
        Expr::Literal(value, _) => Some(ColumnarValue::Scalar(value.clone())),
        _ => None,
    });
    let literals: Option<Vec<ColumnarValue>> = literals.collect();
    let elements = literals.and_then(|literals| elements(&literals).ok());
    if elements.is_none_or(|elements| elements <= FOLDED_MAX) {
        return Transformed::no(part);
    }
    let late = Ranges {
        datafusion: Arc::clone(&own.datafusion),
        signature: Signature {
            volatility: Volatility::Volatile,
            ..own.signature.clone()
        },
    };
    let late = Arc::new(ScalarUDF::new_from_impl(late));
    let late = ScalarFunction::new_udf(late, call.args.clone());
    Transformed::yes(Expr::ScalarFunction(late))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ranges {
    datafusion: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for Ranges {
    function_methods!();

    as_wrapped!(datafusion: name, coerce_types, return_type, return_field_from_args);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let limit = SessionOptions::of(&args.config_options).memory_limit_bytes();
        let most = ELEMENTS_MAX.min(limit / MEMORY_PART / ELEMENT_BYTES);
        check_steps(&args.args, self.name())?;
        let elements = elements(&args.args)?;
        if elements > u128::from(most) {
            let message = format!(
                "'{}' makes lists of {elements} elements, and {most} fit memory_limit; in FROM it is a table of as many rows as you like",
                self.name()
            );
            return Err(Error::Execution(message).into());
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let own = match zoned(&args.args, self.name(), most)? {
            Some(lists) => Some(lists),
            None => dated(&args.args, self.name())?,
        };
        match own {
            Some(lists) => Ok(ColumnarValue::Array(lists)),
            None => self.datafusion.invoke_with_args(args),
        }
    }
}

/// Lists of dates; DataFusion ends `range` a step before the stop, which months of several lengths miss. `None` of all else.
fn dated(args: &[ColumnarValue], name: &str) -> Result<Option<ArrayRef>> {
    let [start, stop, step] = args else {
        return Ok(None);
    };
    let are_days = [start, stop].map(|of| of.data_type() == DataType::Date32);
    if are_days.contains(&false) || !matches!(step.data_type(), DataType::Interval(_)) {
        return Ok(None);
    }
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let [starts, stops] = [0, 1].map(|at| arrays[at].as_primitive::<Date32Type>());
    let steps = cast(&arrays[2], &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
    let mut lists = ListBuilder::new(Date32Builder::new());
    for ((start, stop), step) in starts.iter().zip(stops).zip(steps) {
        let (Some(start), Some(stop), Some(step)) = (start, stop, step) else {
            lists.append_null();
            continue;
        };
        if step.months == 0 && step.days == 0 {
            return exec_err!("the step of '{name}' of dates is less than a day");
        }
        let is_down = step_nanos(step) < 0;
        let is_in = |day: &i32| match day.cmp(&stop) {
            Ordering::Equal => name == SERIES,
            Ordering::Less => !is_down,
            Ordering::Greater => is_down,
        };
        let next = |day: &i32| {
            let next = Date32Type::add_month_day_nano_opt(*day, step);
            next.filter(|next| next != day && (next < day) == is_down)
        };
        let days = std::iter::successors(Some(start), next).take_while(is_in);
        lists.append_value(days.map(Some));
    }
    Ok(Some(Arc::new(lists.finish())))
}

/// Lists of timestamps by the clock of their zone; DataFusion ends where a clock is skipped or repeated. `None` of all else.
fn zoned(args: &[ColumnarValue], name: &str, most: usize) -> Result<Option<ArrayRef>> {
    let [start, stop, step] = args else {
        return Ok(None);
    };
    let of = start.data_type();
    let DataType::Timestamp(TimeUnit::Nanosecond, Some(zone)) = &of else {
        return Ok(None);
    };
    if !has_offset(zone) || !matches!(step.data_type(), DataType::Interval(_)) {
        return Ok(None);
    }
    let arrays = ColumnarValue::values_to_arrays(&[start.clone(), stop.clone(), step.clone()])?;
    let stops = cast(&arrays[1], &of)?;
    let steps = cast(&arrays[2], &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let starts = arrays[0].as_primitive::<TimestampNanosecondType>();
    let stops = stops.as_primitive::<TimestampNanosecondType>();
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
    let values = TimestampNanosecondBuilder::new().with_data_type(of.clone());
    let mut lists = ListBuilder::new(values);
    let zone: Tz = zone.parse()?;
    for ((start, stop), step) in starts.iter().zip(stops).zip(steps) {
        let (Some(start), Some(stop), Some(step)) = (start, stop, step) else {
            lists.append_null();
            continue;
        };
        if step == IntervalMonthDayNano::ZERO {
            return exec_err!("the step of '{name}' is an interval of no length");
        }
        match series([start, stop], step, zone, name == SERIES, most) {
            Some(values) => lists.append_value(values.into_iter().map(Some)),
            None => return exec_err!("'{name}' makes more than {most} timestamps"),
        }
    }
    Ok(Some(Arc::new(lists.finish())))
}

/// The table functions of these names.
pub(super) fn tables(context: &SessionContext) {
    for name in ["range", SERIES] {
        if let Ok(datafusion) = context.table_function(name) {
            context.register_udtf(name, Arc::new(SeriesTable(datafusion)));
        }
    }
}

/// A table function that steps by the clock of a zone, too.
#[derive(Debug)]
struct SeriesTable(Arc<TableFunction>);

impl TableFunctionImpl for SeriesTable {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let literals = args.exprs().iter().map(|expr| match expr {
            Expr::Literal(value, _) => Some(ColumnarValue::Scalar(value.clone())),
            _ => None,
        });
        let literals: Option<Vec<ColumnarValue>> = literals.collect();
        let name = self.0.name();
        let lists = match literals {
            Some(literals) => {
                check_steps(&literals, name)?;
                zoned(&literals, name, ELEMENTS_MAX as usize)?
            }
            None => None,
        };
        let Some(lists) = lists else {
            return self.0.function().call_with_args(args);
        };
        let values = lists.as_list::<i32>().values();
        let field = Field::new("value", values.data_type().clone(), false);
        let schema = Arc::new(Schema::new(vec![field]));
        let rows = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)])?;
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![rows]])?))
    }
}

/// An error for a step with parts of both signs, such as `1 month -29 days`, which may lead back to where it began. DataFusion
/// takes all of them for steps back.
fn check_steps(args: &[ColumnarValue], name: &str) -> Result<()> {
    let Some(steps) = args.get(2) else {
        return Ok(());
    };
    if !matches!(steps.data_type(), DataType::Interval(_)) {
        return Ok(());
    }
    let steps = ColumnarValue::values_to_arrays(std::slice::from_ref(steps))?;
    let steps = cast(&steps[0], &DataType::Interval(IntervalUnit::MonthDayNano))?;
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
    let is_mixed = |step: IntervalMonthDayNano| {
        let parts = [step.months.into(), step.days.into(), step.nanoseconds];
        parts.iter().any(|part| *part < 0) && parts.iter().any(|part| *part > 0)
    };
    match steps.iter().flatten().any(is_mixed) {
        false => Ok(()),
        true => exec_err!(
            "the step of '{name}' goes both forth and back; write months, days and times of one sign"
        ),
    }
}

/// How many elements the lists of a call have together; of dates and times nearly.
fn elements(args: &[ColumnarValue]) -> Result<u128> {
    let arrays = ColumnarValue::values_to_arrays(args)?;
    let Some(last) = arrays.last() else {
        return Ok(0);
    };
    let bounds = arrays.iter().map(|array| match array.data_type() {
        DataType::Interval(_) => Ok(Arc::clone(array)),
        DataType::Int64 | DataType::Null => cast(array, &DataType::Int64),
        _ => {
            let nanos = cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
            Ok(Arc::new(
                nanos
                    .as_primitive::<TimestampNanosecondType>()
                    .reinterpret_cast::<Int64Type>(),
            ) as ArrayRef)
        }
    });
    let bounds: Vec<ArrayRef> = bounds.collect::<std::result::Result<_, _>>()?;
    let rows = last.len();
    let value = |array: &ArrayRef, row: usize| match array.is_null(row) {
        true => None,
        false => Some(match array.as_primitive_opt::<IntervalMonthDayNanoType>() {
            Some(steps) => step_nanos(steps.value(row)),
            None => i128::from(array.as_primitive_opt::<Int64Type>()?.value(row)),
        }),
    };
    let length = |row: usize| {
        let (start, stop, step) = match bounds.as_slice() {
            [stop] => (0, value(stop, row)?, 1),
            [start, stop] => (value(start, row)?, value(stop, row)?, 1),
            [start, stop, step, ..] => (value(start, row)?, value(stop, row)?, value(step, row)?),
            [] => return None,
        };
        let distance = if step < 0 { start - stop } else { stop - start };
        let steps = distance.checked_div(step.abs())?;
        u128::try_from(steps).ok()
    };
    Ok((0..rows).filter_map(length).sum())
}

/// A step in nanoseconds; a month counts as 31 days.
fn step_nanos(step: IntervalMonthDayNano) -> i128 {
    let days = i128::from(step.months) * 31 + i128::from(step.days);
    days * i128::from(NANOS_PER_DAY) + i128::from(step.nanoseconds)
}

#[cfg(test)]
mod tests {
    use datafusion::common::ScalarValue;

    use super::*;

    #[test]
    fn lists_are_counted_before_they_are_made() {
        fn check(args: &[i64], expected: u128) {
            let args = args.iter().map(|&arg| ScalarValue::from(arg));
            let args: Vec<_> = args.map(ColumnarValue::Scalar).collect();
            assert_eq!(elements(&args).unwrap(), expected);
        }
        check(&[10], 10);
        check(&[-10], 0);
        check(&[1, 11, 2], 5);
        check(&[11, 1, -2], 5);
        check(&[1, 11, 0], 0);
        check(&[i64::MIN, i64::MAX], u128::from(u64::MAX));
    }
}
