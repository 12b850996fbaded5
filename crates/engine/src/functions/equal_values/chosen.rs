//! Functions of lists whose results have values of their arguments: which of them is decided by canonical forms.
//!
//! In: `array_distinct`, `array_union`, `array_remove`, `array_replace`, `array_max` and their kin, over items whose equal values
//! may differ in their bits, or that are lists and structs. Out: values as they are in the arguments.
//! Invariant: NULL is equal to NULL here; a NULL list or argument gives NULL, as DataFusion has it for other items. The greatest
//! and the least leave NULL out, and NULL inside of an item is greater than all else there.
//! Not here: whether and where a list has a value (equal_values.rs).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, concat, take};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};
use grouse_groupby::keys::row::{canonical_values, has_forms};

use crate::error::to_datafusion;
use crate::functions::wrapped::as_wrapped;
use crate::wire::{Portable, WireReader, WireValue};

/// What a function chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Choice {
    Distinct,
    Union,
    Except,
    Intersect,
    /// All, or as many as the last argument says, or one.
    Remove(OccurrenceCount),
    Replace(OccurrenceCount),
    Greatest,
    Least,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum OccurrenceCount {
    One,
    Given,
    All,
}

impl Choice {
    fn of_name(name: &str) -> Option<Choice> {
        Some(match name {
            "array_distinct" => Choice::Distinct,
            "array_union" => Choice::Union,
            "array_except" => Choice::Except,
            "array_intersect" => Choice::Intersect,
            "array_remove" => Choice::Remove(OccurrenceCount::One),
            "array_remove_n" => Choice::Remove(OccurrenceCount::Given),
            "array_remove_all" => Choice::Remove(OccurrenceCount::All),
            "array_replace" => Choice::Replace(OccurrenceCount::One),
            "array_replace_n" => Choice::Replace(OccurrenceCount::Given),
            "array_replace_all" => Choice::Replace(OccurrenceCount::All),
            "array_max" => Choice::Greatest,
            "array_min" => Choice::Least,
            _ => return None,
        })
    }

    /// How many of the arguments, at their beginning, are lists, and how many after them are items.
    fn lists_and_items(self) -> (usize, usize) {
        match self {
            Choice::Distinct | Choice::Greatest | Choice::Least => (1, 0),
            Choice::Union | Choice::Except | Choice::Intersect => (2, 0),
            Choice::Remove(_) => (1, 1),
            Choice::Replace(_) => (1, 2),
        }
    }
}

/// The call of DataFusion's function by ours, where its items need that.
pub(super) fn chosen(
    function: &Arc<ScalarUDF>,
    args: &[Expr],
    schema: &DFSchema,
) -> Result<Option<Expr>> {
    let Some(choice) = Choice::of_name(function.name()) else {
        return Ok(None);
    };
    let types = args.iter().map(|arg| arg.get_type(schema));
    let types = types.collect::<Result<Vec<_>>>()?;
    let Some(DataType::List(item)) = types.first() else {
        return Ok(None);
    };
    let item = item.data_type();
    let (lists, items) = choice.lists_and_items();
    let is_list = |of: &DataType| matches!(of, DataType::List(of) if of.data_type() == item);
    let fits = types.len() >= lists + items
        && types[..lists].iter().all(is_list)
        && types[lists..][..items].iter().all(|of| of == item);
    if !fits || !is_chosen_here(item) {
        return Ok(None);
    }
    let chosen = ChoiceFunction {
        function: Arc::clone(function),
        choice,
    };
    Ok(Some(ScalarUDF::new_from_impl(chosen).call(args.to_vec())))
}

/// True of what `chosen` calls.
pub(super) fn is_chosen(function: &ScalarUDF) -> bool {
    function.inner().is::<ChoiceFunction>()
}

fn is_chosen_here(item: &DataType) -> bool {
    (has_forms(item) || item.is_nested()) && RowConverter::supports_fields(&[order_of(item)])
}

