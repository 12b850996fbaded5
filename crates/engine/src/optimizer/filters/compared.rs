//! `column = literal` and the other comparisons, of integers of one or two bytes and of strings with a short one.
//!
//! In: DataFusion's comparison, then columns. Out: the same booleans.
//! Not here: the loops (`grouse_kernels::compare`); literals on the left, which DataFusion turns around; orders of strings.

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer};
use datafusion::arrow::datatypes::{
    BinaryViewType, ByteViewType, Int8Type, Int16Type, Schema, StringViewType, UInt8Type,
    UInt16Type,
};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use grouse_kernels::compare::{self, Comparison, SHORT_BYTES_MAX};

/// A comparison with a literal.
#[derive(Debug)]
pub(super) struct LiteralComparison {
    comparison: Comparison,
    with: ScalarValue,
}

impl LiteralComparison {
    /// The comparison, if there is a loop for it and the column has the literal's type.
    pub fn of(binary: &BinaryExpr, schema: Option<&Schema>) -> Option<LiteralComparison> {
        let comparison = comparison(*binary.op())?;
        let with = binary.right().downcast_ref::<Literal>()?.value();
        if !has_loop(comparison, with) {
            return None;
        }
        let is_same = |schema| {
            let of = binary.left().data_type(schema);
            of.is_ok_and(|of| of == with.data_type())
        };
        schema.is_none_or(is_same).then(|| LiteralComparison {
            comparison,
            with: with.clone(),
        })
    }

    /// The rows of which it is true; `None` for a column of another type.
    pub fn booleans(&self, column: &ArrayRef) -> Option<BooleanBuffer> {
        let bits = Buffer::from_vec(self.bits(column)?);
        Some(BooleanBuffer::new(bits, 0, column.len()))
    }

    fn bits(&self, column: &ArrayRef) -> Option<Vec<u64>> {
        match &self.with {
            ScalarValue::Int8(Some(with)) => self.integers::<Int8Type>(column, *with),
            ScalarValue::UInt8(Some(with)) => self.integers::<UInt8Type>(column, *with),
            ScalarValue::Int16(Some(with)) => self.integers::<Int16Type>(column, *with),
            ScalarValue::UInt16(Some(with)) => self.integers::<UInt16Type>(column, *with),
            ScalarValue::Utf8View(Some(text)) => {
                self.strings::<StringViewType>(column, text.as_bytes())
            }
            ScalarValue::BinaryView(Some(text)) => self.strings::<BinaryViewType>(column, text),
            _ => None,
        }
    }

    fn integers<T: ArrowPrimitiveType<Native: compare::Compared>>(
        &self,
        column: &ArrayRef,
        with: T::Native,
    ) -> Option<Vec<u64>> {
        let column = column.as_primitive_opt::<T>()?;
        let values = column.values();
        Some(compare::Compared::compared(values, self.comparison, with))
    }

