//! `+`, `-` and `*` of decimals whose values fit 64 bits, which is nearly all there are.
//!
//! In: a physical plan for our operator. Out: the same plan; in projections, aggregations and sorts such an operation of
//! two DECIMALs of up to 38 digits looks at its values first, and computes them in words where they allow it.
//! Invariant: types, names, NULLs and errors are the host's: whatever does not fit is computed by it. In EXPLAIN the
//! operation stands in brackets, whatever is around it.
//! Not here: the loops (`grouse_kernels::narrow`); predicates, which scans prune by their form; divisions; plans for the
//! host's operator.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, RecordBatch};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL128_MAX_SCALE, DataType, Decimal128Type, FieldRef, Schema,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr_common::datum::apply;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use grouse_kernels::narrow::{Side, product, sum};

use crate::options::{GroupByOperator, SessionOptions};
use crate::rewrite::node_expressions::exchanged;

/// Powers of ten that fit a word.
const EXPONENT_MAX: i8 = 18;

/// The rule.
#[derive(Debug)]
pub(crate) struct NarrowDecimals;

impl PhysicalOptimizerRule for NarrowDecimals {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if SessionOptions::of(config).group_by_operator == GroupByOperator::Host {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let is_reached = node.is::<ProjectionExec>()
                || node.is::<AggregateExec>()
                // Orders are compared with the others' expressions.
                || node.is::<SortExec>();
            match is_reached {
                true => exchanged(node, narrowed),
                false => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "narrow_decimals"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn narrowed(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        Ok(match Narrow::of(&expr, schema) {
            Some(narrow) => Transformed::yes(Arc::new(narrow)),
            None => Transformed::no(expr),
        })
    })
}

/// An operation of the host's and the way around it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Narrow {
    host: BinaryExpr,
}

impl Narrow {
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Narrow> {
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let known = matches!(
            binary.op(),
            Operator::Plus | Operator::Minus | Operator::Multiply
        );
        // A long sum has its parts on the left: asked for its type, each would ask all of them.
        let is_decimal = |side: &Arc<dyn PhysicalExpr>| {
            side.is::<Narrow>() || matches!(side.data_type(schema), Ok(DataType::Decimal128(..)))
        };
        if !known || !is_decimal(binary.right()) || !is_decimal(binary.left()) {
            return None;
        }
        Some(Narrow {
            host: binary.clone(),
        })
    }

    /// The result in words; `None` where the host has to compute it.
    fn computed(&self, left: &ColumnarValue, right: &ColumnarValue) -> Result<Option<ArrayRef>> {
        let (Some(a), Some(b)) = (Decimals::of(left), Decimals::of(right)) else {
            return Ok(None);
        };
        let Some((precision, scale)) = result_type(*self.host.op(), &a, &b) else {
            return Ok(None);
        };
        let power = |of: &Decimals<'_>| 10i64.pow(u32::from((scale - of.scale).unsigned_abs()));
        let values = match self.host.op() {
            Operator::Multiply => product(a.values, b.values),
            Operator::Plus => sum(a.values, power(&a), b.values, power(&b)),
            Operator::Minus => sum(a.values, power(&a), b.values, -power(&b)),
            _ => None,
        };
        let Some(values) = values else {
            return Ok(None);
        };
        let nulls = NullBuffer::union(a.nulls, b.nulls);
        let column = Decimal128Array::new(values.into(), nulls);
        let column = column.with_precision_and_scale(precision, scale)?;
        Ok(Some(Arc::new(column)))
    }
}

/// One side of an operation.
struct Decimals<'a> {
    values: Side<'a>,
    nulls: Option<&'a NullBuffer>,
    precision: u8,
    scale: i8,
}