fn order_of(item: &DataType) -> SortField {
    let nulls_last = SortOptions {
        descending: false,
        nulls_first: false,
    };
    SortField::new_with_options(item.clone(), nulls_last)
}

/// The greatest or least item of each list.
pub(crate) fn extreme_items(lists: &ListArray, name: &str) -> Result<Option<ArrayRef>> {
    if !is_chosen_here(&lists.value_type()) {
        return Ok(None);
    }
    let choice = match name {
        "max" => Choice::Greatest,
        "min" => Choice::Least,
        _ => return Ok(None),
    };
    let items = ArgumentItems::new(&[lists], &[])?;
    let rows = 0..lists.len();
    let places = rows.map(|row| match lists.is_null(row) {
        true => None,
        false => items.extreme(choice, items.list(0, row)),
    });
    let places = places.collect::<UInt32Array>();
    Ok(Some(take(&items.values, &places, None)?))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct ChoiceFunction {
    /// DataFusion's, whose names and types this one has.
    function: Arc<ScalarUDF>,
    choice: Choice,
}

impl ScalarUDFImpl for ChoiceFunction {
    as_wrapped!(function: name, signature, return_type, return_field_from_args);

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(rows));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let (lists, items) = self.choice.lists_and_items();
        let (lists, rest) = columns.split_at(lists);
        let lists: Vec<&ListArray> = lists.iter().map(|column| column.as_list()).collect();
        if matches!(self.choice, Choice::Greatest | Choice::Least) {
            let name = if self.choice == Choice::Greatest {
                "max"
            } else {
                "min"
            };
            return match extreme_items(lists[0], name)? {
                Some(column) => Ok(ColumnarValue::Array(column)),
                None => self.function.invoke_with_args(args),
            };
        }
        let (items, numbers) = rest.split_at(items);
        let DataType::List(field) = args.return_field.data_type() else {
            return self.function.invoke_with_args(args);
        };
        let call = ChoiceCall {
            choice: self.choice,
            items: ArgumentItems::new(&lists, items)?,
            numbers: numbers.first(),
            nulls: self.nulls(&columns),
        };
        call.lists(rows, field)
            .map(|lists| ColumnarValue::Array(Arc::new(lists)))
    }
}

impl Portable for ChoiceFunction {
    const KIND: &'static str = "choice";

    fn apart(&self) -> Vec<WireValue> {
        vec![(&self.function).into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let function = values.scalar_function()?;
        match Choice::of_name(function.name()) {
            Some(choice) => Ok(ChoiceFunction { function, choice }),
            None => internal_err!("{} chooses nothing", function.name()),
        }
    }
}

impl ChoiceFunction {
    /// The rows in which the result is NULL; an item is replaced by NULL and NULL by an item.
    fn nulls(&self, columns: &[ArrayRef]) -> Option<NullBuffer> {
        let is_read =
            |at: &usize| !matches!(self.choice, Choice::Replace(_)) || !(1..3).contains(at);
        (0..columns.len()).filter(is_read).fold(None, |nulls, at| {
            NullBuffer::union(nulls.as_ref(), columns[at].logical_nulls().as_ref())
        })
    }
}

/// The items of all arguments, one after another.
struct ArgumentItems {
    values: ArrayRef,
    /// Bytes that are equal where values are, and order as they do.
    order: Rows,
    /// Of each list its items' places in `values`.
    offsets: Vec<Vec<u32>>,
    /// Where the items that are arguments begin.
    arguments: Vec<u32>,
}

impl ArgumentItems {
    fn new(lists: &[&ListArray], items: &[ArrayRef]) -> Result<ArgumentItems> {
        let columns = lists.iter().map(|list| list.values());
        let columns: Vec<&dyn Array> = columns.chain(items).map(|column| column.as_ref()).collect();
        let values = concat(&columns)?;
        let mut start = 0;
        let starts: Vec<u32> = columns
            .iter()
            .map(|column| {
                let own = start;
                start += column.len() as u32;
                own
            })
            .collect();
        let offsets = lists.iter().zip(&starts).map(|(list, start)| {
            let offsets = list.offsets().iter();
            offsets.map(|offset| start + *offset as u32).collect()
        });
        let converter = RowConverter::new(vec![order_of(values.data_type())])?;
        let canonical = canonical_values(&values).map_err(to_datafusion)?;
        Ok(ArgumentItems {
            order: converter.convert_columns(&[canonical])?,
            offsets: offsets.collect(),
            arguments: starts[lists.len()..].to_vec(),
            values,
        })
    }

