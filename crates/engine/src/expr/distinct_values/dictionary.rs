//! The distinct values of a column that comes as codes: those of its dictionary.
//!
//! In: an expression that reads one column, which the scan hands out as codes of its dictionaries. Out: a value per row, or
//! where the reader takes codes the same codes with other values.
//! Invariant: where values do not go through, the rows do, or their error stands.
//! Not here: which columns come as codes (optimizer/scans/codes.rs).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, UInt32Array, new_null_array,
};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, UInt32Type};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Volatility;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use grouse_groupby::keys::{DictionaryCache, is_bytes};
use parking_lot::Mutex;

use super::{DistinctValues, OverColumn, Spread, ValueSource};
use crate::expr::columns::dictionary;
use crate::expr::plan_expressions::with_columns;
use crate::runtime::per_thread::PerThread;

/// Dictionaries of which each thread knows the results: those of the worker that it runs, and of one more.
const OF_THREAD_MAX: usize = 2;

/// Dictionaries of which all threads know them, since a worker may go on on another one.
const OF_ALL_MAX: usize = 16;

/// Who reads a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ResultReader {
    /// Wants a value in each row.
    Rows,
    /// Takes strings as codes.
    Codes,
}

/// `expr` with whatever it computes of one of the `coded` columns computed once per value.
pub(crate) fn per_value(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
    coded: &[usize],
    reader: ResultReader,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let root = Arc::clone(&expr);
    expr.transform_down(|part| {
        let Some(column) = computed_from(&part).filter(|of| coded.contains(&of.index())) else {
            return Ok(Transformed::no(part));
        };
        let reader = match Arc::ptr_eq(&part, &root) {
            true => reader,
            false => ResultReader::Rows,
        };
        let part: Arc<dyn PhysicalExpr> = Arc::new(of_column(&part, column, schema, reader)?);
        Ok(Transformed::new(part, true, TreeNodeRecursion::Jump))
    })
}

/// True if an expression reads the column only in parts that can be computed once per value.
pub(crate) fn is_per_value(expr: &Arc<dyn PhysicalExpr>, column: usize) -> bool {
    let mut is_read_itself = false;
    let walked = expr.apply(|part| {
        Ok(match part.downcast_ref::<Column>() {
            Some(read) if read.index() == column => {
                is_read_itself = true;
                TreeNodeRecursion::Stop
            }
            _ if computed_from(part).is_some() => TreeNodeRecursion::Jump,
            _ => TreeNodeRecursion::Continue,
        })
    });
    walked.is_ok() && !is_read_itself
}

