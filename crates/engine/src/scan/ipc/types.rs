//! The schema of an Arrow IPC file, looked through before Arrow makes types of it.
//!
//! In: a schema as it lies in a footer or a message. Out: nothing, or an error that names the column.
//! Invariant: Arrow's `fb_to_schema`, which panics where a part is missing or a width is impossible, takes what passes.
//! Not here: what messages claim about their lengths (messages.rs).

use datafusion::arrow::ipc::{
    DateUnit, Endianness, Field, IntervalUnit, Precision, Schema, TimeUnit, Type, UnionMode,
};
use datafusion::common::Result;

use super::messages::bad;

/// Digits of the longest decimal.
const DIGITS_MAX: i32 = 76;

/// An error unless every column has a type that Arrow has.
pub(crate) fn check_schema(schema: Schema<'_>) -> Result<()> {
    let fields = schema.fields();
    let fields = fields.ok_or_else(|| bad("the schema is damaged: it has no list of columns"))?;
    if schema.endianness() != Endianness::Little {
        return Err(bad(
            "it was written by a big-endian machine, whose numbers are not read here",
        ));
    }
    match fields.iter().find(|field| !is_known(field)) {
        Some(field) => Err(bad(&format!(
            "the schema is damaged: column '{}' has a type that Arrow does not have",
            field.name().unwrap_or_default()
        ))),
        None => Ok(()),
    }
}

/// Whether a field and all below have types.
fn is_known(field: &Field<'_>) -> bool {
    let codes = field.dictionary().map(|dictionary| {
        let index = dictionary.indexType();
        index.is_some_and(|index| is_width(index.bitWidth()))
    });
    let mut children = field.children().into_iter().flatten();
    codes != Some(false) && is_type(field) && children.all(|child| is_known(&child))
}

fn is_width(bits: i32) -> bool {
    matches!(bits, 8 | 16 | 32 | 64)
}

fn is_unit(unit: TimeUnit) -> bool {
    unit.variant_name().is_some()
}

fn is_type(field: &Field<'_>) -> bool {
    let children = field.children().map_or(0, |children| children.len());
    let found = match field.type_type() {
        Type::Null | Type::Bool | Type::Struct_ => Some(true),
        Type::Binary | Type::BinaryView | Type::LargeBinary => Some(true),
        Type::Utf8 | Type::Utf8View | Type::LargeUtf8 => Some(true),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => Some(children == 1),
        Type::RunEndEncoded => Some(children == 2),
        Type::Map => field.type_as_map().map(|_| children == 1),
        Type::FixedSizeList => {
            let list = field.type_as_fixed_size_list();
            list.map(|list| children == 1 && list.listSize() >= 0)
        }
        Type::FixedSizeBinary => {
            let bytes = field.type_as_fixed_size_binary();
            bytes.map(|bytes| bytes.byteWidth() >= 0)
        }
        Type::Int => field.type_as_int().map(|int| is_width(int.bitWidth())),
        Type::FloatingPoint => {
            let float = field.type_as_floating_point();
            float.map(|float| {
                let precision = float.precision();
                [Precision::HALF, Precision::SINGLE, Precision::DOUBLE].contains(&precision)
            })
        }
        Type::Decimal => field.type_as_decimal().map(|decimal| {
            matches!(decimal.bitWidth(), 32 | 64 | 128 | 256)
                && (1..=DIGITS_MAX).contains(&decimal.precision())
                && (-DIGITS_MAX..=DIGITS_MAX).contains(&decimal.scale())
        }),
        Type::Union => field.type_as_union().map(|union| {
            let mode = union.mode();
            let ids = union.typeIds().map(|ids| ids.iter().collect::<Vec<_>>());
            (mode == UnionMode::Dense || mode == UnionMode::Sparse)
                && ids.is_none_or(|ids| are_ids(&ids, children))
        }),
        _ => is_time(field),
    };
    found == Some(true)
}

/// Whether the fields of a union have numbers, each its own.
fn are_ids(ids: &[i32], children: usize) -> bool {
    let is_one = |(at, id): (usize, &i32)| (0..128).contains(id) && !ids[..at].contains(id);
    ids.len() == children && ids.iter().enumerate().all(is_one)
}

fn is_time(field: &Field<'_>) -> Option<bool> {
    match field.type_type() {
        Type::Date => {
            let date = field.type_as_date()?;
            Some([DateUnit::DAY, DateUnit::MILLISECOND].contains(&date.unit()))
        }
        Type::Time => {
            let time = field.type_as_time()?;
            Some(match time.unit() {
                TimeUnit::SECOND | TimeUnit::MILLISECOND => time.bitWidth() == 32,
                TimeUnit::MICROSECOND | TimeUnit::NANOSECOND => time.bitWidth() == 64,
                _ => false,
            })
        }
        Type::Timestamp => Some(is_unit(field.type_as_timestamp()?.unit())),
        Type::Duration => Some(is_unit(field.type_as_duration()?.unit())),
        Type::Interval => {
            let interval = field.type_as_interval()?.unit();
            Some(IntervalUnit::variant_name(interval).is_some())
        }
        _ => None,
    }
}
