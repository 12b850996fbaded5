//! Arithmetic in 64 bits, where DataFusion takes wide values or goes row by row.
//!
//! In: a physical plan for our operator. Out: the same plan, in projections, aggregations and sorts with expressions of ours.
//! `+`, `-` and `*` of two DECIMALs of up to 38 digits compute in 64 bits where the values allow it (decimals.rs). `/` and `%`
//! of integers by a literal multiply with its reciprocal (divided.rs). A CASE with two plain sides takes both for all rows
//! (eager_case.rs). Functions of dates and times are computed once per hour or day (distinct_values/steps.rs).
//! Invariant: types, names, NULLs and errors are DataFusion's: whatever has no kernel of its own is computed by it. In EXPLAIN
//! the operation stands in brackets, whatever is around it.
//! Not here: the loops (`grouse_kernels`); plans for DataFusion's operator; predicates, which scans prune by their form;
//! windows, whose orders are known by the form of their expressions.

mod decimals;
mod divided;
mod eager_case;

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, rem, sub};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr_common::datum::apply;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::expr::decimal64::decimal64_of;
use crate::expr::distinct_values::once_per_step;
use crate::expr::plan_expressions::exchanged;
use crate::expr::specialised::{Kernel, Specialised, specialise};
use crate::runtime::options::{GroupByOperator, SessionOptions};
use decimals::{DecimalOperand, DecimalSum};
use divided::LiteralDivisor;

/// The rule.
pub(crate) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if SessionOptions::of(config).group_by_operator == GroupByOperator::DataFusion {
        return Ok(plan);
    }
    plan.transform_up(|node| {
        let is_reached = node.is::<ProjectionExec>()
            || node.is::<AggregateExec>()
            // Orders are compared with the others' expressions.
            || node.is::<SortExec>();
        match is_reached {
            true => exchanged(node, &in_64_bits),
            false => Ok(Transformed::no(node)),
        }
    })
    .data()
}

fn in_64_bits(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let in_64_bits = specialise(expr, |expr| Narrow::of(expr, schema))?;
    in_64_bits.transform_data(|expr| once_per_step(expr, schema))
}

/// An expression of DataFusion's, computed in 64 bits.
type In64Bits = Specialised<Narrow>;

#[derive(Debug)]
enum Narrow {
    Decimals,
    Divided(LiteralDivisor),
    /// A remainder cast to fewer bits.
    Narrowed,
    EagerCase,
}

impl Narrow {
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Narrow> {
        match expr.downcast_ref::<BinaryExpr>() {
            Some(binary) => Self::operation(binary, schema),
            None if narrowed(expr).is_some() => Some(Narrow::Narrowed),
            None => eager_case::is_eager(expr, schema).then_some(Narrow::EagerCase),
        }
    }

    fn operation(binary: &BinaryExpr, schema: &Schema) -> Option<Narrow> {
        match binary.op() {
            Operator::Plus | Operator::Minus | Operator::Multiply => Self::decimals(binary, schema),
            Operator::Divide | Operator::Modulo => {
                LiteralDivisor::of(binary.right()).map(Narrow::Divided)
            }
            _ => None,
        }
    }

    fn decimals(binary: &BinaryExpr, schema: &Schema) -> Option<Narrow> {
        // A long sum has its parts on the left: asked for its type, each would ask all of them.
        let is_decimal = |side: &Arc<dyn PhysicalExpr>| match narrow_of(side) {
            Some(Narrow::Decimals) => true,
            Some(Narrow::Divided(_) | Narrow::Narrowed) => false,
            Some(Narrow::EagerCase) | None => {
                matches!(side.data_type(schema), Ok(DataType::Decimal128(..)))
            }
        };
        let are = is_decimal(binary.right()) && is_decimal(binary.left());
        are.then_some(Narrow::Decimals)
    }
}

