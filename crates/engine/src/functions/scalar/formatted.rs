//! `format` and `printf`: values in a text, each as its directive says.
//!
//! In: a text with `{}` or `%d` directives and the values. Out: the text with the values in it.
//! Invariant: a directive that its value does not have is an error, never another form of the value.
//! Not here: dates (date_formats.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{CallArguments, CallForm, rows};
use super::kinds::ParameterKind;
use crate::functions::{is_written_here, strings_of_values};

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    const FORMS: &[CallForm] = &[
        &[ParameterKind::Text],
        &[ParameterKind::Text, ParameterKind::Any, ParameterKind::Dots],
    ];
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    vec![
        rows("format", FORMS, text, |call| written(call, braces)).into(),
        rows("printf", FORMS, text, |call| written(call, percents)).into(),
    ]
}

/// A piece of a format.
enum FormatPiece {
    Literal(String),
    /// Argument `at`, counted from 0.
    Value {
        at: usize,
        directive: Directive,
    },
}

/// How a value is written.
#[derive(Default)]
struct Directive {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    width: usize,
    precision: Option<usize>,
    /// What stands between groups of three digits.
    groups: Option<char>,
    /// `0x` before hexadecimal digits and the like.
    prefix: bool,
    zeros: bool,
    letter: Option<char>,
    /// Whether the digits of bits are those of a negative number's two's complement.
    is_complement: bool,
}

/// A column of values: as numbers where it is of numbers, and as strings.
struct FormattedValues {
    integers: Option<ArrayRef>,
    /// Bits that integers have in C, less than which none has.
    bits: u32,
    doubles: Option<ArrayRef>,
    strings: ArrayRef,
}

fn values_of(column: &ArrayRef) -> Result<FormattedValues> {
    let data_type = column.data_type();
    let cast_if = |when: bool, to: DataType| when.then(|| cast(column, &to)).transpose();
    let is_number = data_type.is_numeric();
    let is_whole = data_type.is_integer() || matches!(data_type, DataType::Decimal128(_, 0));
    Ok(FormattedValues {
        integers: cast_if(is_whole, DataType::Decimal128(38, 0))?,
        bits: if data_type.is_integer() { 64 } else { 128 },
        doubles: cast_if(is_number && !is_whole, DataType::Float64)?,
        strings: match is_written_here(column.data_type()) {
            true => Arc::new(strings_of_values(column)?),
            false => cast(column, &DataType::Utf8View)?,
        },
    })
}

fn written(call: &CallArguments, read: fn(&str) -> Option<Vec<FormatPiece>>) -> Result<ArrayRef> {
    let formats = call.strings(0);
    let values: Vec<FormattedValues> = call.args[1..]
        .iter()
        .map(values_of)
        .collect::<Result<_>>()?;
    let mut last: Option<(String, Vec<FormatPiece>)> = None;
    call.each::<StringViewArray, _>(|row| {
        let format = formats.value(row);
        if last.as_ref().is_none_or(|(text, _)| text != format) {
            let pieces = read(format).ok_or_else(|| {
                call.invalid(format!(
                    "'{format}' has a directive that is not closed or not known"
                ))
            })?;
            last = Some((format.to_owned(), pieces));
        }
        let mut text = String::new();
        for piece in last.iter().flat_map(|(_, pieces)| pieces) {
            match piece {
                FormatPiece::Literal(literal) => text.push_str(literal),
                FormatPiece::Value { at, directive } => {
                    let values = values.get(*at).ok_or_else(|| {
                        call.invalid(format!(
                            "'{format}' asks for {} values, there are {}",
                            at + 1,
                            values.len()
                        ))
                    })?;
                    let value = directive.written(values, row).ok_or_else(|| {
                        let letter = directive.letter.unwrap_or_default();
                        call.invalid(format!("a value cannot be written as '{letter}'"))
                    })?;
                    text.push_str(&value);
                }
            }
        }
        Ok(Some(text))
    })
}

