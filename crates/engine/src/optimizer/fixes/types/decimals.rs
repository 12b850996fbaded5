//! Decimals and integers beside literals with a decimal point, and decimals beside doubles.
//!
//! In: operands that are to have one type. Out: beside a DECIMAL, literals are the decimals that they are written as, also
//! in sums, differences, products and remainders. Where one operand is a double, the decimals are compared as doubles, and so are
//! integers that have a decimal in common.
//! Invariant: no digit is lost: a literal that no decimal holds stays a double. DataFusion calls each such literal a
//! double and compares it as DECIMAL(30, 15). Then `price = 94861.47` finds nothing, because the double nearest to
//! 94861.47 has more digits than that, and `price < 1e20` is an error.
//! Not here: literals beside integers alone (beside_integers.rs); results of arithmetic, where a literal is a double, as the
//! division that often follows expects.

use datafusion::arrow::datatypes::{DataType, i256};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, Operator};

use crate::optimizer::fixes::types::long_literals;

/// Digits of a Decimal128.
const DIGITS: u8 = 38;

/// Digits of a Decimal256.
const DIGITS_MAX: u8 = 76;

/// The integers of 64 bits, with a sign and without, and the digits of any.
const LEAST_INTEGER: i128 = i64::MIN as i128;
const GREATEST_INTEGER: i128 = u64::MAX as i128;
pub(super) const INTEGER_DIGITS: u8 = 20;

/// The first double behind which integers are missing.
const EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;

/// Digits that every double gives back as they were written.
const DOUBLE_DIGITS: usize = 15;

/// A number as it is written: `units` / 10^`scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::optimizer::fixes) struct WrittenNumber {
    units: i128,
    digits: u8,
    scale: u8,
}

impl WrittenNumber {
    /// Of text without an exponent; `None` if it has more digits than a Decimal128.
    pub(in crate::optimizer::fixes) fn parse(text: &str) -> Option<WrittenNumber> {
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let figures = format!("{whole}{fraction}");
        let figures = figures.trim_start_matches('0');
        let scale = u8::try_from(fraction.len()).ok()?;
        let digits = u8::try_from(figures.len()).ok()?.max(scale).max(1);
        if digits > DIGITS {
            return None;
        }
        let units: i128 = match figures {
            "" => 0,
            figures => figures.parse().ok()?,
        };
        Some(WrittenNumber {
            units: sign * units,
            digits,
            scale,
        })
    }

    /// Of a literal: the shortest text that stands for its double is what was written, up to 15 digits; longer literals are
    /// no doubles (long_literals.rs).
    pub(in crate::optimizer::fixes) fn of(expr: &Expr) -> Option<WrittenNumber> {
        match expr {
            Expr::Literal(ScalarValue::Float64(Some(value)), _) if value.is_finite() => {
                WrittenNumber::parse(&value.to_string())
            }
            Expr::ScalarFunction(call) => {
                long_literals::text_of(call).and_then(WrittenNumber::parse)
            }
            _ => None,
        }
    }

    /// Of a literal that stands beside integers, and whether a double might be another number, as 9007199254740992 is for
    /// 9007199254740993.0.
    pub(super) fn beside_integers(expr: &Expr) -> Option<(WrittenNumber, bool)> {
        let written = WrittenNumber::of(expr)?;
        let Expr::Literal(ScalarValue::Float64(Some(double)), _) = expr else {
            return Some((written, true));
        };
        let is_far = double.abs() >= EXACT_DOUBLE;
        // A parameter with more digits than a literal keeps is the whole number that it is.
        let number = match is_far && written.significant_digits() > DOUBLE_DIGITS {
            true => WrittenNumber::parse(&format!("{double:.0}"))?,
            false => written,
        };
        Some((number, is_far))
    }

    /// Whether it lies where doubles miss some integers.
    pub(super) fn is_far(&self) -> bool {
        let whole = self.units.unsigned_abs() / 10_u128.pow(u32::from(self.scale));
        whole >= EXACT_DOUBLE as u128
    }

    /// The units of a number without digits behind the point.
    pub(super) fn whole(self) -> Option<i128> {
        (self.scale == 0).then_some(self.units)
    }

