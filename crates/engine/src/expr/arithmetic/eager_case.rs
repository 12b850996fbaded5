//! `CASE WHEN p THEN a ELSE b END` of two columns, or a column and a literal, in one pass over both.
//!
//! In: DataFusion's CASE, then batches. Out: the same column.
//! Invariant: neither side can fail, so that both may be taken for all rows. Any other CASE stays with DataFusion, which
//! computes each side for its own rows and puts them together piece by piece.
//! Not here: the loop (`grouse_kernels::select`); CASE of two literals, a NULL or an operand, which DataFusion has ways for.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayData, ArrayRef, AsArray, RecordBatch, make_array};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::datatypes::{ArrowNativeType, DataType, Schema};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CaseExpr, CastExpr, Column, Literal};
use grouse_kernels::select::{Selected, Side};

use crate::expr::columns::without_nulls;

/// True of a CASE with one condition and two sides that cannot fail.
pub(super) fn is_eager(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let (Some([_, then, otherwise]), Ok(data_type)) = (parts(expr), expr.data_type(schema)) else {
        return false;
    };
    let cannot_fail = |side: &Arc<dyn PhysicalExpr>| {
        let same = side.data_type(schema).is_ok_and(|of| of == data_type);
        same && match side.downcast_ref::<CastExpr>() {
            Some(cast) => widens(cast, schema),
            None => is_plain(side),
        }
    };
    let has_column = !then.is::<Literal>() || !otherwise.is::<Literal>();
    width(&data_type).is_some() && has_column && cannot_fail(then) && cannot_fail(otherwise)
}

/// The same as far as it can be told without types, of one whose parts took the place of the same with other columns.
pub(super) fn may_be_eager(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let may_be = |side: &Arc<dyn PhysicalExpr>| side.is::<CastExpr>() || is_plain(side);
    parts(expr).is_some_and(|[_, then, otherwise]| may_be(then) && may_be(otherwise))
}