/// The pieces of `a {} b {0:>5}`.
fn braces(format: &str) -> Option<Vec<FormatPiece>> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut next = 0;
    let mut rest = format;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if (c == '{' || c == '}') && rest.starts_with(c) {
            literal.push(c);
            rest = &rest[1..];
            continue;
        }
        match c {
            '{' => {
                let (inside, after) = rest.split_once('}')?;
                rest = after;
                let (place, directive) = inside.split_once(':').unwrap_or((inside, ""));
                let at = if place.is_empty() {
                    next
                } else {
                    place.parse().ok()?
                };
                next = at + 1;
                pieces.push(FormatPiece::Literal(std::mem::take(&mut literal)));
                let (directive, left) = Directive::read(directive, true)?;
                left.is_empty().then_some(())?;
                pieces.push(FormatPiece::Value { at, directive });
            }
            '}' => return None,
            c => literal.push(c),
        }
    }
    pieces.push(FormatPiece::Literal(literal));
    Some(pieces)
}

/// The pieces of `a %d b %5.2f`.
fn percents(format: &str) -> Option<Vec<FormatPiece>> {
    let mut pieces = Vec::new();
    let mut next = 0;
    let mut rest = format;
    while let Some((literal, after)) = rest.split_once('%') {
        pieces.push(FormatPiece::Literal(literal.to_owned()));
        if let Some(after) = after.strip_prefix('%') {
            pieces.push(FormatPiece::Literal("%".to_owned()));
            rest = after;
            continue;
        }
        let (mut directive, after) = Directive::read(after, false)?;
        directive.letter?;
        // Values of printf stand on the right of their width.
        directive.align = directive.align.or(Some('>'));
        directive.is_complement = matches!(directive.letter, Some('x' | 'X' | 'o' | 'b' | 'u'));
        pieces.push(FormatPiece::Value {
            at: next,
            directive,
        });
        next += 1;
        rest = after;
    }
    pieces.push(FormatPiece::Literal(rest.to_owned()));
    Some(pieces)
}

