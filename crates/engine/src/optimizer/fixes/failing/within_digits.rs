//! Results of decimal arithmetic that have more digits than their type.
//!
//! In: `+`, `-` or `*` of decimals as DataFusion computes it. Out: the same values, or an error that says which does not fit.
//! Invariant: a result that cannot have too many digits, as types and literals tell, is not looked at.
//! DataFusion checks that a result fits 128 bits, which hold 39 digits; its type has 38, and text cuts off the last:
//! 5e37 + 5e37 read as 1e37.
//! Not here: integers (checked.rs); divisions, whose results are smaller; sums of groups, which are checked by their states.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrowNumericType, AsArray, PrimitiveArray, RecordBatch};
use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DecimalType, FieldRef, Schema,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal};

use crate::optimizer::fixes::failing::around_operation::{methods_of_operation, same_as_operation};
use crate::optimizer::fixes::failing::checked::type_bounds;
use crate::wire::{PortableExpression, WireReader, WireValue};

/// Levels of an expression that are looked at for the size of its values.
const DEPTH_MAX: usize = 8;

/// What values a part of an expression may have: less than `most` in size, with `scale` digits behind the point.
#[derive(Clone, Copy)]
struct Size {
    most: f64,
    scale: i32,
}

impl Size {
    fn of_type(data_type: &DataType) -> Option<Size> {
        let (digits, scale) = match data_type {
            DataType::Decimal32(digits, scale)
            | DataType::Decimal64(digits, scale)
            | DataType::Decimal128(digits, scale)
            | DataType::Decimal256(digits, scale) => (i32::from(*digits), i32::from(*scale)),
            integer => {
                let (low, high) = type_bounds(integer)?;
                let most = (-(low as f64)).max(high as f64);
                return Some(Size { most, scale: 0 });
            }
        };
        let most = 10_f64.powi(digits - scale);
        Some(Size { most, scale })
    }

    fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, depth: usize) -> Option<Size> {
        if depth > 0 {
            if let Some(literal) = expr.downcast_ref::<Literal>() {
                return Self::of_literal(literal.value());
            }
            if let Some(binary) = expr.downcast_ref::<BinaryExpr>()
                && let Some(size) = Self::of_result(binary, schema, depth - 1)
            {
                return Some(size);
            }
            if let Some(within) = expr.downcast_ref::<WithinDigits>() {
                return Self::of(&within.operation, schema, depth - 1);
            }
            if let Some(cast) = expr.downcast_ref::<CastExpr>()
                && let Some(target) = Self::of_type(cast.cast_type())
            {
                let most = Self::of(cast.expr(), schema, depth - 1).map_or(target.most, |size| {
                    // Rounded to fewer digits.
                    (size.most + 1.0).min(target.most)
                });
                return Some(Size { most, ..target });
            }
        }
        Self::of_type(&expr.data_type(schema).ok()?)
    }

    fn of_literal(value: &ScalarValue) -> Option<Size> {
        let size = Self::of_type(&value.data_type())?;
        let units = match value {
            ScalarValue::Decimal128(Some(units), ..) => *units as f64,
            _ => return Some(size),
        };
        let most = units.abs() / 10_f64.powi(size.scale);
        Some(Size { most, ..size })
    }

    fn of_result(binary: &BinaryExpr, schema: &Schema, depth: usize) -> Option<Size> {
        let size = |side| Self::of(side, schema, depth);
        let (a, b) = (size(binary.left())?, size(binary.right())?);
        Some(match binary.op() {
            Operator::Plus | Operator::Minus => Size {
                most: a.most + b.most,
                scale: a.scale.max(b.scale),
            },
            Operator::Multiply => Size {
                most: a.most * b.most,
                scale: a.scale + b.scale,
            },
            _ => return None,
        })
    }

    /// Whether all such values have at most `digits` digits; the bounds are a little too large or small for their doubles.
    fn fits(self, digits: u8) -> bool {
        self.most * 10_f64.powi(self.scale) < 10_f64.powi(digits.into()) * 0.999
    }
}

/// The operation with its results looked at; `None` if that has no need.
pub(in crate::optimizer::fixes) fn within_digits(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Option<Arc<dyn PhysicalExpr>> {
    let binary = expr.downcast_ref::<BinaryExpr>()?;
    let digits = match binary.right().data_type(schema).ok()? {
        DataType::Decimal128(..) => 38,
        DataType::Decimal256(..) => 76,
        _ => return None,
    };
    let is_checked = matches!(
        binary.op(),
        Operator::Plus | Operator::Minus | Operator::Multiply
    );
    let size = is_checked.then(|| Size::of_result(binary, schema, DEPTH_MAX))?;
    if size.is_some_and(|size| size.fits(digits)) {
        return None;
    }
    let operation = Arc::clone(expr);
    Some(Arc::new(WithinDigits { operation }))
}

/// An operation, whose results it looks at.
#[derive(Debug)]
pub(in crate::optimizer) struct WithinDigits {
    operation: Arc<dyn PhysicalExpr>,
}

same_as_operation!(WithinDigits);

impl PhysicalExpr for WithinDigits {
    methods_of_operation!();

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let results = self.operation.evaluate(batch)?;
        match &results {
            ColumnarValue::Array(array) => fit(array)?,
            ColumnarValue::Scalar(value) => fit(&value.to_array()?)?,
        }
        Ok(results)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let operation = children.pop();
        Ok(operation.map_or_else(
            || Arc::clone(&self) as _,
            |operation| Arc::new(WithinDigits { operation }) as _,
        ))
    }
}

impl PortableExpression for WithinDigits {
    const KIND: &'static str = "within_digits";

    fn apart(&self) -> Vec<WireValue> {
        Vec::new()
    }

    fn whole(
        children: Vec<Arc<dyn PhysicalExpr>>,
        _: &mut WireReader,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 1]>::try_from(children) {
            Ok([operation]) => Ok(Arc::new(WithinDigits { operation })),
            Err(children) => internal_err!("one operation has digits, not {}", children.len()),
        }
    }
}

fn fit(results: &dyn Array) -> Result<()> {
    match results.data_type() {
        DataType::Decimal128(..) => Ok(each_fits(results.as_primitive::<Decimal128Type>())?),
        DataType::Decimal256(..) => Ok(each_fits(results.as_primitive::<Decimal256Type>())?),
        _ => Ok(()),
    }
}

fn each_fits<T: DecimalType + ArrowNumericType>(
    results: &PrimitiveArray<T>,
) -> Result<(), ArrowError> {
    let (digits, scale) = (results.precision(), results.scale());
    let wrong = |value: T::Native| T::validate_decimal_precision(value, digits, scale).is_err();
    // The least and the greatest tell of all: a check of each value took a fifth of TPC-H Q1.
    let mut extremes = [min(results), max(results)].into_iter().flatten();
    if !extremes.any(wrong) {
        return Ok(());
    }
    match results.iter().flatten().find(|value| wrong(*value)) {
        None => Ok(()),
        Some(value) => {
            let value = T::format_decimal(value, u8::MAX, scale);
            Err(ArrowError::ArithmeticOverflow(format!(
                "{value} does not fit DECIMAL({digits}, {scale})"
            )))
        }
    }
}
