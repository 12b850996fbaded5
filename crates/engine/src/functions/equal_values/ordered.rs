//! Orders that DataFusion does not have: of lists and structs with NULL inside, and the greatest and least of values of several
//! forms.
//!
//! In: operands of `<`, `<=`, `>` and `>=` of nested types, sort keys of these, arguments of `greatest` and `least`. Out: functions
//! in their place; of a sort key the bytes that order as it does, by which DataFusion also keeps the first rows of a sort.
//! Invariant: NULL inside a value is greater than all else there, as in ORDER BY; a NULL operand makes the comparison NULL, and
//! the greatest and least leave it out.
//! Not here: equality, in which DataFusion takes NULL inside for equal to NULL.

use std::cmp::Ordering;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, ListArray, make_comparator, new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::{SortOptions, interleave};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use grouse_groupby::keys::row::canonical_values;

use crate::error::to_datafusion;
use crate::expr::function_methods::function_methods;
use crate::wire::{Portable, WireReader, WireValue};

/// As in ORDER BY.
const NULL_LAST: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// `<`, `<=`, `>` or `>=` of two nested values.
pub(crate) fn ordered(binary: &BinaryExpr) -> Expr {
    let function = ScalarUDF::new_from_impl(NestedOrder {
        op: binary.op,
        signature: Signature::any(2, Volatility::Immutable),
    });
    let operands = vec![(*binary.left).clone(), (*binary.right).clone()];
    function.call(operands)
}

/// The bytes by which a list or struct is sorted; `None` where its type has no order.
pub(crate) fn sort_bytes(key: &Expr, of: &DataType) -> Option<Expr> {
    has_order_of_bytes(of).then(|| SORT_BYTES.call(vec![key.clone()]))
}

/// The bytes of each item of a list; `None` where items of their type have no order.
pub(crate) fn item_bytes(list: &Expr, of: &DataType) -> Option<Expr> {
    has_order_of_bytes(of).then(|| ITEM_BYTES.call(vec![list.clone()]))
}

fn has_order_of_bytes(of: &DataType) -> bool {
    let field = SortField::new_with_options(of.clone(), NULL_LAST);
    of.is_nested() && RowConverter::supports_fields(&[field])
}

static SORT_BYTES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| SortBytes::of(SortedValues::Values));
static ITEM_BYTES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| SortBytes::of(SortedValues::Items));

#[derive(Debug, PartialEq, Eq, Hash)]
enum SortedValues {
    Values,
    /// The items of lists.
    Items,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct SortBytes {
    of: SortedValues,
    signature: Signature,
}

impl SortBytes {
    fn of(of: SortedValues) -> Arc<ScalarUDF> {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(SortBytes { of, signature }))
    }
}

impl ScalarUDFImpl for SortBytes {
    function_methods!();

    fn name(&self) -> &str {
        match self.of {
            SortedValues::Values => "sort_bytes",
            SortedValues::Items => "item_bytes",
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.of {
            SortedValues::Values => DataType::Binary,
            SortedValues::Items => DataType::List(bytes_item()),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let column = canonical_values(&column).map_err(to_datafusion)?;
        Ok(ColumnarValue::Array(match self.of {
            SortedValues::Values => bytes(column)?,
            SortedValues::Items => {
                let (_, offsets, items, nulls) = column.as_list::<i32>().clone().into_parts();
                Arc::new(ListArray::try_new(
                    bytes_item(),
                    offsets,
                    bytes(items)?,
                    nulls,
                )?)
            }
        }))
    }
}

impl Portable for SortBytes {
    const KIND: &'static str = "sort_bytes";

    fn apart(&self) -> Vec<WireValue> {
        vec![(self.of == SortedValues::Items).into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let of = match values.flag()? {
            true => SortedValues::Items,
            false => SortedValues::Values,
        };
        let signature = Signature::any(1, Volatility::Immutable);
        Ok(SortBytes { of, signature })
    }
}

fn bytes_item() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Binary, true))
}

/// Canonical values as the bytes that order as they do.
fn bytes(column: ArrayRef) -> Result<ArrayRef> {
    let field = SortField::new_with_options(column.data_type().clone(), NULL_LAST);
    let rows = RowConverter::new(vec![field])?.convert_columns(&[Arc::clone(&column)])?;
    let (offsets, bytes, _) = rows.try_into_binary()?.into_parts();
    let bytes = BinaryArray::new(offsets, bytes, column.logical_nulls());
    Ok(Arc::new(bytes))
}

