//! What a parameter of a scalar function takes, and the type that an argument then has.
//!
//! In: a form of a function and the types of a call's arguments. Out: the types that the arguments are cast to.
//! Invariant: a cast that could lose digits is never made silently: DOUBLE takes numbers, integers take integers only.
//! Not here: which function has which forms.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use grouse_groupby::keys::decoded;

use super::definition::Form;

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) fn coerced(form: Form, types: &[DataType]) -> Option<Vec<DataType>> {
    let (kinds, dots) = match form {
        [kinds @ .., Kind::Dots] => (kinds, true),
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

impl Kind {
    /// The type that a value of `data_type` is cast to; `None` if the parameter does not take it.
    fn takes(self, data_type: &DataType) -> Option<DataType> {
        use DataType::*;
        let of = decoded(data_type);
        let is_text = matches!(of, Utf8 | LargeUtf8 | Utf8View);
        let is_null = of == &Null;
        let interval = Interval(IntervalUnit::MonthDayNano);
        match self {
            Kind::Any | Kind::Dots => Some(data_type.clone()),
            Kind::Nothing => is_null.then_some(Null),
            Kind::Text => (is_text || is_null).then_some(Utf8View),
            Kind::Word if is_null => Some(Utf8),
            Kind::Word => is_text.then(|| of.clone()),
            Kind::Bytes if is_text || is_null => Some(Utf8View),
            Kind::Bytes => matches!(of, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
                .then_some(BinaryView),
            Kind::Integer => (of.is_integer() || is_null).then_some(Int64),
            Kind::Number if is_null => Some(Int64),
            Kind::Number => of.is_numeric().then(|| of.clone()),
            Kind::Double => (of.is_numeric() || is_null).then_some(Float64),
            Kind::Boolean => (of == &Boolean || is_null).then_some(Boolean),
            Kind::Timestamp => match of {
                Date32 | Timestamp(..) => Some(of.clone()),
                Date64 => Some(Date32),
                _ => (is_text || is_null).then_some(TIMESTAMP),
            },
            Kind::Time => (matches!(of, Time32(_) | Time64(_)) || is_null)
                .then_some(Time64(TimeUnit::Microsecond)),
            Kind::Interval => {
                (matches!(of, Interval(_) | Duration(_)) || is_null).then_some(interval)
            }
            Kind::List => list_type(of),
            Kind::Strings => match list_type(of)? {
                List(item) => {
                    Kind::Text.takes(item.data_type())?;
                    Some(list_of(Utf8View))
                }
                _ => None,
            },
            Kind::Struct => matches!(of, Struct(_)).then(|| of.clone()),
            Kind::Map => matches!(of, Map(..)).then(|| of.clone()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Text | Kind::Word => "VARCHAR",
            Kind::Bytes => "VARCHAR or BINARY",
            Kind::Integer => "BIGINT",
            Kind::Number => "number",
            Kind::Double => "DOUBLE",
            Kind::Boolean => "BOOLEAN",
            Kind::Timestamp => "DATE or TIMESTAMP",
            Kind::Time => "TIME",
            Kind::Interval => "INTERVAL",
            Kind::List => "list",
            Kind::Strings => "list of VARCHAR",
            Kind::Struct => "STRUCT",
            Kind::Map => "MAP",
            Kind::Nothing => "NULL",
            Kind::Any => "any",
            Kind::Dots => "…",
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
pub(super) fn forms_as_text(name: &str, forms: impl Iterator<Item = Form>) -> String {
    let forms = forms.filter(|form| !form.contains(&Kind::Nothing));
    let forms = forms.map(|form| {
        let kinds: Vec<&str> = form.iter().map(|kind| kind.name()).collect();
        format!("{name}({})", kinds.join(", "))
    });
    forms.collect::<Vec<_>>().join(" or ")
}
