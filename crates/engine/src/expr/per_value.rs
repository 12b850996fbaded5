//! Expressions over a column of codes, computed once per value instead of once per row.
//!
//! In: an expression that reads one column, which the scan hands out as codes of its dictionaries. Out: a value per row, or
//! where the reader takes codes the same codes with other values.
//! Invariant: results and errors are those of DataFusion: where values do not go through, the rows do, or their error stands.
//! Not here: which columns come as codes (optimizer/scans/codes.rs).

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, RecordBatch, RecordBatchOptions,
    UInt32Array, new_null_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::compute::{cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt32Type};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, Volatility};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use grouse_groupby::keys::is_bytes;
use grouse_groupby::keys::same_dictionary;
use grouse_kernels::lookup::bits;
use parking_lot::Mutex;

use crate::expr::columns::dictionary;
use crate::expr::plan_expressions::with_columns;

/// Each worker reads one dictionary at a time. More workers than this compute values more than once.
const DICTIONARIES_MAX: usize = 64;

/// Who reads a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reader {
    /// Wants a value in each row.
    Rows,
    /// Takes texts as codes.
    Codes,
}

/// `expr` with whatever it computes of one of the `coded` columns computed once per value.
pub(crate) fn per_value(
    expr: Arc<dyn PhysicalExpr>,
    schema: &Schema,
    coded: &[usize],
    reader: Reader,
) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let root = Arc::clone(&expr);
    expr.transform_down(|part| {
        let Some(column) = computed_from(&part).filter(|of| coded.contains(&of.index())) else {
            return Ok(Transformed::no(part));
        };
        let reader = match Arc::ptr_eq(&part, &root) {
            true => reader,
            false => Reader::Rows,
        };
        let part = PerValue::new(&part, &column, schema, reader)?;
        let part: Arc<dyn PhysicalExpr> = Arc::new(part);
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
    expr.is::<PerValue>()
}

/// A part of an expression that reads one column of codes.
#[derive(Debug)]
struct PerValue {
    column: Arc<dyn PhysicalExpr>,
    /// What is computed, over the one column of `plain`.
    body: Arc<dyn PhysicalExpr>,
    /// The column without codes, as DataFusion has planned the body.
    plain: SchemaRef,
    /// What DataFusion expects of it.
    result: FieldRef,
    reader: Reader,
    known: Mutex<VecDeque<Known>>,
}

/// A dictionary that was computed once.
#[derive(Debug)]
struct Known {
    dictionary: ArrayRef,
    /// True if NULL was computed behind its values.
    with_null: bool,
    /// None if a value failed.
    results: Option<ArrayRef>,
}

/// Where each row of a batch finds its result.
struct Found {
    results: ArrayRef,
    codes: UInt32Array,
    /// True if these are the column's own codes.
    is_own: bool,
}

impl PerValue {
    fn new(
        expr: &Arc<dyn PhysicalExpr>,
        column: &Column,
        schema: &Schema,
        reader: Reader,
    ) -> Result<PerValue> {
        let alone: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), 0));
        let field = schema.field(column.index()).clone().with_nullable(true);
        let plain = Arc::new(Schema::new(vec![field]));
        let body = with_columns(Arc::clone(expr), |_| Arc::clone(&alone))?;
        let result = expr.return_field(schema)?;
        let reader = match is_bytes(result.data_type()) {
            true => reader,
            false => Reader::Rows,
        };
        Ok(PerValue {
            column: Arc::new(column.clone()),
            body,
            plain,
            result,
            reader,
            known: Mutex::default(),
        })
    }

    /// The body's results for these values.
    fn results(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let typed = cast(values, self.plain.field(0).data_type())?;
        let rows = RecordBatchOptions::new().with_row_count(Some(typed.len()));
        let schema = Arc::clone(&self.plain);
        let batch = RecordBatch::try_new_with_options(schema, vec![typed], &rows)?;
        self.body.evaluate(&batch)?.into_array(batch.num_rows())
    }

    /// The same as a dictionary's values.
    fn kept(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let results = self.results(values)?;
        Ok(match self.reader {
            Reader::Codes => cast(&results, &as_values(results.data_type()))?,
            Reader::Rows => results,
        })
    }

    fn find(&self, column: &DictionaryArray<UInt32Type>) -> Result<Found> {
        let values = column.values();
        let with_null = column.keys().null_count() > 0;
        let results = match self.known_results(values, with_null) {
            Some(known) => known,
            // A dictionary of which few values are left is not worth it.
            None if values.len() > column.len() => None,
            None => {
                let computed = match with_null {
                    true => concat(&[values, &new_null_array(values.data_type(), 1)])?,
                    false => Arc::clone(values),
                };
                let results = self.kept(&computed).ok();
                self.note(values, with_null, results.clone());
                results
            }
        };
        if let Some(results) = results {
            return Ok(of_all(column, results));
        }
        match self.of_those_in_rows(column) {
            Ok(found) => Ok(found),
            // What DataFusion computes depends on how many rows a condition leaves.
            Err(_) => self.of_each_row(column),
        }
    }

    fn known_results(&self, dictionary: &ArrayRef, with_null: bool) -> Option<Option<ArrayRef>> {
        let known = self.known.lock();
        // Those that are read now are the last that were noted.
        let known = known.iter().rev();
        let mut known = known.filter(|known| known.with_null == with_null);
        let found = known.find(|known| same_dictionary(&known.dictionary, dictionary))?;
        Some(found.results.clone())
    }

    fn note(&self, dictionary: &ArrayRef, with_null: bool, results: Option<ArrayRef>) {
        let mut known = self.known.lock();
        if known.len() == DICTIONARIES_MAX {
            known.pop_front();
        }
        known.push_back(Known {
            dictionary: Arc::clone(dictionary),
            with_null,
            results,
        });
    }

    /// Computes the values that rows have and no other.
    fn of_those_in_rows(&self, column: &DictionaryArray<UInt32Type>) -> Result<Found> {
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
        let results = self.kept(&used)?;
        Ok(Found {
            results,
            codes,
            is_own: false,
        })
    }

    fn of_each_row(&self, column: &DictionaryArray<UInt32Type>) -> Result<Found> {
        let rows = take(column.values(), column.keys(), None)?;
        let results = self.kept(&rows)?;
        let codes = UInt32Array::from_iter_values(0..results.len() as u32);
        Ok(Found {
            results,
            codes,
            is_own: false,
        })
    }

    fn is_codes(&self, schema: &Schema) -> Result<bool> {
        let column = self.column.data_type(schema)?;
        Ok(self.reader == Reader::Codes && matches!(column, DataType::Dictionary(..)))
    }

    /// The expression as it was.
    fn whole(&self) -> Result<Arc<dyn PhysicalExpr>> {
        with_columns(Arc::clone(&self.body), |_| Arc::clone(&self.column))
    }
}