impl<'a> Decimals<'a> {
    fn of(side: &'a ColumnarValue) -> Option<Self> {
        match side {
            ColumnarValue::Array(column) => {
                let column = column.as_primitive_opt::<Decimal128Type>()?;
                Some(Self {
                    values: Side::Column(column.values()),
                    nulls: column.nulls(),
                    precision: column.precision(),
                    scale: column.scale(),
                })
            }
            ColumnarValue::Scalar(ScalarValue::Decimal128(Some(value), precision, scale)) => {
                Some(Self {
                    values: Side::Value(*value),
                    nulls: None,
                    precision: *precision,
                    scale: *scale,
                })
            }
            ColumnarValue::Scalar(_) => None,
        }
    }
}

/// Precision and scale as the host's kernels have them; `None` where they would fail, or scale by more than a word.
fn result_type(op: Operator, a: &Decimals<'_>, b: &Decimals<'_>) -> Option<(u8, i8)> {
    let capped = |digits: i16| u8::try_from(digits.min(DECIMAL128_MAX_PRECISION.into())).ok();
    if op == Operator::Multiply {
        let scale = a.scale.checked_add(b.scale);
        let scale = scale.filter(|scale| *scale <= DECIMAL128_MAX_SCALE)?;
        let precision = capped(i16::from(a.precision) + i16::from(b.precision) + 1)?;
        return Some((precision, scale));
    }
    let scale = a.scale.max(b.scale);
    let fits = |of: &Decimals<'_>| of.scale >= 0 && scale - of.scale <= EXPONENT_MAX;
    let whole = |of: &Decimals<'_>| i16::from(of.precision) - i16::from(of.scale);
    let precision = capped(whole(a).max(whole(b)) + i16::from(scale) + 1)?;
    (fits(a) && fits(b)).then_some((precision, scale))
}

impl fmt::Display for Narrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The host puts none around what it does not know.
        write!(f, "({})", self.host)
    }
}

impl PhysicalExpr for Narrow {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.host.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.host.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.host.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let left = self.host.left().evaluate(batch)?;
        let right = self.host.right().evaluate(batch)?;
        if let Some(column) = self.computed(&left, &right)? {
            return Ok(ColumnarValue::Array(column));
        }
        match self.host.op() {
            Operator::Plus => apply(&left, &right, add),
            Operator::Minus => apply(&left, &right, sub),
            Operator::Multiply => apply(&left, &right, mul),
            other => internal_err!("{other} is no operation of narrow decimals"),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.host.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let host = Arc::new(self.host.clone()).with_new_children(children)?;
        match host.downcast_ref::<BinaryExpr>() {
            Some(host) => Ok(Arc::new(Narrow { host: host.clone() })),
            None => Ok(host),
        }
    }

    fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties> {
        self.host.get_properties(children)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(")?;
        self.host.fmt_sql(f)?;
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{Column, Literal};

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
        let host: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(left, op, right));
        let ours = narrowed(Arc::clone(&host), &batch.schema())
            .expect("types")
            .data;
        assert_eq!(ours.to_string(), format!("({host})"));
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
        (shown(&ours), shown(&host))
    }

    #[test]
    fn equal_the_hosts_results_and_errors() {
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
                        let (ours, host) = both(op, a(), b(), &batch);
                        assert_eq!(ours, host, "{left:?} {op} {right:?}");
                        for value in VALUES {
                            let value = ScalarValue::Decimal128(value, right.0, right.1);
                            let literal = || Arc::new(Literal::new(value.clone())) as _;
                            let (ours, host) = both(op, a(), literal(), &batch);
                            assert_eq!(ours, host, "{left:?} {op} {value}");
                            let (ours, host) = both(op, literal(), a(), &batch);
                            assert_eq!(ours, host, "{value} {op} {left:?}");
                        }
                    }
                }
            }
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
        let quotient = narrowed(quotient, &schema).expect("types").data;
        assert_eq!(quotient.to_string(), "(a@0 * (a@0 - a@0)) / a@0");
        let mut sum = a();
        for _ in 0..500 {
            sum = binary(sum, Operator::Plus, a());
        }
        assert!(narrowed(sum, &schema).expect("types").data.is::<Narrow>());
    }
}
