//! Values computed once per distinct value instead of once per row.
//!
//! In: an expression, then batches. A source says which values of a batch are distinct. It has those of a column's dictionary,
//! the steps of a time, the strings that a batch repeats, or the literals of a CASE. Out: a value per row, or codes and what they
//! stand for.
//! Invariant: results and errors are DataFusion's, whose expression gets the distinct values. What is computed so makes the same
//! of the same value, and no value fails a query that no row of the batch has or encloses.
//! Not here: which columns come as codes (optimizer/scans/codes.rs), functions of regular expressions (functions/patterns.rs).

mod dictionary;
mod hashed;
mod literals;
mod steps;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch,
    UInt32Array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, DataType, Field, FieldRef, Schema, SchemaRef,
    UInt32Type,
};
use datafusion::common::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use grouse_kernels::lookup::bits;

use crate::expr::plan_expressions::with_columns;
use dictionary::{DictionaryValues, KnownResults};
use literals::Literals;
use steps::Steps;

pub(crate) use dictionary::{
    ResultReader, columns_per_value, is_once_per_value, is_per_value, per_value,
};
pub(crate) use hashed::{Hashed, hashed, repeated};
pub(crate) use steps::once_per_step;

/// The key of strings as codes; `None` if it is none whose distinct values are known without looking at rows.
pub(crate) fn coded(
    key: &Arc<dyn PhysicalExpr>,
    data_type: &DataType,
) -> Option<Arc<dyn PhysicalExpr>> {
    literals::coded(key).or_else(|| steps::coded(key, data_type))
}

/// True of a key whose codes are found row by row.
pub(crate) fn is_coded(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.is::<DistinctValues>() && !is_once_per_value(expr)
}

/// Results of distinct values, and the code of each row's.
pub(crate) struct Spread {
    results: ArrayRef,
    codes: UInt32Array,
    /// The column whose own codes these are.
    column: Option<DictionaryArray<UInt32Type>>,
}

impl Spread {
    pub fn new(results: ArrayRef, codes: UInt32Array) -> Spread {
        Spread {
            results,
            codes,
            column: None,
        }
    }

    /// Of rows that have a result each.
    fn of_each_row(results: ArrayRef) -> Spread {
        let codes = UInt32Array::from_iter_values(0..results.len() as u32);
        Spread::new(results, codes)
    }

    fn by_codes_of(column: &DictionaryArray<UInt32Type>, results: ArrayRef) -> Spread {
        Spread {
            column: Some(column.clone()),
            ..Spread::new(results, column.keys().clone())
        }
    }

    /// The result of each row.
    pub fn rows(&self) -> Result<ArrayRef> {
        let booleans = self.results.as_boolean_opt();
        let Some(booleans) = booleans.filter(|_| self.codes.null_count() == 0) else {
            return Ok(take(&self.results, &self.codes, None)?);
        };
        // DataFusion's `take` needs three times as long for bits.
        let gathered = |booleans: &BooleanBuffer| {
            let booleans: Vec<bool> = booleans.iter().collect();
            let bits = Buffer::from_vec(bits(self.codes.values(), &booleans));
            BooleanBuffer::new(bits, 0, self.codes.len())
        };
        let nulls = booleans.nulls().filter(|nulls| nulls.null_count() > 0);
        let nulls = nulls.map(|nulls| NullBuffer::new(gathered(nulls.inner())));
        let values = gathered(booleans.values());
        Ok(Arc::new(BooleanArray::new(values, nulls)))
    }

    /// The codes, with the results as their dictionary.
    pub fn coded(self) -> Result<ArrayRef> {
        match self.column {
            // Codes that are not looked at again take no time.
            Some(column) if self.results.logical_null_count() == 0 => {
                Ok(Arc::new(column.with_values(self.results)))
            }
            _ => with_dictionary(&self.codes, self.results),
        }
    }
}

