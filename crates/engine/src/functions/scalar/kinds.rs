//! What a parameter of a scalar function takes, and the type that an argument then has.
//!
//! In: a form of a function and the types of a call's arguments. Out: the types that the arguments are cast to.
//! Invariant: a cast that could lose digits is never made silently: DOUBLE takes numbers, integers take integers only.
//! Not here: which function has which forms.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use grouse_groupby::keys::decoded;

use super::definition::CallForm;

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    /// Text.
    Text,
    /// Text that the result's type may depend on; it keeps its type.
    Word,
    /// Text or bytes.
    Bytes,
    /// An integer, as BIGINT.
    Integer,
    /// A number, as it is.
    Number,
    /// A number, as DOUBLE.
    Double,
    /// A boolean.
    Boolean,
    /// A date or timestamp, as it is.
    Timestamp,
    /// A time of day.
    Time,
    /// An interval.
    Interval,
    /// A list.
    List,
    /// A list of strings.
    Strings,
    /// A struct.
    Struct,
    /// A map.
    Map,
    /// An untyped NULL.
    Nothing,
    /// Any value.
    Any,
    /// The kind before once more, or not, or many times.
    Dots,
}

/// Microseconds without a time zone: timestamps that a function makes.
pub(super) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// A list of `item`.
pub(super) fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// The types for a call of this form; `None` if the call is not of it.
pub(super) fn coerced(form: CallForm, types: &[DataType]) -> Option<Vec<DataType>> {
    let (kinds, dots) = match form {
        [kinds @ .., ParameterKind::Dots] => (kinds, true),
        kinds => (kinds, false),
    };
    let fits = match dots {
        true => types.len() >= kinds.len(),
        false => types.len() == kinds.len(),
    };
    if !fits {
        return None;
    }
    let more = kinds.last().into_iter().cycle();
    let mut all = kinds.iter().chain(more).zip(types);
    all.try_fold(Vec::new(), |mut cast, (kind, data_type)| {
        cast.push(kind.takes(data_type)?);
        Some(cast)
    })
}

impl ParameterKind {
    /// The type that a value of `data_type` is cast to; `None` if the parameter does not take it.
    fn takes(self, data_type: &DataType) -> Option<DataType> {
        use DataType::*;
        let of = decoded(data_type);
        let is_text = matches!(of, Utf8 | LargeUtf8 | Utf8View);
        let is_null = of == &Null;
        let interval = Interval(IntervalUnit::MonthDayNano);
        match self {
            ParameterKind::Any | ParameterKind::Dots => Some(data_type.clone()),
            ParameterKind::Nothing => is_null.then_some(Null),
            ParameterKind::Text => (is_text || is_null).then_some(Utf8View),
            ParameterKind::Word if is_null => Some(Utf8),
            ParameterKind::Word => is_text.then(|| of.clone()),
            ParameterKind::Bytes if is_text || is_null => Some(Utf8View),
            ParameterKind::Bytes => {
                matches!(of, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
                    .then_some(BinaryView)
            }
            ParameterKind::Integer => (of.is_integer() || is_null).then_some(Int64),
            ParameterKind::Number if is_null => Some(Int64),
            ParameterKind::Number => of.is_numeric().then(|| of.clone()),
            ParameterKind::Double => (of.is_numeric() || is_null).then_some(Float64),
            ParameterKind::Boolean => (of == &Boolean || is_null).then_some(Boolean),
            ParameterKind::Timestamp => match of {
                Date32 | Timestamp(..) => Some(of.clone()),
                Date64 => Some(Date32),
                _ => (is_text || is_null).then_some(TIMESTAMP),
            },
            ParameterKind::Time => (matches!(of, Time32(_) | Time64(_)) || is_null)
                .then_some(Time64(TimeUnit::Microsecond)),
            ParameterKind::Interval => {
                (matches!(of, Interval(_) | Duration(_)) || is_null).then_some(interval)
            }
            ParameterKind::List => list_type(of),
            ParameterKind::Strings => match list_type(of)? {
                List(item) => {
                    ParameterKind::Text.takes(item.data_type())?;
                    Some(list_of(Utf8View))
                }
                _ => None,
            },
            ParameterKind::Struct => matches!(of, Struct(_)).then(|| of.clone()),
            ParameterKind::Map => matches!(of, Map(..)).then(|| of.clone()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            ParameterKind::Text | ParameterKind::Word => "VARCHAR",
            ParameterKind::Bytes => "VARCHAR or BINARY",
            ParameterKind::Integer => "BIGINT",
            ParameterKind::Number => "number",
            ParameterKind::Double => "DOUBLE",
            ParameterKind::Boolean => "BOOLEAN",
            ParameterKind::Timestamp => "DATE or TIMESTAMP",
            ParameterKind::Time => "TIME",
            ParameterKind::Interval => "INTERVAL",
            ParameterKind::List => "list",
            ParameterKind::Strings => "list of VARCHAR",
            ParameterKind::Struct => "STRUCT",
            ParameterKind::Map => "MAP",
            ParameterKind::Nothing => "NULL",
            ParameterKind::Any => "any",
            ParameterKind::Dots => "…",
        }
    }
}

fn list_type(data_type: &DataType) -> Option<DataType> {
    use DataType::*;
    match data_type {
        List(item)
        | LargeList(item)
        | FixedSizeList(item, _)
        | ListView(item)
        | LargeListView(item) => Some(List(Arc::clone(item))),
        Null => Some(list_of(Null)),
        _ => None,
    }
}

/// The forms of a function as one writes them.
pub(super) fn forms_as_text(name: &str, forms: impl Iterator<Item = CallForm>) -> String {
    let forms = forms.filter(|form| !form.contains(&ParameterKind::Nothing));
    let forms = forms.map(|form| {
        let kinds: Vec<&str> = form.iter().map(|kind| kind.name()).collect();
        format!("{name}({})", kinds.join(", "))
    });
    forms.collect::<Vec<_>>().join(" or ")
}