/// One of its sides per row.
pub(super) fn computed(case: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ColumnarValue> {
    let Some([when, then, otherwise]) = parts(case) else {
        return case.evaluate(batch);
    };
    let booleans = when.evaluate(batch)?.into_array(batch.num_rows())?;
    let booleans = without_nulls(booleans.as_boolean());
    let (then, otherwise) = (then.evaluate(batch)?, otherwise.evaluate(batch)?);
    match selected(booleans.values(), &then, &otherwise)? {
        Some(column) => Ok(ColumnarValue::Array(column)),
        None => case.evaluate(batch),
    }
}

/// The CASE of integers as they are before both its sides only make them wider, as wide as no sum of them notices.
pub(super) fn as_they_are(
    case: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let Some([when, then, otherwise]) = parts(case) else {
        return Ok(None);
    };
    let sides = [then, otherwise];
    let narrow = [
        before_widening(then, schema)?,
        before_widening(otherwise, schema)?,
    ];
    let Some(first) = narrow.into_iter().flatten().next() else {
        return Ok(None);
    };
    let data_type = first.data_type(schema)?;
    let mut exchanged = Vec::with_capacity(sides.len());
    for (side, narrow) in sides.into_iter().zip(narrow) {
        let literal = side.downcast_ref::<Literal>();
        let literal = literal.and_then(|literal| literal.value().cast_to(&data_type).ok());
        exchanged.push(match (narrow, literal) {
            (Some(column), _) if column.data_type(schema)? == data_type => Arc::clone(column),
            (None, Some(value)) => Arc::new(Literal::new(value)),
            _ => return Ok(None),
        });
    }
    let [then, otherwise] = exchanged.try_into().expect("two sides");
    let branches = vec![(Arc::clone(when), then)];
    let case = CaseExpr::try_new(None, branches, Some(otherwise))?;
    Ok(Some(Arc::new(case)))
}

/// The integers that a cast only makes wider: sums of them are as wide whatever they come in.
pub(super) fn before_widening<'a>(
    expr: &'a Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Option<&'a Arc<dyn PhysicalExpr>>> {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let Some(cast) = expr.downcast_ref::<CastExpr>() else {
        return Ok(None);
    };
    let of = cast.expr().data_type(schema)?;
    let is_only_wider = matches!(
        (of, cast.cast_type()),
        (Int8 | Int16 | Int32, Int64) | (UInt8 | UInt16 | UInt32, UInt64)
    );
    Ok(is_only_wider.then(|| cast.expr()))
}

/// A column, or a literal that is not NULL.
fn is_plain(side: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = side.downcast_ref::<Literal>();
    side.is::<Column>() || literal.is_some_and(|literal| !literal.value().is_null())
}

/// True if integers of a column become signed ones of more bits.
fn widens(cast: &CastExpr, schema: &Schema) -> bool {
    let to = cast.cast_type();
    let is_wider =
        |from: DataType| from.is_integer() && from.primitive_width() < to.primitive_width();
    let from = cast.expr().data_type(schema);
    cast.expr().is::<Column>() && to.is_signed_integer() && from.is_ok_and(is_wider)
}

/// WHEN, THEN and ELSE of a CASE that has one of each.
fn parts(case: &Arc<dyn PhysicalExpr>) -> Option<[&Arc<dyn PhysicalExpr>; 3]> {
    let case = case.downcast_ref::<CaseExpr>()?;
    let ([(when, then)], None) = (case.when_then_expr(), case.expr()) else {
        return None;
    };
    Some([when, then, case.else_expr()?])
}

/// Bytes of a value of fixed width; none of intervals, whose columns lie at places that no integer may lie at.
fn width(data_type: &DataType) -> Option<usize> {
    if matches!(data_type, DataType::Interval(_)) {
        return None;
    }
    let width = data_type.primitive_width()?;
    matches!(width, 1 | 2 | 4 | 8 | 16).then_some(width)
}

/// `then` where the boolean is one, else `otherwise`; `None` for columns that are not of one fixed width.
fn selected(
    booleans: &BooleanBuffer,
    then: &ColumnarValue,
    otherwise: &ColumnarValue,
) -> Result<Option<ArrayRef>> {
    let sides = [then, otherwise];
    let columns = sides.map(|side| match side {
        ColumnarValue::Array(column) => Ok(Arc::clone(column)),
        ColumnarValue::Scalar(value) => value.to_array(),
    });
    let [then, otherwise] = columns;
    let (then, otherwise) = (then?, otherwise?);
    let data_type = then.data_type();
    let rows = booleans.len();
    if data_type != otherwise.data_type() {
        return Ok(None);
    }
    let is_one = sides.map(|side| matches!(side, ColumnarValue::Scalar(_)));
    let words: Vec<u64> = booleans.bit_chunks().iter_padded().collect();
    let values = match width(data_type) {
        Some(1) => values::<u8>(&words, rows, [&then, &otherwise], is_one),
        Some(2) => values::<u16>(&words, rows, [&then, &otherwise], is_one),
        Some(4) => values::<u32>(&words, rows, [&then, &otherwise], is_one),
        Some(8) => values::<u64>(&words, rows, [&then, &otherwise], is_one),
        Some(16) => values::<i128>(&words, rows, [&then, &otherwise], is_one),
        _ => return Ok(None),
    };
    let valid = |column: &ArrayRef| match column.nulls() {
        Some(nulls) if column.len() == rows => nulls.inner().clone(),
        Some(nulls) if nulls.is_null(0) => BooleanBuffer::new_unset(rows),
        _ => BooleanBuffer::new_set(rows),
    };
    let has_nulls = then.null_count() + otherwise.null_count() > 0;
    let nulls = has_nulls.then(|| {
        let set = &valid(&then) & booleans;
        let unset = &valid(&otherwise) & &!booleans;
        NullBuffer::new(&set | &unset)
    });
    let data = ArrayData::builder(data_type.clone())
        .len(rows)
        .nulls(nulls)
        .add_buffer(values);
    Ok(Some(make_array(data.build()?)))
}

fn values<T: Selected + ArrowNativeType>(
    words: &[u64],
    rows: usize,
    columns: [&ArrayRef; 2],
    is_one: [bool; 2],
) -> Buffer {
    let data = columns.map(|column| column.to_data());
    let side = |at: usize| {
        let values = &data[at].buffer::<T>(0)[..data[at].len()];
        match is_one[at] {
            true => Side::Value(values[0]),
            false => Side::Column(values),
        }
    };
    Buffer::from_vec(T::select(words, rows, side(0), side(1)))
}
