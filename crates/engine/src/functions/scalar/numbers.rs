//! Functions of numbers that DuckDB has: operators by name, properties, integers.
//!
//! In: numbers. Out: numbers and booleans.
//! Invariant: an integer that does not fit its type is an error, never another number.
//! Not here: digits in other bases (encodings.rs).

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int8Array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::expr_fn;
use datafusion::logical_expr::{Expr, Operator, ScalarUDF, binary_expr, lit, when};

use super::definition::{CallArguments, CallForm, Definition, only, rows, stands, two};
use super::kinds::ParameterKind;

const DOUBLE: &[CallForm] = &[&[ParameterKind::Double]];
const DOUBLES: &[CallForm] = &[&[ParameterKind::Double, ParameterKind::Double]];
const TWO_INTEGERS: &[CallForm] = &[&[ParameterKind::Integer, ParameterKind::Integer]];

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let all = operators()
        .into_iter()
        .chain(conditions())
        .chain(properties());
    all.chain(integers())
        .chain(doubles())
        .map(ScalarUDF::from)
        .collect()
}

/// Two arguments with an operator between them.
macro_rules! operator {
    ($name:literal, $operator:expr) => {
        stands(
            $name,
            &[&[ParameterKind::Any, ParameterKind::Any]],
            |args| {
                let [left, right] = two(args);
                Ok(binary_expr(left, $operator, right))
            },
        )
    };
}

fn operators() -> Vec<Definition> {
    vec![
        operator!("add", Operator::Plus).or(&[ParameterKind::Number], |args| Ok(only(args))),
        operator!("subtract", Operator::Minus).or(&[ParameterKind::Number], |args| {
            Ok(Expr::Negative(Box::new(only(args))))
        }),
        operator!("multiply", Operator::Multiply),
        operator!("divide", Operator::Divide),
        operator!("xor", Operator::BitwiseXor),
        // Both as DuckDB's: the quotient is cut off towards minus infinity.
        stands("fdiv", DOUBLES, |args| {
            let [x, y] = two(args);
            Ok(expr_fn::floor(x / y))
        }),
        stands("fmod", DOUBLES, |args| {
            let [x, y] = two(args);
            Ok(x.clone() - expr_fn::floor(x / y.clone()) * y)
        }),
    ]
}

fn conditions() -> Vec<Definition> {
    let if_else = stands(
        "if",
        &[&[
            ParameterKind::Boolean,
            ParameterKind::Any,
            ParameterKind::Any,
        ]],
        |args| {
            let mut args = args.into_iter();
            let mut next = || args.next().unwrap_or(lit(ScalarValue::Null));
            when(next(), next()).otherwise(next())
        },
    );
    vec![if_else.also("iff"), if_else.also("if_else"), if_else]
}

fn properties() -> Vec<Definition> {
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    vec![
        rows("isinf", DOUBLE, boolean, |call| {
            test(call, f64::is_infinite)
        })
        .or(&[ParameterKind::Timestamp], |args| {
            Ok(only(args).is_null().and(lit(ScalarValue::Boolean(None))))
        }),
        rows("isfinite", DOUBLE, boolean, |call| {
            test(call, f64::is_finite)
        })
        .or(&[ParameterKind::Timestamp], |args| {
            Ok(only(args).is_not_null().or(lit(ScalarValue::Boolean(None))))
        }),
        rows("signbit", DOUBLE, boolean, |call| {
            test(call, f64::is_sign_negative)
        }),
        rows(
            "sign",
            DOUBLE,
            |_| Ok(DataType::Int8),
            |call| {
                let numbers = call.doubles(0);
                call.each::<Int8Array, _>(|row| {
                    let number = numbers.value(row);
                    Ok(Some(i8::from(number > 0.0) - i8::from(number < 0.0)))
                })
            },
        ),
        rows(
            "bit_count",
            &[&[ParameterKind::Number]],
            |_| Ok(DataType::Int8),
            bit_count,
        ),
    ]
}

fn test(call: &CallArguments, is: fn(f64) -> bool) -> Result<ArrayRef> {
    let numbers = call.doubles(0);
    call.each::<BooleanArray, _>(|row| Ok(Some(is(numbers.value(row)))))
}