/// A cast of a remainder by a literal to integers that have room for all such.
fn narrowed(expr: &Arc<dyn PhysicalExpr>) -> Option<&CastExpr> {
    let cast = expr.downcast_ref::<CastExpr>()?;
    let remainder = cast.expr().downcast_ref::<In64Bits>()?;
    let remainder = remainder.datafusion().downcast_ref::<BinaryExpr>()?;
    divided::remainders_fit(remainder, cast.cast_type()).then_some(cast)
}

/// The kernel of an expression that is computed in 64 bits.
fn narrow_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&Narrow> {
    expr.downcast_ref::<In64Bits>().map(Specialised::kernel)
}

impl Kernel for Narrow {
    fn rebind(&self, datafusion: &Arc<dyn PhysicalExpr>) -> Option<Narrow> {
        match (self, datafusion.downcast_ref::<BinaryExpr>()) {
            (Narrow::Decimals, Some(_)) => Some(Narrow::Decimals),
            (Narrow::Divided(_), Some(binary)) => {
                LiteralDivisor::of(binary.right()).map(Narrow::Divided)
            }
            (Narrow::Narrowed, _) => narrowed(datafusion).map(|_| Narrow::Narrowed),
            _ => eager_case::may_be_eager(datafusion).then_some(Narrow::EagerCase),
        }
    }