    /// A short number with the same integers below and above it, and equal to the same one.
    pub(super) fn nearby(self) -> WrittenNumber {
        let unit = 10_i128.pow(u32::from(self.scale));
        let (whole, rest) = (self.units.div_euclid(unit), self.units.rem_euclid(unit));
        let whole = whole.clamp(LEAST_INTEGER - 1, GREATEST_INTEGER + 1);
        let (units, scale) = match rest {
            0 => (whole, 0),
            _ => (whole * 10 + 5, 1),
        };
        WrittenNumber {
            units,
            digits: INTEGER_DIGITS + scale,
            scale,
        }
    }

    fn significant_digits(self) -> usize {
        let digits = self.units.unsigned_abs().to_string();
        digits.trim_end_matches('0').len()
    }

    /// Digits before the point.
    pub(in crate::optimizer::fixes) fn whole_digits(self) -> u8 {
        self.digits - self.scale
    }

    /// Digits behind it.
    pub(in crate::optimizer::fixes) fn scale(self) -> u8 {
        self.scale
    }

    /// As the DECIMAL of the fewest digits.
    pub(in crate::optimizer::fixes) fn narrowest(self) -> ScalarValue {
        ScalarValue::Decimal128(Some(self.units), self.digits, self.scale.cast_signed())
    }

    /// As a literal: of the type of the column beside it, so that no value of the column has to be cast, or else of the
    /// narrowest. `wide`: the common type has more digits than a Decimal128.
    fn literal(self, column: Option<&DataType>, wide: bool) -> Expr {
        let (digits, scale) = (self.digits, self.scale);
        let scaled = |to: i8| {
            let by = u32::try_from(i16::from(to) - i16::from(scale)).ok()?;
            self.units.checked_mul(10_i128.checked_pow(by)?)
        };
        let fits = |precision: u8, to: i8| {
            size_of(precision, to).is_some_and(|(whole, _)| whole >= self.whole_digits())
        };
        let value = match column {
            Some(&DataType::Decimal32(p, s)) if fits(p, s) => scaled(s)
                .and_then(|units| i32::try_from(units).ok())
                .map(|units| ScalarValue::Decimal32(Some(units), p, s)),
            Some(&DataType::Decimal64(p, s)) if fits(p, s) => scaled(s)
                .and_then(|units| i64::try_from(units).ok())
                .map(|units| ScalarValue::Decimal64(Some(units), p, s)),
            Some(&DataType::Decimal128(p, s)) if fits(p, s) => {
                scaled(s).map(|units| ScalarValue::Decimal128(Some(units), p, s))
            }
            _ => None,
        };
        let value = value.unwrap_or_else(|| {
            let scale = scale.cast_signed();
            match wide {
                true => {
                    let units = i256::from_i128(self.units);
                    ScalarValue::Decimal256(Some(units), digits, scale)
                }
                false => self.narrowest(),
            }
        });
        Expr::Literal(value, None)
    }
}

/// An operand whose value is exact: its size, and whether a decimal is in it that is no literal.
struct Exact {
    whole: u8,
    scale: u8,
    decimal: bool,
    form: DecimalForm,
}

enum DecimalForm {
    /// As it is.
    Same,
    Literal(WrittenNumber),
    /// Arithmetic whose literals are decimals now.
    Arithmetic(Expr),
}

/// Digits before and after the point.
fn size_of(precision: u8, scale: i8) -> Option<(u8, u8)> {
    let scale = u8::try_from(scale).ok()?;
    Some((precision.checked_sub(scale)?, scale))
}

/// The size of a decimal.
pub(in crate::optimizer::fixes) fn decimal_size(kind: &DataType) -> Option<(u8, u8)> {
    match *kind {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => size_of(precision, scale),
        DataType::Dictionary(_, ref values) => decimal_size(values),
        _ => None,
    }
}

/// The size that DataFusion takes an integer for.
fn integer_size(kind: &DataType) -> Option<(u8, u8)> {
    match kind {
        DataType::Null => Some((0, 0)),
        DataType::Int8 | DataType::UInt8 => Some((3, 0)),
        DataType::Int16 | DataType::UInt16 => Some((5, 0)),
        DataType::Int32 | DataType::UInt32 => Some((10, 0)),
        DataType::Int64 | DataType::UInt64 => Some((20, 0)),
        _ => None,
    }
}

