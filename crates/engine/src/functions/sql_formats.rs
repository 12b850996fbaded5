//! Formats of dates in the letters of PostgreSQL, `YYYY-MM-DD HH24:MI:SS`, for functions that know `%Y-%m-%d %H:%M:%S`.
//!
//! In: a call of `to_char`, `to_date` or `to_timestamp` whose format has no `%`. Out: the same in DataFusion's letters; words that
//! are written in capitals or padded, as MONTH is, are parts of their own.
//! Invariant: a letter that is no field is an error: DataFusion gives back such a format as it is.
//! Not here: `strftime` and `strptime`, whose formats always have `%`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::functions::datetime::to_char;
use datafusion::functions::string::expr_fn::{lower, upper};
use datafusion::functions::unicode::expr_fn::rpad;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, binary_expr, lit,
};

use crate::expr::function_methods::function_methods;
use crate::wire::portable;

/// Fields, those first that begin as others do, and what DataFusion calls them, without leading zeros behind the bar.
const FIELDS: [(&str, &str, &str); 29] = [
    ("YYYY", "%Y", "%-Y"),
    ("IYYY", "%G", "%-G"),
    ("YY", "%y", "%-y"),
    ("MONTH", "%B", "%B"),
    ("MON", "%b", "%b"),
    ("MM", "%m", "%-m"),
    ("MI", "%M", "%-M"),
    ("MS", "%3f", "%3f"),
    ("DDD", "%j", "%-j"),
    ("DD", "%d", "%-d"),
    ("DAY", "%A", "%A"),
    ("DY", "%a", "%a"),
    ("HH24", "%H", "%-H"),
    ("HH12", "%I", "%-I"),
    ("HH", "%I", "%-I"),
    ("SS", "%S", "%-S"),
    ("US", "%6f", "%6f"),
    ("FF3", "%3f", "%3f"),
    ("FF6", "%6f", "%6f"),
    ("IW", "%V", "%-V"),
    ("ID", "%u", "%u"),
    ("WW", "", ""),
    ("Q", "%q", "%q"),
    ("AM", "%p", "%p"),
    ("PM", "%p", "%p"),
    ("TZH:TZM", "%:z", "%:z"),
    ("TZH", "", ""),
    ("OF", "", ""),
    ("TZ", "%Z", "%Z"),
];

/// The width that names of days and months are padded to.
const NAME_WIDTH: i64 = 9;