/// How many bits are set in an integer, as wide as its type.
fn bit_count(call: &CallArguments) -> Result<ArrayRef> {
    let column = &call.args[0];
    let bits = match column.data_type() {
        DataType::Int8 | DataType::UInt8 => 8,
        DataType::Int16 | DataType::UInt16 => 16,
        DataType::Int32 | DataType::UInt32 => 32,
        DataType::Int64 | DataType::UInt64 => 64,
        _ => {
            return Err(call.invalid("it counts the bits of an integer; cast the number to BIGINT"));
        }
    };
    if let DataType::UInt64 = column.data_type() {
        let numbers = column.as_primitive::<datafusion::arrow::datatypes::UInt64Type>();
        return call.each::<Int8Array, _>(|row| Ok(Some(numbers.value(row).count_ones() as i8)));
    }
    let wide = cast(column, &DataType::Int64)?;
    let numbers = wide.as_primitive::<Int64Type>();
    let mask = if bits == 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    };
    call.each::<Int8Array, _>(|row| Ok(Some((numbers.value(row) as u64 & mask).count_ones() as i8)))
}

fn integers() -> Vec<Definition> {
    const HUGE: DataType = DataType::Decimal128(38, 0);
    vec![
        stands("greatest_common_divisor", TWO_INTEGERS, |args| {
            let [a, b] = two(args);
            Ok(expr_fn::gcd(a, b))
        }),
        stands("least_common_multiple", TWO_INTEGERS, |args| {
            let [a, b] = two(args);
            Ok(expr_fn::lcm(a, b))
        }),
        rows(
            "factorial",
            &[&[ParameterKind::Integer]],
            |_| Ok(HUGE),
            |call| {
                let numbers = call.integers(0);
                let factorials = call.each::<Decimal128Array, _>(|row| {
                    let number = numbers.value(row);
                    let factors = (0..=33).contains(&number).then_some(1..=i128::from(number));
                    let product = factors.map(|factors| factors.product::<i128>());
                    product.map(Some).ok_or_else(|| {
                        call.invalid(format!(
                            "of {number} there is none in HUGEINT; it takes 0 to 33"
                        ))
                    })
                })?;
                let factorials =
                    factorials.as_primitive::<datafusion::arrow::datatypes::Decimal128Type>();
                Ok(std::sync::Arc::new(
                    factorials.clone().with_precision_and_scale(38, 0)?,
                ))
            },
        ),
    ]
}

fn doubles() -> Vec<Definition> {
    let double = |_: &[DataType]| Ok(DataType::Float64);
    let round_even = rows(
        "round_even",
        &[&[ParameterKind::Double, ParameterKind::Integer]],
        double,
        |call| {
            let (numbers, digits) = (call.doubles(0), call.integers(1));
            call.each::<Float64Array, _>(|row| {
                let scale = 10_f64.powi(digits.value(row).clamp(-400, 400) as i32);
                let scaled = numbers.value(row) * scale;
                Ok(Some(match scaled.is_finite() && scale != 0.0 {
                    true => scaled.round_ties_even() / scale,
                    false => numbers.value(row),
                }))
            })
        },
    );
    vec![
        round_even.also("roundbankers"),
        round_even,
        stands("ceiling", DOUBLE, |args| Ok(expr_fn::ceil(only(args)))),
        rows("even", DOUBLE, double, |call| {
            let numbers = call.doubles(0);
            call.each::<Float64Array, _>(|row| {
                let half = numbers.value(row) / 2.0;
                let away = if half < 0.0 {
                    half.floor()
                } else {
                    half.ceil()
                };
                Ok(Some(away * 2.0))
            })
        }),
        rows("nextafter", DOUBLES, double, |call| {
            let (from, to) = (call.doubles(0), call.doubles(1));
            call.each::<Float64Array, _>(|row| {
                let (from, to) = (from.value(row), to.value(row));
                Ok(Some(match from.partial_cmp(&to) {
                    Some(std::cmp::Ordering::Less) => from.next_up(),
                    Some(std::cmp::Ordering::Greater) => from.next_down(),
                    Some(std::cmp::Ordering::Equal) => to,
                    None => f64::NAN,
                }))
            })
        }),
    ]
}