/// Where rows find the results of all values; behind them is that of NULL, if there are such rows.
fn of_all(column: &DictionaryArray<UInt32Type>, results: ArrayRef) -> Found {
    let codes = column.keys();
    let null = column.values().len() as u32;
    let is_own = codes.null_count() == 0;
    let codes = match is_own {
        true => codes.clone(),
        false => UInt32Array::from_iter_values(codes.iter().map(|code| code.unwrap_or(null))),
    };
    Found {
        results,
        codes,
        is_own,
    }
}

/// The results as codes. NULL is one of the codes: DataFusion's casts overlook a NULL that is a value.
fn coded_anew(
    column: &DictionaryArray<UInt32Type>,
    found: Found,
) -> Result<DictionaryArray<UInt32Type>> {
    let Found {
        results,
        codes,
        is_own,
    } = found;
    let nulls = results.logical_nulls();
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        // Codes that are not looked at again take no time.
        None if is_own => Ok(column.with_values(results)),
        None => Ok(DictionaryArray::try_new(codes, results)?),
        Some(nulls) => {
            let codes = codes.values().iter();
            let codes = codes.map(|code| nulls.is_valid(*code as usize).then_some(*code));
            Ok(DictionaryArray::try_new(codes.collect(), results)?)
        }
    }
}

/// The result of each row.
fn by_code(results: &ArrayRef, codes: &UInt32Array) -> Result<ArrayRef> {
    let Some(truths) = results.as_boolean_opt() else {
        return Ok(take(results, codes, None)?);
    };
    // DataFusion's `take` needs three times as long for bits.
    let gathered = |truths: &BooleanBuffer| {
        let truths: Vec<bool> = truths.iter().collect();
        let bits = Buffer::from_vec(bits(codes.values(), &truths));
        BooleanBuffer::new(bits, 0, codes.len())
    };
    let nulls = truths.nulls().filter(|nulls| nulls.null_count() > 0);
    let nulls = nulls.map(|nulls| NullBuffer::new(gathered(nulls.inner())));
    let truths = gathered(truths.values());
    Ok(Arc::new(BooleanArray::new(truths, nulls)))
}

/// The type of texts as DataFusion merges dictionaries of them, where it leaves those of views one behind the other.
fn as_values(texts: &DataType) -> DataType {
    match texts {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    }
}

/// The columns of which an expression computes something once per value.
pub(crate) fn columns_per_value(expr: &Arc<dyn PhysicalExpr>) -> Vec<usize> {
    let mut columns = Vec::new();
    let walked = expr.apply(|part| {
        let column = part.downcast_ref::<PerValue>();
        let column = column.and_then(|part| part.column.downcast_ref::<Column>());
        columns.extend(column.map(Column::index));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or_else(|_| Vec::new(), |_| columns)
}

impl fmt::Display for PerValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.whole().map_err(|_| fmt::Error)?;
        write!(f, "per_value({whole})")
    }
}

impl PartialEq for PerValue {
    fn eq(&self, other: &PerValue) -> bool {
        self.column.as_ref() == other.column.as_ref()
            && self.body.as_ref() == other.body.as_ref()
            && self.plain == other.plain
            && self.reader == other.reader
    }
}

impl Eq for PerValue {}

impl Hash for PerValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.hash(state);
        self.body.hash(state);
        self.plain.hash(state);
        self.reader.hash(state);
    }
}

impl PhysicalExpr for PerValue {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        if !self.is_codes(schema)? {
            return Ok(Arc::clone(&self.result));
        }
        let codes = dictionary(&as_values(self.result.data_type()));
        let result = Field::clone(&self.result);
        Ok(Arc::new(result.with_data_type(codes)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let column = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(coded) = column.as_dictionary_opt::<UInt32Type>() else {
            return Ok(ColumnarValue::Array(self.results(&column)?));
        };
        let found = self.find(coded)?;
        Ok(ColumnarValue::Array(match self.reader {
            Reader::Rows => by_code(&found.results, &found.codes)?,
            Reader::Codes => Arc::new(coded_anew(coded, found)?),
        }))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.column]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let mut children = children.into_iter();
        let column = children.next();
        let column = column.ok_or_else(|| internal_datafusion_err!("{self} reads no column"))?;
        Ok(Arc::new(PerValue {
            column,
            body: Arc::clone(&self.body),
            plain: Arc::clone(&self.plain),
            result: Arc::clone(&self.result),
            reader: self.reader,
            known: Mutex::default(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.whole().map_err(|_| fmt::Error)?;
        whole.fmt_sql(f)
    }
}
