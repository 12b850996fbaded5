//! Casts of lists, structs and maps whose parts are cast as SQL casts them alone.
//!
//! In: a list, struct or map, and the type that CAST or TRY_CAST names. Out: numbers rounded to integers, timestamps read and written
//! as they are outside a list.
//! Invariant: a part has the value that its own cast has. DataFusion cuts `[1.7]::INT[]` to 1. Keys of maps stay unique (map_keys.rs).
//! Not here: casts of single values (optimizer/fixes/meanings.rs), strings of whole lists (text_casts.rs).

use std::sync::Arc;

use datafusion::arrow::array::types::{Float32Type, Float64Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::common::nested_struct::cast_column;
use datafusion::logical_expr::Expr;

use crate::functions::casts::coarser_times::{is_coarser, nearest};
use crate::functions::casts::map_keys::MapParts;
use crate::functions::casts::own_cast::{OwnCast, own_cast};
use crate::functions::casts::text_casts::{is_text_cast, read_strings};
use crate::functions::casts::value_text::{is_written_here, strings_of_values};
use crate::wire::{Portable, WireReader, WireValue};

/// Where halves go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Halves {
    /// To the even one, as those of columns of floats.
    Even,
    /// Away from zero, as those that are written in the query.
    Away,
}

/// True of casts of lists, structs and maps with parts that DataFusion casts in another way than SQL.
pub(crate) fn is_nested_cast(of: &DataType, to: &DataType) -> bool {
    let is_nested = item(of).is_some() || matches!(of, DataType::Struct(_) | DataType::Map(..));
    is_nested && has_own_part(of, to)
}

fn has_own_part(of: &DataType, to: &DataType) -> bool {
    if let (Some(of), Some(to)) = (item(of), item(to)) {
        return has_own_part(of.data_type(), to.data_type());
    }
    if let (DataType::Struct(of), DataType::Struct(to)) = (of, to) {
        let mut fields = of.iter();
        return fields.any(|of| match to.find(of.name()) {
            Some((_, to)) => has_own_part(of.data_type(), to.data_type()),
            None => false,
        });
    }
    if let (Some((of_key, of)), Some((to_key, to))) = (entry(of), entry(to)) {
        let is_other_text = of_key.is_string() && to_key.is_string();
        return of_key != to_key && !is_other_text || has_own_part(of, to);
    }
    let is_rounded = to.is_integer() && (of.is_floating() || of.is_decimal());
    is_rounded
        || is_coarser(of, to)
        || is_text_cast(of, to)
        || to.is_string() && is_written_here(of)
}

fn item(list: &DataType) -> Option<&FieldRef> {
    match list {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item)
        }
        _ => None,
    }
}

/// The types of a map's keys and values.
fn entry(map: &DataType) -> Option<(&DataType, &DataType)> {
    let DataType::Map(entries, _) = map else {
        return None;
    };
    match entries.data_type() {
        DataType::Struct(fields) => Some((fields.first()?.data_type(), fields.get(1)?.data_type())),
        _ => None,
    }
}

/// The cast; `is_try`: NULL for what cannot be cast.
pub(crate) fn nested_cast(value: Expr, to: DataType, is_try: bool, halves: Halves) -> Expr {
    let cast = NestedCast { to, is_try, halves };
    own_cast(cast, value)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct NestedCast {
    to: DataType,
    is_try: bool,
    halves: Halves,
}

impl OwnCast for NestedCast {
    fn name(&self) -> &'static str {
        match self.is_try {
            true => "try_cast of parts",
            false => "cast of parts",
        }
    }

    fn to(&self) -> &DataType {
        &self.to
    }

    fn is_try(&self) -> bool {
        self.is_try
    }

    fn compute(&self, values: &ArrayRef) -> Result<ArrayRef> {
        self.cast(values, &self.to)
    }
}

impl Portable for NestedCast {
    const KIND: &'static str = "nested_cast";

