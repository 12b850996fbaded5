//! LIKE that asks for a word: one pass over neighbouring texts instead of one per text.
//!
//! In: a finished physical plan. Out: the same plan, in whose filters `text LIKE '%word%'` and its NOT
//! search views of texts as they lie in memory.
//! Invariant: types, NULLs and results are the host's, which also computes all that are no views of texts.
//! Not here: the search (kernels, `word`); patterns with more than one word, `_` or an escape, and ILIKE; plans for the
//! host's operator.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringViewArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::ColumnarValue;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{LikeExpr, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use grouse_kernels::word::Word;

use crate::functions::text_views;
use crate::options::{GroupByOperator, SessionOptions};
use crate::rewrite::node_expressions::exchanged;

/// The rule.
#[derive(Debug)]
pub(crate) struct WordSearch;

impl PhysicalOptimizerRule for WordSearch {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if SessionOptions::of(config).group_by_operator == GroupByOperator::Host {
            return Ok(plan);
        }
        plan.transform_up(|node| match node.downcast_ref::<DataSourceExec>() {
            Some(scan) => Ok(match in_scan(scan)? {
                Some(scan) => Transformed::yes(scan),
                None => Transformed::no(node),
            }),
            None if node.is::<FilterExec>() => exchanged(node, &searching),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "word_search"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A scan that itself holds rows against its predicate.
fn in_scan(scan: &DataSourceExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some((config, source)) = scan.downcast_to_file_source::<ParquetSource>() else {
        return Ok(None);
    };
    let is_filter = source.table_parquet_options().global.pushdown_filters;
    let Some(predicate) = source.filter().filter(|_| is_filter) else {
        return Ok(None);
    };
    let predicate = searching(predicate, source.table_schema().table_schema())?;
    if !predicate.transformed {
        return Ok(None);
    }
    let source = Arc::new(source.with_predicate(predicate.data));
    let config = FileScanConfigBuilder::from(config.clone()).with_source(source);
    Ok(Some(DataSourceExec::from_data_source(config.build())))
}

fn searching(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        // What comes as codes is searched once per value, what a function makes may be no views.
        let is_view =
            |like: &LikeExpr| matches!(like.expr().data_type(schema), Ok(DataType::Utf8View));
        let like = expr.downcast_ref::<LikeExpr>();
        let word = like.filter(|like| is_view(like)).and_then(word_of);
        Ok(match word {
            Some(word) => Transformed::yes(Arc::new(HasWord { host: expr, word })),
            None => Transformed::no(expr),
        })
    })
}

/// The word of `text LIKE '%word%'`, or of its NOT.
fn word_of(like: &LikeExpr) -> Option<Word> {
    let pattern = like.pattern().downcast_ref::<Literal>()?;
    let pattern = pattern.value().try_as_str()??;
    let word = pattern.strip_prefix('%')?.strip_suffix('%')?;
    let is_plain = !word.is_empty() && !word.contains(['%', '_', '\\']);
    (is_plain && !like.case_insensitive()).then(|| Word::new(word.as_bytes()))
}

/// A LIKE of the host's and its word.
#[derive(Debug)]
struct HasWord {
    host: Arc<dyn PhysicalExpr>,
    word: Word,
}

/// The word follows from the expression.
impl PartialEq for HasWord {
    fn eq(&self, other: &HasWord) -> bool {
        self.host.eq(&other.host)
    }
}

impl Eq for HasWord {}

impl Hash for HasWord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.host.hash(state);
    }
}

impl HasWord {
    /// True of texts that have the word.
    fn found_in(&self, texts: &StringViewArray) -> BooleanBuffer {
        let (views, buffers) = text_views(texts);
        self.word.in_views(&views, &buffers).into()
    }
}

impl fmt::Display for HasWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(f)
    }
}

impl PhysicalExpr for HasWord {
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
        if let Some(like) = self.host.downcast_ref::<LikeExpr>()
            && let ColumnarValue::Array(texts) = like.expr().evaluate(batch)?
            && let Some(texts) = texts.as_string_view_opt()
        {
            let found = self.found_in(texts);
            let wanted = if like.negated() { !&found } else { found };
            let wanted = BooleanArray::new(wanted, texts.nulls().cloned());
            return Ok(ColumnarValue::Array(Arc::new(wanted)));
        }
        self.host.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.host.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let host = Arc::clone(&self.host).with_new_children(children)?;
        Ok(match host.downcast_ref::<LikeExpr>().and_then(word_of) {
            Some(word) => Arc::new(HasWord { host, word }),
            None => host,
        })
    }

    fn get_properties(&self, children: &[ExprProperties]) -> Result<ExprProperties> {
        self.host.get_properties(children)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, StringArray};
    use datafusion::common::ScalarValue;
    use datafusion::physical_expr::expressions::{col, like, lit};

    use super::*;

    const TEXTS: [Option<&str>; 9] = [
        Some(""),
        None,
        Some("word"),
        Some("wor d"),
        Some("a text with the word in it"),
        Some("a text that ends with a wor"),
        Some("d begins this one, which follows it in memory"),
        Some("WORD, in capitals that are others"),
        Some("one word, and another word, in a text of 64 characters or more"),
    ];

    #[test]
    fn equals_the_hosts() {
        let texts: Vec<_> = TEXTS.iter().cycle().take(100).copied().collect();
        let views: ArrayRef = Arc::new(StringViewArray::from(texts.clone()));
        let flat: ArrayRef = Arc::new(StringArray::from(texts));
        for column in [
            Arc::clone(&views),
            views.slice(4, 50),
            views.slice(2, 0),
            flat,
        ] {
            let batch = RecordBatch::try_from_iter_with_nullable([("t", column, true)]).unwrap();
            let schema = batch.schema();
            for (pattern, negated, is_word) in [
                ("%word%", false, true),
                ("%word%", true, true),
                ("%wor%d%", false, false),
                ("%%", false, false),
                ("%w_rd%", false, false),
                ("word%", false, false),
            ] {
                let text = col("t", &schema).unwrap();
                let column_type = text.data_type(&schema).unwrap();
                let pattern = match column_type {
                    DataType::Utf8View => ScalarValue::Utf8View(Some(pattern.into())),
                    _ => ScalarValue::from(pattern),
                };
                let host = like(negated, false, text, lit(pattern), &schema).unwrap();
                let ours = searching(Arc::clone(&host), &schema).unwrap();
                let is_view = column_type == DataType::Utf8View;
                assert_eq!(ours.transformed, is_word && is_view, "{host}");
                let rows = |expr: &Arc<dyn PhysicalExpr>| {
                    let value = expr.evaluate(&batch).unwrap();
                    value.into_array(batch.num_rows()).unwrap()
                };
                assert_eq!(&rows(&ours.data), &rows(&host), "{host}");
            }
        }
    }
}