    fn evaluate(
        &self,
        datafusion: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> Result<ColumnarValue> {
        match (self, datafusion.downcast_ref::<BinaryExpr>()) {
            (Narrow::Decimals, Some(binary)) => {
                let (left, right) = (side(binary.left(), batch)?, side(binary.right(), batch)?);
                match decimals::computed(*binary.op(), &left, &right)? {
                    Some(column) => Ok(ColumnarValue::Array(column)),
                    None => by_datafusion(
                        binary,
                        values(left, binary.left(), batch)?,
                        values(right, binary.right(), batch)?,
                    ),
                }
            }
            (Narrow::Divided(divided), Some(binary)) => {
                let left = operand(binary.left(), batch)?;
                match divided.computed(*binary.op(), &left) {
                    Some(column) => Ok(ColumnarValue::Array(column)),
                    None => by_datafusion(binary, left, operand(binary.right(), batch)?),
                }
            }
            (Narrow::Narrowed, _) => {
                let Some(cast) = narrowed(datafusion) else {
                    return datafusion.evaluate(batch);
                };
                let narrow = match cast.expr().evaluate(batch)? {
                    ColumnarValue::Array(column) => divided::low_bits(&column, cast.cast_type()),
                    ColumnarValue::Scalar(_) => None,
                };
                narrow.map_or_else(
                    || datafusion.evaluate(batch),
                    |column| Ok(ColumnarValue::Array(column)),
                )
            }
            _ => eager_case::computed(datafusion, batch),
        }
    }

    fn is_bracketed(&self) -> bool {
        matches!(self, Narrow::Decimals | Narrow::Divided(_))
    }
}

/// The operation as DataFusion has it.
fn by_datafusion(
    binary: &BinaryExpr,
    left: ColumnarValue,
    right: ColumnarValue,
) -> Result<ColumnarValue> {
    let (left, right) = (wide(left)?, wide(right)?);
    match binary.op() {
        Operator::Plus => apply(&left, &right, add),
        Operator::Minus => apply(&left, &right, sub),
        Operator::Multiply => apply(&left, &right, mul),
        Operator::Divide => apply(&left, &right, div),
        Operator::Modulo => apply(&left, &right, rem),
        other => internal_err!("{other} is no operation in words"),
    }
}

/// One side of an operation on decimals.
fn side(side: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<DecimalOperand> {
    Ok(match sum(side, batch)? {
        Some(sum) => DecimalOperand::Sum(sum),
        None => DecimalOperand::Values(operand(side, batch)?),
    })
}

/// The side if it is the sum of a literal and a column in 64 bits.
fn sum(side: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<Option<DecimalSum>> {
    let sum = side.downcast_ref::<In64Bits>();
    let Some(sum) = sum.and_then(|sum| sum.datafusion().downcast_ref::<BinaryExpr>()) else {
        return Ok(None);
    };
    let part = |part: &Arc<dyn PhysicalExpr>| match part.downcast_ref::<Literal>() {
        Some(literal) => Ok(Some(ColumnarValue::Scalar(literal.value().clone()))),
        None => Ok::<_, DataFusionError>(decimal64_of(part, batch)?.map(ColumnarValue::Array)),
    };
    let (Some(left), Some(right)) = (part(sum.left())?, part(sum.right())?) else {
        return Ok(None);
    };
    Ok(DecimalSum::of(*sum.op(), &left, &right))
}

/// The values of a side.
fn values(
    side: DecimalOperand,
    expr: &Arc<dyn PhysicalExpr>,
    batch: &RecordBatch,
) -> Result<ColumnarValue> {
    match side {
        DecimalOperand::Values(values) => Ok(values),
        DecimalOperand::Sum(_) => expr.evaluate(batch),
    }
}

/// One side of an operation, a column in 64 bits as it comes.
fn operand(side: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ColumnarValue> {
    match decimal64_of(side, batch)? {
        Some(words) => Ok(ColumnarValue::Array(words)),
        None => side.evaluate(batch),
    }
}

/// The same as DataFusion has it, which takes no Decimal64 for decimals of 128 bits.
fn wide(side: ColumnarValue) -> Result<ColumnarValue> {
    match side.data_type() {
        DataType::Decimal64(precision, scale) => {
            side.cast_to(&DataType::Decimal128(precision, scale), None)
        }
        _ => Ok(side),
    }
}

/// True if `expr` computes in 64 bits with the column itself.
pub(crate) fn takes_decimal64(expr: &Arc<dyn PhysicalExpr>, column: usize) -> bool {
    let is_column = |side: &Arc<dyn PhysicalExpr>| {
        let side = side.downcast_ref::<Column>();
        side.is_some_and(|side| side.index() == column)
    };
    let takes = expr.exists(|part| {
        let is_decimal = matches!(narrow_of(part), Some(Narrow::Decimals));
        Ok(is_decimal && part.children().into_iter().any(is_column))
    });
    takes.unwrap_or(false)
}

/// What a sum reads in place of `expr`: integers that a cast, or a CASE of casts, only makes wider are added up as they are.
pub(crate) fn as_they_are(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Arc<dyn PhysicalExpr>> {
    if let Some(integers) = eager_case::before_widening(expr, schema)? {
        return Ok(Arc::clone(integers));
    }
    let Some(case) = expr.downcast_ref::<In64Bits>() else {
        return Ok(Arc::clone(expr));
    };
    match eager_case::as_they_are(case.datafusion(), schema)? {
        Some(narrow) => Ok(in_64_bits(narrow, schema)?.data),
        None => Ok(Arc::clone(expr)),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Array, ArrayRef, BooleanArray, Decimal64Array, Decimal128Array, Int64Array, UInt64Array,
    };
    use datafusion::arrow::compute::cast;
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::CaseExpr;

    use super::*;

    const VALUES: [Option<i128>; 8] = [
        Some(0),
        Some(-1),
        None,
        Some(123_456_789_012_345),
        Some(-99_999_999_999),
        Some(i64::MAX as i128),
        Some(i64::MAX as i128 + 1),
        Some(99_999_999_999_999_999_999_999_999_999_999_999_999),
    ];

    fn column(values: &[Option<i128>], (precision, scale): (u8, i8)) -> ArrayRef {
        let column = Decimal128Array::from(values.to_vec());
        let typed = column.with_precision_and_scale(precision, scale);
        Arc::new(typed.expect("a decimal type"))
    }

    /// Both ways of one operation, as text: values or the error.
    fn both(
        op: Operator,
        left: Arc<dyn PhysicalExpr>,
        right: Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> (String, String) {
        let datafusion: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(left, op, right));
        let ours = in_64_bits(Arc::clone(&datafusion), &batch.schema())
            .expect("types")
            .data;
        assert_eq!(ours.to_string(), format!("({datafusion})"));
        both_shown(&ours, &datafusion, batch)
    }

    /// What an expression in 64 bits and DataFusion's own have for a batch, as text.
    fn both_shown(
        ours: &Arc<dyn PhysicalExpr>,
        datafusion: &Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) -> (String, String) {
        let shown = |expr: &Arc<dyn PhysicalExpr>| {
            let rows = batch.num_rows();
            let column = expr
                .evaluate(batch)
                .and_then(|value| value.into_array(rows));
            match column {
                Ok(column) => {
                    let announced = expr.data_type(&batch.schema()).expect("a type");
                    assert_eq!(column.data_type(), &announced);
                    format!("{column:?}")
                }
                Err(error) => error.to_string(),
            }
        };
        (shown(ours), shown(datafusion))
    }

    #[test]
    fn equal_datafusions_results_and_errors() {
        for left in [(15, 2), (38, 0), (20, 10), (38, 37)] {
            for right in [(15, 2), (4, 4), (38, 20), (38, 0)] {
                for length in [0, 3, 5, 7, 8] {
                    let values = &VALUES[..length];
                    let reversed: Vec<_> = values.iter().rev().copied().collect();
                    let columns = [column(values, left), column(&reversed, right)];
                    let fields = ["a", "b"].iter().zip(&columns);
                    let fields = fields
                        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
                    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
                    let batch = RecordBatch::try_new(schema, columns.to_vec()).expect("a batch");
                    let a = || Arc::new(Column::new("a", 0)) as Arc<dyn PhysicalExpr>;
                    let b = || Arc::new(Column::new("b", 1)) as Arc<dyn PhysicalExpr>;
                    for op in [Operator::Plus, Operator::Minus, Operator::Multiply] {
                        let (ours, datafusion) = both(op, a(), b(), &batch);
                        assert_eq!(ours, datafusion, "{left:?} {op} {right:?}");
                        for value in VALUES {
                            let value = ScalarValue::Decimal128(value, right.0, right.1);
                            let literal = || Arc::new(Literal::new(value.clone())) as _;
                            let (ours, datafusion) = both(op, a(), literal(), &batch);
                            assert_eq!(ours, datafusion, "{left:?} {op} {value}");
                            let (ours, datafusion) = both(op, literal(), a(), &batch);
                            assert_eq!(ours, datafusion, "{value} {op} {left:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn sums_of_words_and_literals_that_are_multiplied_equal_those_of_datafusion() {
        const ENDS: i64 = 999_999_999_999_999_999;
        let words = |values: [i64; 4], scale| {
            let [a, b, c, d] = values;
            let column = Decimal64Array::from(vec![Some(a), None, Some(b), Some(c), Some(d)]);
            let typed = column.with_precision_and_scale(18, scale);
            Arc::new(typed.expect("a type")) as ArrayRef
        };
        for values in [[0, 1, -250, 99_999], [ENDS, -ENDS, ENDS, 7]] {
            let columns = [words([3, -1, 100, 12_345], 2), words(values, 2)];
            let fields = ["a", "b"].iter().zip(&columns);
            let fields =
                fields.map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let batch = RecordBatch::try_new(schema, columns.to_vec()).expect("a batch");
            let wide = |name, at| {
                let column = Arc::new(Column::new(name, at));
                let wide = DataType::Decimal128(18, 2);
                Arc::new(CastExpr::new(column, wide, None)) as Arc<dyn PhysicalExpr>
            };
            let binary = |left, op, right| {
                Arc::new(BinaryExpr::new(left, op, right)) as Arc<dyn PhysicalExpr>
            };
            for (number, scale) in [(1, 0), (-7, 0), (350, 2), (1, 4), (i128::from(i64::MAX), 2)] {
                for op in [Operator::Plus, Operator::Minus] {
                    let value = ScalarValue::Decimal128(Some(number), 20, scale);
                    let literal = || Arc::new(Literal::new(value.clone())) as Arc<dyn PhysicalExpr>;
                    for sum in [
                        binary(literal(), op, wide("b", 1)),
                        binary(wide("b", 1), op, literal()),
                    ] {
                        let again = || Arc::clone(&sum);
                        for datafusion in [
                            binary(wide("a", 0), Operator::Multiply, again()),
                            binary(again(), Operator::Multiply, again()),
                            binary(wide("a", 0), Operator::Minus, again()),
                        ] {
                            let ours = in_64_bits(Arc::clone(&datafusion), &batch.schema());
                            let ours = ours.expect("types").data;
                            assert!(ours.is::<In64Bits>(), "{datafusion}");
                            let (ours, expected) = both_shown(&ours, &datafusion, &batch);
                            assert_eq!(ours, expected, "{datafusion}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn divisions_equal_those_of_datafusion() {
        let signed = [
            Some(0),
            Some(641),
            None,
            Some(-86_400),
            Some(i64::MIN),
            Some(i64::MAX),
        ];
        let unsigned = [
            Some(0),
            Some(7),
            None,
            Some(86_400),
            Some(1 << 63),
            Some(u64::MAX),
        ];
        let columns: [ArrayRef; 2] = [
            Arc::new(Int64Array::from(signed.to_vec())),
            Arc::new(UInt64Array::from(unsigned.to_vec())),
        ];
        for (column, literals) in columns.iter().zip([
            signed.map(ScalarValue::Int64).to_vec(),
            unsigned.map(ScalarValue::UInt64).to_vec(),
        ]) {
            let schema = Schema::new(vec![Field::new("a", column.data_type().clone(), true)]);
            for length in [0, 2, 4, 6] {
                let column = column.slice(0, length);
                let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![column]);
                let batch = batch.expect("a batch");
                let a = || Arc::new(Column::new("a", 0)) as Arc<dyn PhysicalExpr>;
                for op in [Operator::Divide, Operator::Modulo] {
                    for value in literals.iter().filter(|value| !is_zero_or_null(value)) {
                        let literal = || Arc::new(Literal::new(value.clone())) as _;
                        let (ours, datafusion) = both(op, a(), literal(), &batch);
                        assert_eq!(ours, datafusion, "{op} {value}");
                        let (ours, datafusion) = both(op, literal(), literal(), &batch);
                        assert_eq!(ours, datafusion, "{value} {op} {value}");
                    }
                }
            }
            for (value, to) in [
                (7, DataType::Int8),
                (10_000, DataType::UInt16),
                (40_000, DataType::Int16),
                (1, DataType::UInt32),
            ] {
                let value = ScalarValue::Int64(Some(value)).cast_to(column.data_type());
                let literal = Arc::new(Literal::new(value.expect("a literal")));
                let a = Arc::new(Column::new("a", 0));
                let remainder = Arc::new(BinaryExpr::new(a, Operator::Modulo, literal));
                let datafusion: Arc<dyn PhysicalExpr> =
                    Arc::new(CastExpr::new(remainder, to.clone(), None));
                let ours = in_64_bits(Arc::clone(&datafusion), &schema)
                    .expect("types")
                    .data;
                let has_room =
                    !to.is_unsigned_integer() || column.data_type().is_unsigned_integer();
                assert_eq!(
                    ours.is::<In64Bits>(),
                    has_room && to != DataType::Int16,
                    "{datafusion}"
                );
                let batch =
                    RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::clone(column)]);
                let batch = batch.expect("a batch").slice(1, 4);
                let shown = |expr: &Arc<dyn PhysicalExpr>| {
                    let column = expr.evaluate(&batch).and_then(|value| value.into_array(4));
                    column
                        .map(|column| format!("{column:?}"))
                        .map_err(|error| error.to_string())
                };
                assert_eq!(shown(&ours), shown(&datafusion), "{datafusion}");
            }
            let stays = |right: ScalarValue| {
                let right = Arc::new(Literal::new(right));
                let left = Arc::new(Column::new("a", 0));
                let datafusion: Arc<dyn PhysicalExpr> =
                    Arc::new(BinaryExpr::new(left, Operator::Modulo, right));
                !in_64_bits(datafusion, &schema).expect("types").transformed
            };
            assert!(
                literals
                    .iter()
                    .filter(|value| is_zero_or_null(value))
                    .cloned()
                    .all(stays)
            );
            assert!(stays(ScalarValue::Int64(Some(-1))));
        }
    }

    fn is_zero_or_null(value: &ScalarValue) -> bool {
        value.is_null()
            || matches!(
                value,
                ScalarValue::Int64(Some(0)) | ScalarValue::UInt64(Some(0))
            )
    }

    #[test]
    fn choices_equal_those_of_datafusion() {
        let number = |rows: &[Option<i64>]| Arc::new(Int64Array::from(rows.repeat(40))) as ArrayRef;
        let booleans =
            |rows: &[Option<bool>]| Arc::new(BooleanArray::from(rows.repeat(40))) as ArrayRef;
        let conditions = [
            booleans(&[Some(true), None, Some(false), Some(true), Some(false)]),
            booleans(&[
                Some(true),
                Some(false),
                Some(false),
                Some(true),
                Some(false),
            ]),
        ];
        let a = number(&[Some(1), Some(2), None, Some(4), Some(5)]);
        let b = number(&[None, Some(20), Some(30), None, Some(50)]);
        let types = [
            DataType::Int64,
            DataType::Int8,
            DataType::Int16,
            DataType::Float32,
            DataType::Decimal128(20, 0),
        ];
        for (data_type, condition) in types
            .iter()
            .flat_map(|of| conditions.iter().map(move |p| (of, p)))
        {
            let columns = [
                Arc::clone(condition),
                cast(&a, data_type).expect("a"),
                cast(&b, data_type).expect("b"),
            ];
            let fields = ["p", "a", "b"].iter().zip(&columns);
            let fields =
                fields.map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let batch = RecordBatch::try_new(schema, columns.to_vec()).expect("a batch");
            let seven = ScalarValue::Int64(Some(7))
                .cast_to(data_type)
                .expect("a seven");
            let at = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
            let literal = || Arc::new(Literal::new(seven.clone())) as Arc<dyn PhysicalExpr>;
            let sides = [
                (at("a", 1), at("b", 2)),
                (at("b", 2), literal()),
                (literal(), at("a", 1)),
                (literal(), literal()),
            ];
            for (then, otherwise) in sides {
                eager_case_equals_that_of_datafusion(then, otherwise, &batch);
            }
            if *data_type == DataType::Int16 {
                let wide = Arc::new(CastExpr::new(at("a", 1), DataType::Int64, None));
                let literal = Arc::new(Literal::new(ScalarValue::Int64(Some(1 << 40))));
                eager_case_equals_that_of_datafusion(wide, literal, &batch);
            }
        }
    }

    fn eager_case_equals_that_of_datafusion(
        then: Arc<dyn PhysicalExpr>,
        otherwise: Arc<dyn PhysicalExpr>,
        batch: &RecordBatch,
    ) {
        let is_ours = !then.is::<Literal>() || !otherwise.is::<Literal>();
        let condition = Arc::new(Column::new("p", 0));
        let datafusion = CaseExpr::try_new(None, vec![(condition, then)], Some(otherwise));
        let datafusion: Arc<dyn PhysicalExpr> = Arc::new(datafusion.expect("a case"));
        let ours = in_64_bits(Arc::clone(&datafusion), &batch.schema()).expect("types");
        assert_eq!(ours.transformed, is_ours, "{datafusion}");
        assert_eq!(ours.data.to_string(), datafusion.to_string());
        for length in [0, 1, 63, 64, 65, 190] {
            let batch = batch.slice(3, length);
            let shown = |expr: &Arc<dyn PhysicalExpr>| {
                let value = expr.evaluate(&batch).expect("a value");
                format!("{:?}", value.into_array(length).expect("a column"))
            };
            assert_eq!(
                shown(&ours.data),
                shown(&datafusion),
                "{datafusion} {length}"
            );
        }
    }

    #[test]
    fn brackets_stay_and_a_long_sum_is_planned_in_good_time() {
        let schema = Schema::new(vec![Field::new("a", DataType::Decimal128(15, 2), true)]);
        let a = || Arc::new(Column::new("a", 0)) as Arc<dyn PhysicalExpr>;
        let binary =
            |left, op, right| Arc::new(BinaryExpr::new(left, op, right)) as Arc<dyn PhysicalExpr>;
        let nested = binary(a(), Operator::Multiply, binary(a(), Operator::Minus, a()));
        let quotient = binary(nested, Operator::Divide, a());
        let quotient = in_64_bits(quotient, &schema).expect("types").data;
        assert_eq!(quotient.to_string(), "(a@0 * (a@0 - a@0)) / a@0");
        let mut sum = a();
        for _ in 0..500 {
            sum = binary(sum, Operator::Plus, a());
        }
        assert!(
            in_64_bits(sum, &schema)
                .expect("types")
                .data
                .is::<In64Bits>()
        );
    }

    #[test]
    fn integers_are_summed_as_they_are() {
        use DataType::{Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
        let reads_column = |of: &DataType, to: &DataType| {
            let schema = Schema::new(vec![Field::new("x", of.clone(), true)]);
            let column = Arc::new(Column::new("x", 0));
            let cast: Arc<dyn PhysicalExpr> = Arc::new(CastExpr::new(column, to.clone(), None));
            as_they_are(&cast, &schema).expect("types").is::<Column>()
        };
        for (of, to) in [
            (Int8, Int64),
            (Int16, Int64),
            (Int32, Int64),
            (UInt8, UInt64),
            (UInt16, UInt64),
            (UInt32, UInt64),
        ] {
            assert!(reads_column(&of, &to), "{of} {to}");
        }
        for (of, to) in [
            (Int64, UInt64),
            (UInt32, Int64),
            (Int32, UInt64),
            (Int16, Int32),
            (Int32, Float64),
        ] {
            assert!(!reads_column(&of, &to), "{of} {to}");
        }
    }

    #[test]
    fn choices_of_integers_are_summed_as_they_are() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(-300)]));
        let columns = [
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])) as ArrayRef,
            cast(&column, &DataType::Int16).expect("a"),
            cast(&column, &DataType::Int32).expect("b"),
        ];
        let fields = ["p", "a", "b"].iter().zip(&columns);
        let fields =
            fields.map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, columns.to_vec()).expect("a batch");
        let at = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
        let wide = |column| {
            Arc::new(CastExpr::new(column, DataType::Int64, None)) as Arc<dyn PhysicalExpr>
        };
        let literal = |value| {
            let value = ScalarValue::Int64(Some(value));
            Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>
        };
        let (a, b) = (|| wide(at("a", 1)), || wide(at("b", 2)));
        for (then, otherwise, read) in [
            (a(), literal(0), DataType::Int16),
            (literal(-32_768), a(), DataType::Int16),
            (a(), a(), DataType::Int16),
            (literal(40_000), b(), DataType::Int32),
            (a(), literal(40_000), DataType::Int64),
            (a(), b(), DataType::Int64),
        ] {
            let branches = vec![(at("p", 0), then)];
            let datafusion = CaseExpr::try_new(None, branches, Some(otherwise)).expect("a case");
            let ours = in_64_bits(Arc::new(datafusion), &batch.schema()).expect("types");
            let narrow = as_they_are(&ours.data, &batch.schema()).expect("types");
            let value = |expr: &Arc<dyn PhysicalExpr>| {
                let value = expr.evaluate(&batch).expect("a value");
                value.into_array(batch.num_rows()).expect("a column")
            };
            assert_eq!(value(&narrow).data_type(), &read, "{narrow}");
            let sums = cast(&value(&narrow), &DataType::Int64).expect("wider ones");
            assert_eq!(&sums, &value(&ours.data), "{narrow}");
            assert!(narrow.is::<In64Bits>());
        }
    }
}