    fn strings<T: ByteViewType>(&self, column: &ArrayRef, text: &[u8]) -> Option<Vec<u64>> {
        let views = column.as_byte_view_opt::<T>()?.views();
        let equal = self.comparison == Comparison::Equal;
        Some(compare::views_equal(views, text, equal))
    }
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn has_loop(comparison: Comparison, with: &ScalarValue) -> bool {
    let is_short = |text: &[u8]| {
        let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        text.len() <= SHORT_BYTES_MAX && !is_order
    };
    match with {
        ScalarValue::Int8(Some(_))
        | ScalarValue::UInt8(Some(_))
        | ScalarValue::Int16(Some(_))
        | ScalarValue::UInt16(Some(_)) => true,
        ScalarValue::Utf8View(Some(text)) => is_short(text.as_bytes()),
        ScalarValue::BinaryView(Some(text)) => is_short(text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        BinaryViewArray, DictionaryArray, Int8Array, Int16Array, Int32Array, RecordBatch,
        StringViewArray, UInt8Array, UInt16Array,
    };
    use datafusion::arrow::datatypes::{DataType, Int32Type};
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{binary, col, lit, not};

    use super::super::in_own_loops;
    use super::*;

    const OPERATORS: [Operator; 6] = [
        Operator::Eq,
        Operator::NotEq,
        Operator::Lt,
        Operator::LtEq,
        Operator::Gt,
        Operator::GtEq,
    ];

    /// Whether a comparison has a loop, where it is no condition by itself; its booleans are held against DataFusion's.
    fn has_own_loop(column: &ArrayRef, op: Operator, with: &ScalarValue) -> bool {
        let batch = RecordBatch::try_from_iter_with_nullable([("c", Arc::clone(column), true)]);
        let batch = batch.expect("a batch");
        let schema = batch.schema();
        let left = col("c", &schema).expect("the column");
        let datafusion = binary(left, op, lit(with.clone()), &schema).expect("a comparison");
        let datafusion = not(datafusion).expect("a condition");
        let ours = in_own_loops(Arc::clone(&datafusion), &schema).expect("types");
        let booleans = |expr: &Arc<dyn PhysicalExpr>| {
            let value = expr.evaluate(&batch).expect("booleans");
            value.into_array(batch.num_rows()).expect("a column")
        };
        assert_eq!(
            &booleans(&ours.data),
            &booleans(&datafusion),
            "{datafusion}"
        );
        assert_eq!(ours.data.to_string(), datafusion.to_string());
        ours.transformed
    }

    fn columns() -> Vec<(ArrayRef, ScalarValue)> {
        let rows = || (0..200).map(|row| (row % 7 != 3).then_some(row));
        let strings = [
            "",
            "short",
            "a text of more than 12 bytes",
            "shorT",
            "twelve bytes",
        ];
        let strings =
            || rows().map(move |row| row.map(|row| strings[row as usize % strings.len()]));
        vec![
            (
                Arc::new(
                    rows()
                        .map(|row| row.map(|row| row as i8))
                        .collect::<Int8Array>(),
                ),
                ScalarValue::Int8(Some(-5)),
            ),
            (
                Arc::new(
                    rows()
                        .map(|row| row.map(|row| row as u8))
                        .collect::<UInt8Array>(),
                ),
                ScalarValue::UInt8(Some(130)),
            ),
            (
                Arc::new(
                    rows()
                        .map(|row| row.map(|row| 50 - row as i16))
                        .collect::<Int16Array>(),
                ),
                ScalarValue::Int16(Some(0)),
            ),
            (
                Arc::new(
                    rows()
                        .map(|row| row.map(|row| row as u16))
                        .collect::<UInt16Array>(),
                ),
                ScalarValue::UInt16(Some(77)),
            ),
            (
                Arc::new(strings().collect::<StringViewArray>()),
                ScalarValue::Utf8View(Some("short".to_owned())),
            ),
            (
                Arc::new(
                    strings()
                        .map(|text| text.map(str::as_bytes))
                        .collect::<BinaryViewArray>(),
                ),
                ScalarValue::BinaryView(Some(Vec::new())),
            ),
        ]
    }

    #[test]
    fn equals_that_of_datafusion() {
        for (column, with) in columns() {
            let is_text = matches!(
                column.data_type(),
                DataType::Utf8View | DataType::BinaryView
            );
            for op in OPERATORS {
                for column in [
                    Arc::clone(&column),
                    column.slice(3, 130),
                    column.slice(5, 0),
                ] {
                    let expected = !is_text || matches!(op, Operator::Eq | Operator::NotEq);
                    assert_eq!(has_own_loop(&column, op, &with), expected, "{op} {with}");
                }
            }
        }
    }

    #[test]
    fn others_stay_with_datafusion() {
        let (strings, _) = &columns()[4];
        let long = ScalarValue::Utf8View(Some("thirteen byte".to_owned()));
        assert!(!has_own_loop(strings, Operator::Eq, &long));
        assert!(!has_own_loop(
            strings,
            Operator::Eq,
            &ScalarValue::Utf8View(None)
        ));
        let wide: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        assert!(!has_own_loop(
            &wide,
            Operator::Eq,
            &ScalarValue::Int32(Some(2))
        ));
        // What comes as codes is compared once per value.
        let codes = DictionaryArray::<Int32Type>::from_iter(["a", "b"]);
        let codes: ArrayRef = Arc::new(codes);
        assert!(!has_own_loop(&codes, Operator::Eq, &ScalarValue::from("a")));
    }
}