impl Directive {
    /// Reads `[[fill]align][sign][0][width][,][.precision][letter]`, or what printf has: `[-][0][,][width][.precision]letter`.
    fn read(text: &str, has_align: bool) -> Option<(Directive, &str)> {
        let mut directive = Directive::default();
        let mut rest = text;
        let mut chars = rest.chars();
        if has_align && let (Some(first), second) = (chars.next(), chars.next()) {
            let is_align = |c: char| matches!(c, '<' | '>' | '^');
            if let Some(align) = second.filter(|c| is_align(*c)) {
                directive.fill = Some(first);
                directive.align = Some(align);
                rest = &rest[first.len_utf8() + 1..];
            } else if is_align(first) {
                directive.align = Some(first);
                rest = &rest[1..];
            }
        }
        while let Some(c) = rest.chars().next().filter(|c| "-+ 0,'_#".contains(*c)) {
            match c {
                '-' if !has_align => directive.align = Some('<'),
                '0' => directive.zeros = true,
                ',' | '\'' | '_' => directive.groups = Some(c),
                '#' => directive.prefix = true,
                c => directive.sign = Some(c),
            }
            rest = &rest[1..];
        }
        (directive.width, rest) = digits(rest).unwrap_or((0, rest));
        if let Some(after) = rest.strip_prefix(',') {
            directive.groups = Some(',');
            rest = after;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, after) = digits(after)?;
            directive.precision = Some(precision);
            rest = after;
        }
        // Lengths of C's types say nothing here.
        rest = rest.trim_start_matches(['l', 'h']);
        directive.letter = rest.chars().next().filter(char::is_ascii_alphabetic);
        rest = &rest[usize::from(directive.letter.is_some())..];
        let is_known = directive
            .letter
            .is_none_or(|letter| "dixXobBeEfFgGscu".contains(letter));
        (is_known && directive.width <= 10_000).then_some((directive, rest))
    }

    /// The value of a row; `None` if the letter does not fit it.
    fn written(&self, values: &FormattedValues, row: usize) -> Option<String> {
        if let Some(integers) = &values.integers {
            let value = integers.as_primitive::<Decimal128Type>().value(row);
            return match self.letter {
                Some('f' | 'F') => Some(self.fixed(value)),
                Some('e' | 'E' | 'g' | 'G') => self.double(value as f64),
                _ => self.integer(value, values.bits),
            };
        }
        if let Some(doubles) = &values.doubles {
            let value = doubles.as_primitive::<Float64Type>().value(row);
            return match (self.letter, self.precision) {
                (None, None) => {
                    let text = values.strings.as_string_view().value(row);
                    Some(self.padded(self.grouped(text), '>'))
                }
                (Some('d' | 'i' | 'x' | 'X' | 'o' | 'b' | 'c' | 's' | 'u'), _) => None,
                _ => self.double(value),
            };
        }
        matches!(self.letter, None | Some('s')).then_some(())?;
        let text = values.strings.as_string_view().value(row);
        let text = match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        };
        Some(self.padded(text, '<'))
    }

    fn integer(&self, value: i128, bits: u32) -> Option<String> {
        let is_complement = self.is_complement && value < 0;
        let size = match is_complement {
            true => value.cast_unsigned() & (u128::MAX >> (128 - bits)),
            false => value.unsigned_abs(),
        };
        let digits = match self.letter {
            None | Some('d' | 'i' | 'u') => size.to_string(),
            Some('x') => format!("{size:x}"),
            Some('X') => format!("{size:X}"),
            Some('o') => format!("{size:o}"),
            Some('b' | 'B') => format!("{size:b}"),
            Some('c') => {
                return Some(self.padded(char::from_u32(u32::try_from(value).ok()?)?.into(), '<'));
            }
            _ => return None,
        };
        let prefix = match self.letter {
            Some('x') if self.prefix => "0x",
            Some('X') if self.prefix => "0X",
            Some('o') if self.prefix => "0",
            Some('b' | 'B') if self.prefix => "0b",
            _ => "",
        };
        let is_negative = value < 0 && !is_complement;
        Some(self.signed(is_negative, &(prefix.to_owned() + &self.grouped(&digits))))
    }

    /// A whole number with a point and zeros.
    fn fixed(&self, value: i128) -> String {
        let mut digits = self.grouped(&value.unsigned_abs().to_string());
        match self.precision.unwrap_or(6) {
            0 => {}
            zeros => digits += &format!(".{}", "0".repeat(zeros)),
        }
        self.signed(value < 0, &digits)
    }

    fn double(&self, value: f64) -> Option<String> {
        let size = value.abs();
        let precision = self.precision.unwrap_or(6);
        let digits = match self.letter {
            Some('e') => scientific(size, precision),
            Some('E') => scientific(size, precision).to_uppercase(),
            Some('g' | 'G') | None => general(size, precision.max(1)),
            _ => format!("{size:.precision$}"),
        };
        Some(self.signed(value.is_sign_negative(), &self.grouped(&digits)))
    }

    /// Digits before the point in groups of three.
    fn grouped(&self, digits: &str) -> String {
        let Some(between) = self.groups else {
            return digits.to_owned();
        };
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", digits),
        };
        let whole = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        let mut text = sign.to_owned();
        for (at, c) in digits[..whole].chars().enumerate() {
            if at > 0 && (whole - at).is_multiple_of(3) {
                text.push(between);
            }
            text.push(c);
        }
        text + &digits[whole..]
    }

    fn signed(&self, is_negative: bool, digits: &str) -> String {
        let sign = match (is_negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let zeros = match self.zeros && self.align != Some('<') {
            true => self.width.saturating_sub(sign.len() + digits.len()),
            false => 0,
        };
        self.padded(format!("{sign}{}{digits}", "0".repeat(zeros)), '>')
    }

    fn padded(&self, text: String, align: char) -> String {
        let blanks = self.width.saturating_sub(text.chars().count());
        let fill = self.fill.unwrap_or(' ');
        let pad = |count: usize| String::from_iter(std::iter::repeat_n(fill, count));
        match self.align.unwrap_or(align) {
            '>' => pad(blanks) + &text,
            '^' => pad(blanks / 2) + &text + &pad(blanks - blanks / 2),
            _ => text + &pad(blanks),
        }
    }
}

fn digits(text: &str) -> Option<(usize, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..length].parse().ok()?, &text[length..]))
}

/// C's `%e`: an exponent of at least two digits.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or_default();
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}

/// C's `%g`: so many digits that count, without zeros at the end.
fn general(value: f64, precision: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let exponent = value.log10().floor() as i32;
    let trimmed = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = scientific(value, precision - 1);
        return match text.split_once('e') {
            Some((digits, exponent)) => format!("{}e{exponent}", trimmed(digits.to_owned())),
            None => text,
        };
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trimmed(format!("{value:.decimals$}"))
}