fn exact(expr: &Expr, schema: &DFSchema) -> Option<Exact> {
    if let Some(written) = WrittenNumber::of(expr) {
        return Some(Exact {
            whole: written.whole_digits(),
            scale: written.scale,
            decimal: false,
            form: DecimalForm::Literal(written),
        });
    }
    let kind = expr.get_type(schema).ok()?;
    if let (DataType::Float64, Expr::BinaryExpr(binary)) = (&kind, expr) {
        return exact_arithmetic(binary, schema);
    }
    let decimal = decimal_size(&kind);
    let (whole, scale) = decimal.or_else(|| integer_size(&kind))?;
    Some(Exact {
        whole,
        scale,
        decimal: decimal.is_some(),
        form: DecimalForm::Same,
    })
}

/// A sum, difference, product or remainder that is a double only because of the literals in it.
fn exact_arithmetic(binary: &BinaryExpr, schema: &DFSchema) -> Option<Exact> {
    let left = exact(&binary.left, schema)?;
    let right = exact(&binary.right, schema)?;
    let (whole, scale) = match binary.op {
        Operator::Plus | Operator::Minus => {
            (left.whole.max(right.whole) + 1, left.scale.max(right.scale))
        }
        Operator::Multiply => (left.whole + right.whole + 1, left.scale + right.scale),
        Operator::Modulo => (left.whole.min(right.whole), left.scale.max(right.scale)),
        _ => return None,
    };
    // DataFusion brings the operands of a remainder to one scale before it makes them smaller.
    let whole_within = match binary.op {
        Operator::Modulo => left.whole.max(right.whole),
        _ => whole,
    };
    // DataFusion computes in a Decimal128 and cuts its size at 38 digits.
    if whole_within + scale > DIGITS {
        return None;
    }
    let decimal = left.decimal || right.decimal;
    let (left, right) = (left.written(&binary.left), right.written(&binary.right));
    let sum = BinaryExpr::new(Box::new(left), binary.op, Box::new(right));
    Some(Exact {
        whole,
        scale,
        decimal,
        form: DecimalForm::Arithmetic(Expr::BinaryExpr(sum)),
    })
}

impl Exact {
    /// The operand as part of arithmetic.
    fn written(self, expr: &Expr) -> Expr {
        match self.form {
            DecimalForm::Same => expr.clone(),
            DecimalForm::Literal(written) => written.literal(None, false),
            DecimalForm::Arithmetic(expr) => expr,
        }
    }
}

/// Gives `operands` types that can be compared without loss. False if they are left to DataFusion.
pub(in crate::optimizer::fixes) fn align(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let kinds: Vec<DataType> = operands
        .iter()
        .filter_map(|operand| operand.get_type(schema).ok())
        .collect();
    let has_decimal = kinds.iter().any(|kind| decimal_size(kind).is_some());
    let has_float = kinds.iter().any(DataType::is_floating);
    // Arithmetic of a decimal and a literal is a double to DataFusion.
    let may_have = || {
        operands
            .iter()
            .any(|operand| matches!(operand, Expr::BinaryExpr(_)))
    };
    let are_numbers = kinds
        .iter()
        .all(|kind| kind.is_null() || kind.is_numeric() || decimal_size(kind).is_some());
    if kinds.len() < operands.len() || !are_numbers || !has_float || !(has_decimal || may_have()) {
        return false;
    }
    as_decimals(operands, schema) || (has_decimal && as_floats(operands, &kinds))
}

fn as_decimals(operands: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let exacts: Option<Vec<Exact>> = operands
        .iter()
        .map(|operand| exact(operand, schema))
        .collect();
    let Some(exacts) = exacts.filter(|exacts| exacts.iter().any(|one| one.decimal)) else {
        return false;
    };
    let whole = exacts.iter().map(|one| one.whole).max().unwrap_or(0);
    let scale = exacts.iter().map(|one| one.scale).max().unwrap_or(0);
    if whole + scale > DIGITS_MAX {
        return false;
    }
    let column = only_type(operands, &exacts, schema);
    let wide = whole + scale > DIGITS;
    for (operand, one) in operands.iter_mut().zip(exacts) {
        match one.form {
            DecimalForm::Same => {}
            DecimalForm::Literal(written) => **operand = written.literal(column.as_ref(), wide),
            DecimalForm::Arithmetic(expr) => **operand = expr,
        }
    }
    true
}

