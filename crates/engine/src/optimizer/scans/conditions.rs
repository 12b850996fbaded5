//! Conditions as the condition cache knows them: strings that say all that their value of a row depends on.
//!
//! In: a filter directly above a Parquet scan, and the scan's own predicate. Out: the parts of their conjunction, written over
//! columns of the files.
//! Invariant: two conditions with one text are the same for each row of each version of a file. So a text has the types of
//! columns and literals, and only operations whose value is a matter of their operands alone. There is no function (it may be
//! volatile or a user's, and some depend on the session's time zone), no cast and no parameter. Nothing can fail and nothing
//! changes while a query runs.
//! Not here: what is known of them (scan/parquet/condition_cache.rs).

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource, ParquetSource};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_plan::filter::FilterExec;

use crate::scan::parquet::condition_cache::Conjunction;

/// A longer text is a long list, which nobody writes twice.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// The conditions of a scan.
pub(super) struct ScanConditions {
    pub all: Conjunction,
    /// False if there are others, which have no text.
    pub are_all: bool,
}

impl ScanConditions {
    /// Those of a scan and the filter directly above it; none if no part has a text.
    pub fn of(
        filter: &FilterExec,
        config: &FileScanConfig,
        source: &ParquetSource,
    ) -> Option<ScanConditions> {
        // Whoever adapts columns in his own way may compute anything.
        if config.expr_adapter_factory.is_some() {
            return None;
        }
        let table = source.table_schema();
        let files = table.file_schema();
        let projection = source.projection();
        let above = |column: &Column| match projection {
            Some(projection) => {
                let expr = &projection.as_ref().get(column.index())?.expr;
                column_text(expr.downcast_ref::<Column>()?.index(), files)
            }
            None => column_text(column.index(), files),
        };
        let within = |column: &Column| column_text(column.index(), files);
        let mut all = BTreeSet::new();
        let mut are_all = true;
        let mut add = |text: Option<String>| match text {
            Some(text) if text.len() <= TEXT_BYTES_MAX => {
                all.insert(text);
            }
            _ => are_all = false,
        };
        for part in split_conjunction(filter.predicate()) {
            add(text_of(part, &above));
        }
        for part in source.filter().iter().flat_map(split_conjunction) {
            add(text_of(part, &within));
        }
        if all.is_empty() {
            return None;
        }
        // These decide what times a file's columns have.
        let options = &source.table_parquet_options().global;
        if let Some(unit) = &options.coerce_int96 {
            all.insert(format!("int96 {unit:?} {:?}", options.coerce_int96_tz));
        }
        Some(ScanConditions {
            all: all.into_iter().collect::<Vec<_>>().into(),
            are_all,
        })
    }
}

/// A column of the files and what the table makes of it. Columns of folders are none.
fn column_text(at: usize, files: &Schema) -> Option<String> {
    let field = files.fields().get(at)?;
    Some(format!("{:?}:{}", field.name(), field.data_type()))
}

/// What `column` writes of columns is unambiguous.
fn text_of(
    expr: &Arc<dyn PhysicalExpr>,
    column: &dyn Fn(&Column) -> Option<String>,
) -> Option<String> {
    let text = |of: &Arc<dyn PhysicalExpr>| text_of(of, column);
    if let Some(of) = expr.downcast_ref::<Column>() {
        return column(of);
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return literal_text(literal.value());
    }
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        let op = binary.op();
        let (left, right) = (text(binary.left())?, text(binary.right())?);
        return is_plain(*op).then(|| format!("({left} {op} {right})"));
    }
    if let Some(not) = expr.downcast_ref::<NotExpr>() {
        return Some(format!("(not {})", text(not.arg())?));
    }
    if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
        return Some(format!("(null {})", text(is_null.arg())?));
    }
    if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>() {
        return Some(format!("(not null {})", text(is_not_null.arg())?));
    }
    if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        let (negated, any_case) = (like.negated(), like.case_insensitive());
        let pattern = like.pattern().downcast_ref::<Literal>()?;
        let (of, pattern) = (text(like.expr())?, literal_text(pattern.value())?);
        return Some(format!("(like {negated} {any_case} {of} {pattern})"));
    }
    let list = expr.downcast_ref::<InListExpr>()?;
    let literals = list.list().iter();
    let literals = literals.map(|of| literal_text(of.downcast_ref::<Literal>()?.value()));
    let literals = literals.collect::<Option<Vec<_>>>()?;
    let of = text(list.expr())?;
    let negated = list.negated();
    (!literals.is_empty()).then(|| format!("(in {negated} {of} {})", literals.join(" ")))
}