/// Codes of a dictionary. NULL is one of the codes: DataFusion's casts overlook a NULL that is a value.
fn with_dictionary<K: ArrowDictionaryKeyType>(
    codes: &PrimitiveArray<K>,
    values: ArrayRef,
) -> Result<ArrayRef> {
    let nulls = values.logical_nulls();
    let codes = match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => codes.clone(),
        Some(nulls) => codes.unary_opt(|code| nulls.is_valid(code.as_usize()).then_some(code)),
    };
    Ok(Arc::new(DictionaryArray::try_new(codes, values)?))
}

/// An expression over a column of its own, that column as DataFusion has planned it, and what comes of dictionaries.
#[derive(Debug, Clone)]
struct OverColumn {
    expr: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    known: KnownResults,
}

impl OverColumn {
    /// The expression that is made of a column like `field`.
    fn new(
        field: Field,
        make: impl FnOnce(Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>>,
    ) -> Result<OverColumn> {
        let expr = make(Arc::new(Column::new(field.name(), 0)))?;
        let schema = Arc::new(Schema::new(vec![field.with_nullable(true)]));
        Ok(OverColumn {
            expr,
            schema,
            known: Arc::default(),
        })
    }

    /// The column's type.
    fn takes(&self) -> &DataType {
        self.schema.field(0).data_type()
    }

    /// DataFusion's results of some values.
    fn results(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let column = cast(values, self.takes())?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![column])?;
        self.expr.evaluate(&batch)?.into_array(batch.num_rows())
    }
}

impl PartialEq for OverColumn {
    fn eq(&self, other: &OverColumn) -> bool {
        self.expr.eq(&other.expr) && self.schema == other.schema
    }
}

impl Eq for OverColumn {}

impl Hash for OverColumn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.expr, &self.schema).hash(state);
    }
}

/// An expression of which some source knows the distinct values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DistinctValues {
    inputs: Vec<Arc<dyn PhysicalExpr>>,
    source: ValueSource,
    /// What DataFusion expects of it.
    result: FieldRef,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ValueSource {
    Dictionary(DictionaryValues),
    /// As codes.
    Steps(Steps),
    /// As codes.
    Literals(Literals),
}

impl DistinctValues {
    /// A key's codes.
    fn codes(
        inputs: Vec<Arc<dyn PhysicalExpr>>,
        source: ValueSource,
        codes: DataType,
    ) -> Arc<dyn PhysicalExpr> {
        let result = Arc::new(Field::new("codes", codes, true));
        Arc::new(DistinctValues {
            inputs,
            source,
            result,
        })
    }

    /// What EXPLAIN shows of an expression that is no key.
    fn whole(&self) -> Result<Option<Arc<dyn PhysicalExpr>>, fmt::Error> {
        let ValueSource::Dictionary(values) = &self.source else {
            return Ok(None);
        };
        let whole = with_columns(Arc::clone(&values.body.expr), |_| {
            Arc::clone(&self.inputs[0])
        });
        whole.map(Some).map_err(|_| fmt::Error)
    }
}

impl fmt::Display for DistinctValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole()? {
            Some(whole) => write!(f, "per_value({whole})"),
            None => f.write_str("codes"),
        }
    }
}

impl PhysicalExpr for DistinctValues {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        match &self.source {
            ValueSource::Dictionary(values) => {
                Ok(values.field(&self.inputs[0].data_type(schema)?, &self.result))
            }
            _ => Ok(Arc::clone(&self.result)),
        }
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let columns = self
            .inputs
            .iter()
            .map(|of| of.evaluate(batch)?.into_array(rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(match &self.source {
            ValueSource::Dictionary(values) => values.computed(&columns[0])?,
            ValueSource::Steps(steps) => steps.codes(&columns[0])?,
            ValueSource::Literals(literals) => literals.codes(&columns, rows)?,
        }))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.inputs.iter().collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(DistinctValues {
            inputs: children,
            source: self.source.clone(),
            result: Arc::clone(&self.result),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole()? {
            Some(whole) => whole.fmt_sql(f),
            None => f.write_str("codes"),
        }
    }
}