    /// The places of the items of a list.
    fn list(&self, of: usize, row: usize) -> std::ops::Range<u32> {
        self.offsets[of][row]..self.offsets[of][row + 1]
    }

    /// The place of an item that is an argument.
    fn argument(&self, at: usize, row: usize) -> u32 {
        self.arguments[at] + row as u32
    }

    fn key(&self, place: u32) -> &[u8] {
        self.order.row(place as usize).data()
    }

    fn extreme(&self, choice: Choice, list: std::ops::Range<u32>) -> Option<u32> {
        let there = list.filter(|place| self.values.is_valid(*place as usize));
        // Of equal ones the first.
        match choice {
            Choice::Greatest => there.rev().max_by_key(|place| self.key(*place)),
            _ => there.min_by_key(|place| self.key(*place)),
        }
    }
}

/// One call for some rows.
struct ChoiceCall<'a> {
    choice: Choice,
    items: ArgumentItems,
    numbers: Option<&'a ArrayRef>,
    nulls: Option<NullBuffer>,
}

impl ChoiceCall<'_> {
    fn lists(&self, rows: usize, field: &FieldRef) -> Result<ListArray> {
        let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
        for row in 0..rows {
            let before = places.len();
            if self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                self.row(row, &mut places);
            }
            lengths.push(places.len() - before);
        }
        let values = take(&self.items.values, &UInt32Array::from(places), None)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        let field = Arc::clone(field);
        Ok(ListArray::try_new(
            field,
            offsets,
            values,
            self.nulls.clone(),
        )?)
    }

    fn row(&self, row: usize, places: &mut Vec<u32>) {
        let items = &self.items;
        let first = items.list(0, row);
        match self.choice {
            Choice::Distinct => self.distinct(first, |_| true, places),
            Choice::Union => self.distinct(first.chain(items.list(1, row)), |_| true, places),
            Choice::Except | Choice::Intersect => {
                let others: HashSet<&[u8]> = items.list(1, row).map(|at| items.key(at)).collect();
                let is_wanted = self.choice == Choice::Intersect;
                let keep = |key: &[u8]| others.contains(key) == is_wanted;
                self.distinct(first, keep, places);
            }
            Choice::Remove(number) => self.replaced(row, number, None, places),
            Choice::Replace(number) => {
                self.replaced(row, number, Some(items.argument(1, row)), places);
            }
            Choice::Greatest | Choice::Least => {}
        }
    }

    /// The first items of each value that `keep` wants.
    fn distinct(
        &self,
        list: impl Iterator<Item = u32>,
        keep: impl Fn(&[u8]) -> bool,
        places: &mut Vec<u32>,
    ) {
        let mut known = HashSet::new();
        places.extend(list.filter(|place| {
            let key = self.items.key(*place);
            keep(key) && known.insert(key)
        }));
    }

    /// The items, those that are equal to the first argument replaced by `by`.
    fn replaced(
        &self,
        row: usize,
        number: OccurrenceCount,
        by: Option<u32>,
        places: &mut Vec<u32>,
    ) {
        let given = self
            .numbers
            .map(|numbers| numbers.as_primitive::<Int64Type>().value(row));
        let mut left = match number {
            OccurrenceCount::One => 1,
            OccurrenceCount::Given => given.unwrap_or(0),
            OccurrenceCount::All => i64::MAX,
        };
        let wanted = self.items.key(self.items.argument(0, row));
        for place in self.items.list(0, row) {
            match left > 0 && self.items.key(place) == wanted {
                true => {
                    left -= 1;
                    places.extend(by);
                }
                false => places.push(place),
            }
        }
    }
}