/// The one column that an expression computes something from, if it always makes the same of the same value.
fn computed_from(expr: &Arc<dyn PhysicalExpr>) -> Option<Column> {
    if expr.is::<Column>() {
        return None;
    }
    let mut only = None;
    let mut is_known = true;
    let walked = expr.apply(|part| {
        if let Some(column) = part.downcast_ref::<Column>() {
            is_known = only.get_or_insert_with(|| column.clone()) == column;
        } else {
            is_known = is_the_same_again(part);
        }
        Ok(match is_known {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    });
    only.filter(|_| walked.is_ok() && is_known)
}

fn is_the_same_again(part: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(function) = part.downcast_ref::<ScalarFunctionExpr>() {
        return function.fun().signature().volatility == Volatility::Immutable;
    }
    part.is::<Literal>()
        || part.is::<BinaryExpr>()
        || part.is::<LikeExpr>()
        || part.is::<InListExpr>()
        || part.is::<IsNullExpr>()
        || part.is::<IsNotNullExpr>()
        || part.is::<NotExpr>()
        || part.is::<NegativeExpr>()
        || part.is::<CastExpr>()
        || part.is::<TryCastExpr>()
        || part.is::<CaseExpr>()
}

/// True of what is computed once per value of a dictionary.
pub(crate) fn is_once_per_value(expr: &Arc<dyn PhysicalExpr>) -> bool {
    column_of(expr).is_some()
}

/// The columns of which an expression computes something once per value.
pub(crate) fn columns_per_value(expr: &Arc<dyn PhysicalExpr>) -> Vec<usize> {
    let mut columns = Vec::new();
    let walked = expr.apply(|part| {
        let column = column_of(part).and_then(|column| column.downcast_ref::<Column>());
        columns.extend(column.map(Column::index));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or_else(|_| Vec::new(), |_| columns)
}

/// What hands out the codes of such an expression.
fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&Arc<dyn PhysicalExpr>> {
    let values = expr.downcast_ref::<DistinctValues>()?;
    matches!(values.source, ValueSource::Dictionary(_)).then(|| &values.inputs[0])
}

/// The results of dictionaries, and those with NULL behind the values.
pub(super) type KnownResults = Arc<[ResultsByDictionary; 2]>;

/// The results of dictionaries; `None` where a value failed.
///
/// They are asked for once per batch. Whoever reads the same dictionary as before asks nobody else.
#[derive(Default)]
pub(super) struct ResultsByDictionary {
    of_thread: PerThread<DictionaryCache<Option<ArrayRef>, OF_THREAD_MAX>>,
    of_all: Mutex<DictionaryCache<Option<ArrayRef>, OF_ALL_MAX>>,
}

impl ResultsByDictionary {
    fn get(&self, dictionary: &ArrayRef) -> Option<Option<ArrayRef>> {
        self.of_thread.with(|own| {
            if let Some(known) = own.get(dictionary) {
                return Some(known.clone());
            }
            let known = self.of_all.lock().get(dictionary).cloned()?;
            own.insert(dictionary, known.clone());
            Some(known)
        })
    }

    fn insert(&self, dictionary: &ArrayRef, results: &Option<ArrayRef>) {
        self.of_all.lock().insert(dictionary, results.clone());
        self.of_thread
            .with(|own| own.insert(dictionary, results.clone()));
    }
}

impl fmt::Debug for ResultsByDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultsByDictionary")
            .finish_non_exhaustive()
    }
}

/// What is computed of a dictionary's values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct DictionaryValues {
    pub body: OverColumn,
    reader: ResultReader,
}

fn of_column(
    expr: &Arc<dyn PhysicalExpr>,
    column: Column,
    schema: &Schema,
    reader: ResultReader,
) -> Result<DistinctValues> {
    let field = schema.field(column.index()).clone();
    let body = |alone| with_columns(Arc::clone(expr), |_| Arc::clone(&alone));
    let body = OverColumn::new(field.with_name(column.name()), body)?;
    let result = expr.return_field(schema)?;
    let reader = match is_bytes(result.data_type()) {
        true => reader,
        false => ResultReader::Rows,
    };
    Ok(DistinctValues {
        inputs: vec![Arc::new(column)],
        source: ValueSource::Dictionary(DictionaryValues { body, reader }),
        result,
    })
}

impl DictionaryValues {
    /// What comes of a column of this type, whose values have such results.
    pub(super) fn field(&self, column: &DataType, result: &FieldRef) -> FieldRef {
        match (self.reader, column) {
            (ResultReader::Codes, DataType::Dictionary(..)) => {
                let codes = dictionary(&as_values(result.data_type()));
                Arc::new(Field::clone(result).with_data_type(codes))
            }
            _ => Arc::clone(result),
        }
    }

    /// What the reader gets of a column.
    pub(super) fn computed(&self, column: &ArrayRef) -> Result<ArrayRef> {
        let Some(coded) = column.as_dictionary_opt::<UInt32Type>() else {
            return self.body.results(column);
        };
        let spread = self.spread(coded)?;
        match self.reader {
            ResultReader::Rows => spread.rows(),
            ResultReader::Codes => spread.coded(),
        }
    }

    /// The results of values, as a dictionary's values if there are to be codes.
    fn results(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let results = self.body.results(values)?;
        Ok(match self.reader {
            ResultReader::Codes => cast(&results, &as_values(results.data_type()))?,
            ResultReader::Rows => results,
        })
    }

    fn spread(&self, column: &DictionaryArray<UInt32Type>) -> Result<Spread> {
        if let Some(results) = self.of_all(column)? {
            return Ok(match column.keys().null_count() {
                0 => Spread::by_codes_of(column, results),
                _ => {
                    let null = column.values().len() as u32;
                    let codes = column.keys().iter().map(|code| code.unwrap_or(null));
                    Spread::new(results, UInt32Array::from_iter_values(codes))
                }
            });
        }
        match self.of_those_in_rows(column) {
            Ok(spread) => Ok(spread),
            // What DataFusion computes depends on how many rows a condition leaves.
            Err(_) => {
                let rows = take(column.values(), column.keys(), None)?;
                Ok(Spread::of_each_row(self.results(&rows)?))
            }
        }
    }

    /// The results of all values, and behind them that of NULL if there are such rows. `None` if one fails, or if they are
    /// more than the rows: a dictionary of which few values are left is not worth it.
    fn of_all(&self, column: &DictionaryArray<UInt32Type>) -> Result<Option<ArrayRef>> {
        let values = column.values();
        let with_null = column.keys().null_count() > 0;
        let cache = &self.body.known[usize::from(with_null)];
        if let Some(known) = cache.get(values) {
            return Ok(known);
        }
        if values.len() > column.len() {
            return Ok(None);
        }
        let computed = match with_null {
            true => concat(&[values, &new_null_array(values.data_type(), 1)])?,
            false => Arc::clone(values),
        };
        let results = self.results(&computed).ok();
        cache.insert(values, &results);
        Ok(results)
    }

    /// Computes the values that rows have and no other.
    fn of_those_in_rows(&self, column: &DictionaryArray<UInt32Type>) -> Result<Spread> {
        let values = column.values();
        let mut places = vec![None; values.len() + 1];
        let mut used = Vec::new();
        let codes = column.keys_iter().map(|code| {
            *places[code.unwrap_or(values.len())].get_or_insert_with(|| {
                used.push(code.map(|code| code as u32));
                used.len() as u32 - 1
            })
        });
        let codes = UInt32Array::from_iter_values(codes);
        let used = take(values, &UInt32Array::from(used), None)?;
        Ok(Spread::new(self.results(&used)?, codes))
    }
}

/// The type of strings as DataFusion merges dictionaries of them, where it leaves those of views one behind the other.
fn as_values(strings: &DataType) -> DataType {
    match strings {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn results_are_known_to_all_threads() {
        let strings = |text: &str| Arc::new(StringArray::from(vec![text; 3])) as ArrayRef;
        let (one, failed, other) = (strings("a"), strings("b"), strings("c"));
        let known = ResultsByDictionary::default();
        known.insert(&one, &Some(Arc::clone(&other)));
        known.insert(&failed, &None);
        let is_known = || {
            // The first time from all, then from the thread's own.
            for _ in 0..2 {
                let results = known.get(&one).flatten();
                assert!(results.is_some_and(|results| Arc::ptr_eq(&results, &other)));
                assert_eq!(known.get(&failed), Some(None));
                assert_eq!(known.get(&other), None);
            }
        };
        is_known();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(is_known);
            }
        });
    }
}