/// True of operations that have a value for all values and are a matter of these alone.
fn is_plain(op: Operator) -> bool {
    use Operator as O;
    matches!(
        op,
        O::Eq
            | O::NotEq
            | O::Lt
            | O::LtEq
            | O::Gt
            | O::GtEq
            | O::IsDistinctFrom
            | O::IsNotDistinctFrom
            | O::And
            | O::Or
    )
}

/// A literal of a type whose values are written exactly.
fn literal_text(value: &ScalarValue) -> Option<String> {
    let of = value.data_type();
    let is_exact = of.is_integer()
        || of.is_floating()
        || of == DataType::Boolean
        || matches!(
            of,
            DataType::Date32 | DataType::Timestamp(..) | DataType::Decimal128(..)
        );
    match value.try_as_str() {
        Some(text) => Some(format!("{text:?}:{of}")),
        // NaN is written without its sign, which decides how it compares.
        None => {
            let text = is_exact.then(|| format!("{value:?}:{of}"));
            text.filter(|text| !text.contains("NaN"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{binary, cast, col, in_list, like, lit};

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("a", DataType::Utf8, true),
            Field::new("b", DataType::Int64, true),
        ])
    }

    fn text(expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
        text_of(expr, &|column| column_text(column.index(), &schema()))
    }

    fn compared(op: Operator, value: ScalarValue) -> Arc<dyn PhysicalExpr> {
        let column = if value.data_type().is_string() {
            "a"
        } else {
            "b"
        };
        binary(col(column, &schema()).unwrap(), op, lit(value), &schema()).unwrap()
    }

    #[test]
    fn strings_tell_columns_types_values_and_operations_apart() {
        let a = || col("a", &schema()).unwrap();
        let named = |name| Arc::new(Column::new(name, 0)) as Arc<dyn PhysicalExpr>;
        let like = |negated, pattern| like(negated, false, a(), lit(pattern), &schema()).unwrap();
        let all = [
            compared(Operator::Eq, ScalarValue::from(1i64)),
            compared(Operator::Eq, ScalarValue::from(2i64)),
            compared(Operator::Gt, ScalarValue::from(1i64)),
            compared(Operator::Eq, ScalarValue::Int64(None)),
            compared(Operator::Eq, ScalarValue::from("1")),
            compared(Operator::Eq, ScalarValue::from("1\":Utf8) = (")),
            compared(Operator::Eq, ScalarValue::Utf8(None)),
            like(false, "1"),
            like(true, "1"),
            in_list(a(), vec![lit("1")], &false, &schema()).unwrap(),
            in_list(a(), vec![lit("1"), lit("2")], &false, &schema()).unwrap(),
            in_list(a(), vec![lit("1 2")], &true, &schema()).unwrap(),
        ];
        let strings: BTreeSet<_> = all.iter().map(|expr| text(expr).unwrap()).collect();
        assert_eq!(strings.len(), all.len(), "{strings:?}");
        // A column is where it is in the file's schema, whatever a projection calls it.
        assert_eq!(text(&named("a")), text(&named("x")));
    }

    #[test]
    fn what_can_fail_or_depends_on_more_has_no_text() {
        let sum = binary(
            col("b", &schema()).unwrap(),
            Operator::Plus,
            lit(1i64),
            &schema(),
        );
        assert_eq!(text(&sum.unwrap()), None);
        let cast = cast(col("b", &schema()).unwrap(), &schema(), DataType::Int8);
        assert_eq!(text(&cast.unwrap()), None);
        let bytes = lit(ScalarValue::Binary(Some(vec![1; 100])));
        assert_eq!(text(&bytes), None);
        assert_eq!(text(&lit(-f64::NAN)), None);
        assert_eq!(column_text(2, &schema()), None);
    }
}