/// The type of the operands that are no literals, if all have the same.
fn only_type(operands: &[&mut Expr], exacts: &[Exact], schema: &DFSchema) -> Option<DataType> {
    let mut only: Option<DataType> = None;
    for (operand, one) in operands.iter().zip(exacts) {
        let kind = match one.form {
            DecimalForm::Literal(_) => continue,
            DecimalForm::Same => operand.get_type(schema).ok()?,
            DecimalForm::Arithmetic(_) => return None,
        };
        if only
            .replace(kind.clone())
            .is_some_and(|other| other != kind)
        {
            return None;
        }
    }
    only
}

/// Beside a double, a decimal is one: DataFusion would bring both to DECIMAL(30, 15).
fn as_floats(operands: &mut [&mut Expr], kinds: &[DataType]) -> bool {
    let float = match kinds.contains(&DataType::Float64) {
        true => DataType::Float64,
        false => DataType::Float32,
    };
    for (operand, kind) in operands.iter_mut().zip(kinds) {
        if decimal_size(kind).is_some() || *kind == DataType::UInt64 {
            let exact = std::mem::take(*operand);
            **operand = Expr::Cast(Cast::new(Box::new(exact), float.clone()));
        }
    }
    true
}

/// Integers with a sign and those of 64 bits without one are doubles beside a double. DataFusion brings the integers to
/// DECIMAL(20, 0) and all three to DECIMAL(35, 15). There 1e-20 is 0, and 1e300 and NaN are errors.
pub(in crate::optimizer::fixes) fn align_signs(
    operands: &mut [&mut Expr],
    schema: &DFSchema,
) -> bool {
    if operands.len() < 3 {
        return false;
    }
    let kinds: Vec<DataType> = operands
        .iter()
        .filter_map(|operand| operand.get_type(schema).ok())
        .collect();
    let are_numbers = kinds
        .iter()
        .all(|kind| kind.is_null() || kind.is_integer() || kind.is_floating());
    let has = |is: fn(&DataType) -> bool| kinds.iter().any(is);
    kinds.len() == operands.len()
        && are_numbers
        && has(DataType::is_floating)
        && has(DataType::is_signed_integer)
        && kinds.contains(&DataType::UInt64)
        && as_floats(operands, &kinds)
}

/// A literal that is cast to a decimal is read as one.
pub(in crate::optimizer::fixes) fn fix_cast(mut cast: Expr) -> Transformed<Expr> {
    let (literal, to) = match &mut cast {
        Expr::Cast(cast) => (cast.expr.as_mut(), cast.field.data_type()),
        Expr::TryCast(cast) => (cast.expr.as_mut(), cast.field.data_type()),
        _ => return Transformed::no(cast),
    };
    match (decimal_size(to), WrittenNumber::of(literal)) {
        (Some(_), Some(written)) => {
            *literal = written.literal(None, false);
            Transformed::yes(cast)
        }
        _ => Transformed::no(cast),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_among_integers_where_they_stand() {
        fn check(text: &str, expected: (i128, u8)) {
            let written = WrittenNumber::parse(text).unwrap().nearby();
            assert_eq!((written.units, written.scale), expected, "{text}");
        }
        check("9007199254740993.0", (9_007_199_254_740_993, 0));
        check(
            "9007199254740992.9999999999999999999999",
            (90_071_992_547_409_925, 1),
        );
        check("0.99999999999999999", (5, 1));
        check("-0.00000000000000001", (-5, 1));
        check("-1.5", (-15, 1));
        check(&"9".repeat(38), (i128::from(u64::MAX) + 1, 0));
        check(
            &format!("-{}.5", "9".repeat(30)),
            ((i128::from(i64::MIN) - 1) * 10 + 5, 1),
        );
    }

    #[test]
    fn numbers_as_written() {
        fn check(text: &str, expected: Option<(i128, u8, u8)>) {
            let written = WrittenNumber::parse(text);
            let written = written.map(|one| (one.units, one.digits, one.scale));
            assert_eq!(written, expected, "{text}");
        }
        check("94861.47", Some((9_486_147, 7, 2)));
        check("-0.050", Some((-5, 2, 2)));
        check(".5", Some((5, 1, 1)));
        check("0.0", Some((0, 1, 0)));
        check("-0", Some((0, 1, 0)));
        check("1200", Some((1200, 4, 0)));
        check(&"9".repeat(38), Some((10_i128.pow(38) - 1, 38, 0)));
        check(&"9".repeat(39), None);
        check(&format!("0.{}1", "0".repeat(38)), None);
    }
}