    fn apart(&self) -> Vec<WireValue> {
        let is_even = self.halves == Halves::Even;
        vec![(&self.to).into(), self.is_try.into(), is_even.into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        Ok(NestedCast {
            to: values.data_type()?,
            is_try: values.flag()?,
            halves: match values.flag()? {
                true => Halves::Even,
                false => Halves::Away,
            },
        })
    }
}

impl NestedCast {
    fn cast(&self, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let of = values.data_type();
        if let (Some(of), Some(to_item)) = (item(of), item(to)) {
            let lists = cast(values, &DataType::List(Arc::clone(of)))?;
            let lists = self.items(lists.as_list(), to_item)?;
            return self.by_datafusion(&lists, to);
        }
        if let (DataType::Struct(_), DataType::Struct(to_fields)) = (of, to) {
            let parts = values.as_struct();
            let parts = parts
                .fields()
                .iter()
                .zip(parts.columns())
                .map(|(of, column)| {
                    let column = match to_fields.find(of.name()) {
                        Some((_, to)) => self.cast(column, to.data_type())?,
                        None => Arc::clone(column),
                    };
                    let field = Field::new(of.name(), column.data_type().clone(), true);
                    Ok((Arc::new(field), column))
                });
            let (fields, columns): (Vec<_>, Vec<_>) =
                parts.collect::<Result<Vec<_>>>()?.into_iter().unzip();
            let length = values.len();
            let nulls = values.nulls().cloned();
            let parts = StructArray::try_new_with_length(fields.into(), columns, nulls, length)?;
            return self.by_datafusion(&(Arc::new(parts) as ArrayRef), to);
        }
        if let (DataType::Map(..), DataType::Map(entries, is_sorted), Some((key, value))) =
            (of, to, entry(to))
        {
            let mut parts = MapParts::of(values.as_map())?;
            parts.keys = self.cast(&parts.keys, key)?;
            parts.values = self.cast(&parts.values, value)?;
            return parts.maps(entries, *is_sorted, self.is_try);
        }
        if to.is_integer() && (of.is_floating() || of.is_decimal()) {
            return self.by_datafusion(&self.rounded(values)?, to);
        }
        if is_coarser(of, to) {
            return self.by_datafusion(&nearest(values, to)?, to);
        }
        if is_text_cast(of, to) {
            return read_strings(values, to, self.is_try);
        }
        if to.is_string() && is_written_here(of) {
            return Ok(cast(&strings_of_values(values)?, to)?);
        }
        self.by_datafusion(values, to)
    }

    fn items(&self, lists: &ListArray, to: &FieldRef) -> Result<ArrayRef> {
        let offsets = lists.offsets();
        let (first, last) = (offsets[0], offsets[lists.len()]);
        let items = lists
            .values()
            .slice(first as usize, (last - first) as usize);
        let items = self.cast(&items, to.data_type())?;
        let lengths = lists.offsets().lengths();
        let field = Field::new(to.name(), items.data_type().clone(), true);
        Ok(Arc::new(ListArray::try_new(
            Arc::new(field),
            OffsetBuffer::from_lengths(lengths),
            items,
            lists.nulls().cloned(),
        )?))
    }

    fn rounded(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let of = values.data_type();
        if of.is_decimal() {
            let to = match of {
                DataType::Decimal256(..) => DataType::Decimal256(76, 0),
                _ => DataType::Decimal128(38, 0),
            };
            return Ok(cast(values, &to)?);
        }
        let wide = match of {
            DataType::Float64 => Arc::clone(values),
            _ => cast(values, &DataType::Float32)?,
        };
        Ok(match (wide.data_type(), self.halves) {
            (DataType::Float64, Halves::Even) => {
                rounded_by::<Float64Type>(&wide, f64::round_ties_even)
            }
            (DataType::Float64, Halves::Away) => rounded_by::<Float64Type>(&wide, f64::round),
            (_, Halves::Even) => rounded_by::<Float32Type>(&wide, f32::round_ties_even),
            (_, Halves::Away) => rounded_by::<Float32Type>(&wide, f32::round),
        })
    }

    fn by_datafusion(&self, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let options = CastOptions {
            safe: self.is_try,
            ..CastOptions::default()
        };
        match to.is_nested() {
            true => cast_column(values, to, &options),
            false => Ok(cast_with_options(values, to, &options)?),
        }
    }
}

fn rounded_by<T: datafusion::arrow::datatypes::ArrowPrimitiveType>(
    values: &ArrayRef,
    round: fn(T::Native) -> T::Native,
) -> ArrayRef {
    Arc::new(values.as_primitive::<T>().unary::<_, T>(round))
}
