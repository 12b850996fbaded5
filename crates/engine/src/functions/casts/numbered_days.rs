//! Dates of numbers of days since 1970.
//!
//! In: integers. Out: dates.
//! Invariant: a day that no calendar here reaches is an error, and NULL in TRY_CAST. DataFusion makes a date of it that can neither
//! be shown nor asked for its year.
//! Not here: dates of strings and of timestamps.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::Expr;

use crate::functions::casts::own_cast::{OwnCast, own_cast};
use crate::wire::portable;

/// -262143-01-01 and 262142-12-31.
const DAYS: std::ops::RangeInclusive<i64> = -96_465_292..=95_026_236;

/// The date of a number of days.
pub(crate) fn date_of_number(days: Expr, is_try: bool) -> Expr {
    own_cast(DateOfNumber { is_try }, days)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct DateOfNumber {
    is_try: bool,
}

impl OwnCast for DateOfNumber {
    fn name(&self) -> &'static str {
        match self.is_try {
            true => "date of number or NULL",
            false => "date of number",
        }
    }

    fn to(&self) -> &DataType {
        &DataType::Date32
    }

    fn is_try(&self) -> bool {
        self.is_try
    }

    fn compute(&self, days: &ArrayRef) -> Result<ArrayRef> {
        let numbers = cast(days, &DataType::Int64)?;
        let mut dates = Date32Array::builder(numbers.len());
        for (row, day) in numbers.as_primitive::<Int64Type>().iter().enumerate() {
            // An unsigned number beyond 64 bits is NULL by now.
            let day = match (day, days.is_null(row)) {
                (None, false) => Some(i64::MAX),
                (day, _) => day,
            };
            match day {
                Some(day) if DAYS.contains(&day) => {
                    dates.append_option(i32::try_from(day).ok());
                }
                Some(day) if !self.is_try => {
                    return exec_err!(
                        "day {day} is no date: days are counted from 1970-01-01, from {} to {}",
                        DAYS.start(),
                        DAYS.end()
                    );
                }
                _ => dates.append_null(),
            }
        }
        Ok(Arc::new(dates.finish()))
    }
}

portable!(DateOfNumber, "date_of_number", is_try: flag);

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::Date32Type;

    use super::*;

    #[test]
    fn days_within_the_calendar() {
        let days: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), None, Some(95_026_237)]));
        let dates = DateOfNumber { is_try: true }.compute(&days).unwrap();
        let expected = Date32Array::from(vec![Some(0), None, None]);
        assert_eq!(*dates.as_primitive::<Date32Type>(), expected);
        let error = DateOfNumber { is_try: false }.compute(&days).unwrap_err();
        assert!(error.to_string().contains("day 95026237 is no date"));
    }
}