/// A part of a format.
#[derive(Debug, PartialEq)]
enum FormatPart {
    /// In DataFusion's letters.
    Format(String),
    Word {
        format: &'static str,
        case: LetterCase,
        is_padded: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LetterCase {
    Upper,
    Lower,
    Title,
}

/// Puts the format of a call into DataFusion's letters: the expression that stands for the call, or `None` if it is to stay.
pub(crate) fn with_sql_format(call: &mut ScalarFunction) -> Result<Option<Expr>> {
    let name = call.func.name().to_owned();
    match (name.as_str(), call.args.as_mut_slice()) {
        ("to_char", [value, format]) => match written(format) {
            Some(text) if is_sql_format(text) => Ok(Some(formatted(value, text)?)),
            Some(_) => Ok(None),
            None if is_checked(format) => Ok(None),
            None => {
                *format = CHECKED_FORMAT.call(vec![std::mem::take(format)]);
                Ok(Some(Expr::ScalarFunction(call.clone())))
            }
        },
        ("to_date" | "to_timestamp", [value, formats @ ..]) => {
            let mut changed = with_readable_formats(value, formats)?;
            if name == "to_timestamp" && !formats.is_empty() && !call.func.inner().is::<InZone>() {
                call.func = Arc::new(ScalarUDF::from(InZone(Arc::clone(&call.func))));
                changed = true;
            }
            Ok(changed.then(|| Expr::ScalarFunction(call.clone())))
        }
        _ => Ok(None),
    }
}

/// Puts formats into DataFusion's letters, those of a column row by row; whether any was in others. Beside such a column a
/// literal is one, too: DataFusion reads it by literals alone.
fn with_readable_formats(value: &mut Expr, formats: &mut [Expr]) -> Result<bool> {
    let mut changed = false;
    for format in formats {
        match &*format {
            Expr::Literal(..) => {
                if let Some(text) = written(format).filter(|text| is_sql_format(text)) {
                    *format = lit(readable(text)?);
                    changed = true;
                }
            }
            Expr::ScalarFunction(call) if call.func.inner().is::<ReadableFormat>() => {}
            column => {
                let column = column.clone();
                if matches!(value, Expr::Literal(..)) {
                    *value = EACH_ROW.call(vec![std::mem::take(value), column.clone()]);
                }
                *format = READABLE_FORMAT.call(vec![column]);
                changed = true;
            }
        }
    }
    Ok(changed)
}

fn written(format: &Expr) -> Option<&str> {
    match format {
        Expr::Literal(text, _) => text.try_as_str().flatten(),
        _ => None,
    }
}

fn is_sql_format(format: &str) -> bool {
    !format.contains('%') && format.contains(|c: char| c.is_ascii_alphabetic())
}

fn formatted(value: &Expr, text: &str) -> Result<Expr> {
    let part = |part| {
        let (format, case, is_padded) = match part {
            FormatPart::Format(format) => return to_char().call(vec![value.clone(), lit(format)]),
            FormatPart::Word {
                format,
                case,
                is_padded,
            } => (format, case, is_padded),
        };
        let word = to_char().call(vec![value.clone(), lit(format)]);
        let word = match case {
            LetterCase::Upper => upper(word),
            LetterCase::Lower => lower(word),
            LetterCase::Title => word,
        };
        match is_padded {
            true => rpad(vec![word, lit(NAME_WIDTH)]),
            false => word,
        }
    };
    let parts = parts(text)?.into_iter().map(part);
    let whole = parts.reduce(|left, right| binary_expr(left, Operator::StringConcat, right));
    Ok(whole.unwrap_or_else(|| lit("")))
}

/// The format as DataFusion reads it: the case of words says nothing.
fn readable(text: &str) -> Result<String> {
    let format = |part| match part {
        FormatPart::Format(format) => format,
        FormatPart::Word { format, .. } => format.to_owned(),
    };
    Ok(parts(text)?.into_iter().map(format).collect())
}

fn parts(text: &str) -> Result<Vec<FormatPart>> {
    let mut parts = Vec::new();
    let mut format = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((literal, behind)) = rest.strip_prefix('"').and_then(|l| l.split_once('"')) {
            format.push_str(literal);
            rest = behind;
            continue;
        }
        let bare = ["FM", "fm"].iter().find_map(|fm| rest.strip_prefix(fm));
        let from = bare.unwrap_or(rest);
        let starts = |name: &str| {
            from.get(..name.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(name))
        };
        let field = FIELDS.iter().find(|(name, ..)| starts(name));
        match field {
            Some((name, padded, unpadded)) if !padded.is_empty() => {
                let (head, behind) = from.split_at(name.len());
                rest = behind;
                let letters = if bare.is_some() { unpadded } else { padded };
                let case = case_of(head);
                let is_word = matches!(*name, "MONTH" | "MON" | "DAY" | "DY" | "AM" | "PM");
                let is_padded = matches!(*name, "MONTH" | "DAY") && bare.is_none();
                let is_as_it_is = case
                    == if name.ends_with("M") {
                        LetterCase::Upper
                    } else {
                        LetterCase::Title
                    };
                if !is_word || is_as_it_is && !is_padded {
                    format.push_str(letters);
                    continue;
                }
                if !format.is_empty() {
                    parts.push(FormatPart::Format(std::mem::take(&mut format)));
                }
                parts.push(FormatPart::Word {
                    format: letters,
                    case,
                    is_padded,
                });
            }
            _ if c.is_ascii_alphabetic() => {
                return plan_err!(
                    "the format '{text}' has '{c}', which is no field; put text into double quotes, or write e.g. '%Y-%m-%d %H:%M:%S'"
                );
            }
            _ => {
                format.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    if !format.is_empty() {
        parts.push(FormatPart::Format(format));
    }
    Ok(parts)
}

fn case_of(name: &str) -> LetterCase {
    let mut letters = name.chars().map(|c| c.is_ascii_uppercase());
    match (letters.next(), letters.next()) {
        (Some(true), Some(true)) => LetterCase::Upper,
        (Some(true), _) => LetterCase::Title,
        _ => LetterCase::Lower,
    }
}

/// A format that is no literal, as it is; an error where it has no `%`.
static CHECKED_FORMAT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(CheckedFormat {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

fn is_checked(format: &Expr) -> bool {
    matches!(format, Expr::ScalarFunction(call) if call.func.inner().is::<CheckedFormat>())
        || matches!(format, Expr::Literal(..))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct CheckedFormat {
    signature: Signature,
}

impl ScalarUDFImpl for CheckedFormat {
    function_methods!("checked format");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let formats = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8)?;
        let strings: &StringArray = formats.as_string();
        match strings.iter().flatten().find(|text| is_sql_format(text)) {
            Some(text) => exec_err!("the format '{text}' has no field, as %Y-%m-%d has"),
            None => Ok(ColumnarValue::Array(formats)),
        }
    }
}

portable!(CheckedFormat, "checked_format"; signature: Signature::any(1, Volatility::Immutable));

/// A format that is no literal, in DataFusion's letters.
static READABLE_FORMAT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(ReadableFormat {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct ReadableFormat {
    signature: Signature,
}

impl ScalarUDFImpl for ReadableFormat {
    function_methods!("readable format");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let formats = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8)?;
        let formats: &StringArray = formats.as_string();
        let mut known: Option<(&str, String)> = None;
        let readable = formats.iter().map(|format| {
            let Some(format) = format else {
                return Ok(None);
            };
            if let Some((_, text)) = known.as_ref().filter(|(known, _)| *known == format) {
                return Ok(Some(text.clone()));
            }
            let text = match is_sql_format(format) {
                true => readable(format)?,
                false => format.to_owned(),
            };
            known = Some((format, text.clone()));
            Ok(Some(text))
        });
        let readable = readable.collect::<Result<StringArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(readable)))
    }
}

portable!(ReadableFormat, "readable_format"; signature: Signature::any(1, Volatility::Immutable));

/// `to_timestamp` by formats, whose columns DataFusion gives without the zone that it says they have.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct InZone(Arc<ScalarUDF>);

impl ScalarUDFImpl for InZone {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let returns = args.return_field.data_type().clone();
        match (self.0.invoke_with_args(args)?, returns) {
            (ColumnarValue::Array(times), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
                // The same timestamps: a cast would take them for those of the zone's clock.
                Ok(match times.as_primitive_opt::<TimestampNanosecondType>() {
                    Some(nanos) => {
                        let nanos = nanos.clone().with_timezone_opt(zone);
                        ColumnarValue::Array(Arc::new(nanos))
                    }
                    None => ColumnarValue::Array(times),
                })
            }
            (times, _) => Ok(times),
        }
    }
}

portable!(InZone, "in_zone", 0: scalar_function);

/// A value for each row of a column beside it.
static EACH_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(EachRow {
        signature: Signature::any(2, Volatility::Immutable),
    }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct EachRow {
    signature: Signature,
}

impl ScalarUDFImpl for EachRow {
    function_methods!("each row");

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Array(
            args.args[0].to_array(args.number_rows)?,
        ))
    }
}

portable!(EachRow, "each_row"; signature: Signature::any(2, Volatility::Immutable));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_both() {
        assert_eq!(
            readable("YYYY-MM-DD\"T\"HH24:MI:SS.MS").unwrap(),
            "%Y-%m-%dT%H:%M:%S.%3f"
        );
        assert_eq!(readable("FMDD Mon YYYY").unwrap(), "%-d %b %Y");
        assert_eq!(readable("dd.mm.yy hh12 am").unwrap(), "%d.%m.%y %I %p");
        assert_eq!(
            readable("DD.MM.YY HH24:MI:SS").unwrap(),
            "%d.%m.%y %H:%M:%S"
        );
        assert_eq!(
            readable("FMDD. FMMonth \"of\" YYYY").unwrap(),
            "%-d. %B of %Y"
        );
        assert_eq!(readable("HH12:MI PM").unwrap(), "%I:%M %p");
        assert!(readable("YYYY week").is_err());
        let padded = |case| FormatPart::Word {
            format: "%B",
            case,
            is_padded: true,
        };
        assert_eq!(
            parts("YYYY MONTH").unwrap(),
            [
                FormatPart::Format("%Y ".to_owned()),
                padded(LetterCase::Upper)
            ]
        );
    }
}
