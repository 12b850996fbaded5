//! Intervals: `INTERVAL '1:30'`, `INTERVAL 3 QUARTERS`, `INTERVAL (n) DAY`, `-INTERVAL '1 month'`, `dateadd('day', n, d)`.
//!
//! In: an interval as the parser has it. Out: one that DataFusion reads exactly, or a cast of a string where its value is no literal.
//! Invariant: a number without a unit is an error; of an interval that is not written as a literal the fraction is cut off.
//! Not here: what the text of an interval means (functions/casts/intervals.rs).

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, DateTimeField, ExactNumberInfo, Expr, Interval, Value,
};

use crate::error::{Error, Result};
use crate::functions;
use crate::sql::ast::{call, literal_text, number, parse_expr, text};
use crate::sql::short_forms::{cast, literal_number};

/// An interval that is written: `INTERVAL '1:30'`, `INTERVAL '1.5' MONTH`; `None` for others.
fn written_interval(interval: &Interval) -> Option<Expr> {
    let value = match literal_text(&interval.value) {
        Some(value) => value.to_owned(),
        None => literal_number(&interval.value).filter(|_| interval.leading_field.is_some())?,
    };
    let written = match &interval.leading_field {
        None => value,
        // Two units, as in INTERVAL '1 day' HOUR, are none of ours.
        Some(_) if value.contains(|c: char| c.is_alphabetic() || c == ':') => return None,
        Some(unit) => format!("{value} {unit}"),
    };
    Some(Expr::Interval(Interval {
        value: Box::new(text(&functions::Interval::read(&written)?.plain())),
        leading_field: None,
        ..interval.clone()
    }))
}

/// `INTERVAL (n) DAY` of what is no literal: as many days, the fraction cut off.
pub(super) fn interval_of(interval: &Interval) -> Result<Option<Expr>> {
    if let Some(written) = written_interval(interval) {
        return Ok(Some(written));
    }
    let Some(unit) = &interval.leading_field else {
        return match interval.value.as_ref() {
            Expr::Value(value) if matches!(value.value, Value::Number(..)) => {
                Err(without_unit(&value.to_string()))
            }
            _ => Ok(None),
        };
    };
    if *unit == DateTimeField::Quarter {
        return interval_of(&in_months(interval));
    }
    if let Some(value) = literal_number(&interval.value) {
        let mut interval = interval.clone();
        interval.value = Box::new(text(&value));
        return Ok(Some(Expr::Interval(interval)));
    }
    let value = match interval.value.as_ref() {
        Expr::Value(_) | Expr::UnaryOp { .. } => return Ok(None),
        other => other,
    };
    if interval.last_field.is_some() || interval.leading_precision.is_some() {
        return Ok(None);
    }
    let whole = cast(
        call(
            "trunc",
            vec![cast(value.clone(), DataType::Double(ExactNumberInfo::None))],
        ),
        DataType::BigInt(None),
    );
    let amount = match unit {
        DateTimeField::Second | DateTimeField::Seconds => {
            cast(value.clone(), DataType::Double(ExactNumberInfo::None))
        }
        DateTimeField::Custom(_) | DateTimeField::NoDateTime => return Ok(None),
        _ => whole,
    };
    let words = Expr::BinaryOp {
        left: Box::new(cast(amount, DataType::Varchar(None))),
        op: BinaryOperator::StringConcat,
        right: Box::new(text(&format!(" {unit}"))),
    };
    Ok(Some(cast(
        Expr::Nested(Box::new(words)),
        DataType::Interval {
            fields: None,
            precision: None,
        },
    )))
}

/// A quarter is three months.
fn in_months(interval: &Interval) -> Interval {
    let quarters = interval.value.as_ref().clone();
    let months = Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(quarters))),
        op: BinaryOperator::Multiply,
        right: Box::new(number(3)),
    };
    Interval {
        value: Box::new(Expr::Nested(Box::new(months))),
        leading_field: Some(DateTimeField::Month),
        ..interval.clone()
    }
}

fn without_unit(number: &str) -> Error {
    Error::unsupported_clause(format!(
        "INTERVAL {number} has no unit of time; write e.g. INTERVAL {number} DAY"
    ))
}

/// `-INTERVAL '1 month 2 days'`: DataFusion would negate the months alone.
pub(super) fn negated(expr: &Expr) -> Option<Expr> {
    let Expr::Interval(interval) = expr else {
        return None;
    };
    let None = interval.leading_field else {
        return None;
    };
    let written = functions::Interval::read(literal_text(&interval.value)?)?;
    Some(Expr::Interval(Interval {
        value: Box::new(text(&written.negated()?.plain())),
        ..interval.clone()
    }))
}

/// `dateadd('day', n, d)` is `d + INTERVAL (n) day`.
pub(super) fn added(unit: &str, count: &Expr, to: &Expr) -> Result<Option<Expr>> {
    let of_unit = match count {
        Expr::Value(_) => format!("INTERVAL {count} {unit}"),
        _ => format!("INTERVAL ({count}) {unit}"),
    };
    let Ok(Expr::Interval(interval)) = parse_expr(&of_unit) else {
        return Ok(None);
    };
    let interval = interval_of(&interval)?.unwrap_or(Expr::Interval(interval));
    Ok(Some(Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(to.clone()))),
        op: BinaryOperator::Plus,
        right: Box::new(interval),
    }))
}