/// Values that Arrow sorts as ORDER BY sorts those of `column`.
pub(crate) fn sortable(column: &ArrayRef) -> Result<ArrayRef> {
    // Arrow sorts no column without a type.
    if column.data_type().is_null() {
        return Ok(new_null_array(&DataType::Boolean, column.len()));
    }
    let column = canonical_values(column).map_err(to_datafusion)?;
    match has_order_of_bytes(column.data_type()) {
        true => bytes(column),
        false => Ok(column),
    }
}

/// `greatest` or `least` of arguments of one type.
pub(crate) fn extreme(name: &str, args: Vec<Expr>) -> Expr {
    let (better, name) = match name {
        "greatest" => (Ordering::Greater, "greatest"),
        _ => (Ordering::Less, "least"),
    };
    let signature = Signature::variadic_any(Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(Extreme {
        name,
        better,
        signature,
    });
    function.call(args)
}

/// True of what `extreme` calls.
pub(crate) fn is_extreme(function: &ScalarUDF) -> bool {
    function.inner().is::<Extreme>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct NestedOrder {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for NestedOrder {
    function_methods!();

    fn name(&self) -> &str {
        match self.op {
            Operator::Lt => "less",
            Operator::LtEq => "less_or_equal",
            Operator::Gt => "greater",
            _ => "greater_or_equal",
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let (left, right) = (args.args[0].to_array(rows)?, args.args[1].to_array(rows)?);
        let order = make_comparator(&left, &right, NULL_LAST)?;
        let holds = |order: Ordering| match self.op {
            Operator::Lt => order.is_lt(),
            Operator::LtEq => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        };
        let values = BooleanBuffer::collect_bool(rows, |row| holds(order(row, row)));
        let nulls = NullBuffer::union(left.nulls(), right.nulls());
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(
            values, nulls,
        ))))
    }
}

impl Portable for NestedOrder {
    const KIND: &'static str = "nested_order";

    fn apart(&self) -> Vec<WireValue> {
        vec![self.name().into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let op = values.one_of(&[
            ("less", Operator::Lt),
            ("less_or_equal", Operator::LtEq),
            ("greater", Operator::Gt),
            ("greater_or_equal", Operator::GtEq),
        ])?;
        let signature = Signature::any(2, Volatility::Immutable);
        Ok(NestedOrder { op, signature })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct Extreme {
    name: &'static str,
    better: Ordering,
    signature: Signature,
}

impl ScalarUDFImpl for Extreme {
    function_methods!();

    fn name(&self) -> &str {
        self.name
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns = args.args.iter().map(|arg| arg.to_array(rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let chosen = self.chosen(&columns, rows)?;
        let columns: Vec<&dyn Array> = columns.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(interleave(&columns, &chosen)?))
    }
}

impl Portable for Extreme {
    const KIND: &'static str = "extreme";

    fn apart(&self) -> Vec<WireValue> {
        vec![self.name.into()]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        let (name, better) = values.one_of(&[
            ("greatest", ("greatest", Ordering::Greater)),
            ("least", ("least", Ordering::Less)),
        ])?;
        Ok(Extreme {
            name,
            better,
            signature: Signature::variadic_any(Volatility::Immutable),
        })
    }
}

impl Extreme {
    /// The column and row of each result.
    fn chosen(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<(usize, usize)>> {
        let forms = columns.iter().map(canonical_values);
        let forms = forms.collect::<grouse_groupby::Result<Vec<_>>>();
        let forms = forms.map_err(to_datafusion)?;
        let mut chosen: Vec<(usize, usize)> = (0..rows).map(|row| (0, row)).collect();
        for (at, column) in forms.iter().enumerate().skip(1) {
            let orders = forms[..at].iter();
            let orders = orders.map(|best| make_comparator(column, best, NULL_LAST));
            let orders = orders.collect::<Result<Vec<_>, _>>()?;
            for (row, chosen) in chosen.iter_mut().enumerate() {
                let best = chosen.0;
                let is_better = forms[best].is_null(row)
                    || column.is_valid(row) && orders[best](row, row) == self.better;
                if is_better {
                    chosen.0 = at;
                }
            }
        }
        Ok(chosen)
    }
}
