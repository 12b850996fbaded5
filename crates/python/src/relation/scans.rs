//! Python objects that read only what a query needs: LazyFrames of Polars, datasets of pyarrow.
//!
//! In: an object with `schema()` and `scan(columns, condition)` (grouse/_objects.py). Out: a table that hands on columns and filters.
//! Invariant: a filter is handed on where it means the same there, and is applied here all the same; floats are not, since their
//! NaN have another order there. Each query asks the object anew.
//! Not here: objects in memory and streams (source.rs).

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use grouse::{Text, admit, admitted_schema};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use pyo3_arrow::PySchema;

use crate::relation::source::{AHEAD_BATCHES, Lasting, lasting_batch, open};

/// A table over an object that reads what it is asked for.
pub struct ScanTable {
    schema: SchemaRef,
    /// The types that the object has.
    given: SchemaRef,
    object: Arc<Py<PyAny>>,
    lasting: Lasting,
}

impl ScanTable {
    /// The table; None of an object that does not scan.
    pub fn of(object: &Bound<'_, PyAny>, lasting: Lasting) -> PyResult<Option<ScanTable>> {
        let scan = object.py().import("grouse._objects")?.getattr("Scan")?;
        if !object.is_instance(&scan)? {
            return Ok(None);
        }
        let given: PySchema = object.call_method0("schema")?.extract()?;
        let given = given.into_inner();
        let schema = admitted_schema(&given);
        let names = schema.fields().iter().zip(given.fields());
        // A name that is there twice has got a number, by which nobody can ask.
        if !names.clone().all(|(own, other)| own.name() == other.name()) {
            return Ok(None);
        }
        Ok(Some(ScanTable {
            schema,
            given,
            object: Arc::new(object.clone().unbind()),
            lasting,
        }))
    }
}

impl fmt::Debug for ScanTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanTable")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for ScanTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let filters = filters.iter();
        let support = filters.map(|filter| match Condition::of(filter, &self.given) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        });
        Ok(support.collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let conditions = filters.iter();
        let conditions = conditions.filter_map(|filter| Condition::of(filter, &self.given));
        let partition = Scan {
            schema: Arc::clone(&schema),
            asked: asked_for(&schema, &self.schema),
            conditions: Arc::new(conditions.collect()),
            object: Arc::clone(&self.object),
            lasting: self.lasting,
        };
        let partitions: Vec<Arc<dyn PartitionStream>> = vec![Arc::new(partition)];
        let plan = StreamingTableExec::try_new(schema, partitions, None, [], false, None)?;
        Ok(Arc::new(plan))
    }
}

/// The columns to ask for: rows without columns cannot be counted everywhere, so one at least.
fn asked_for(wanted: &SchemaRef, all: &SchemaRef) -> SchemaRef {
    match wanted.fields().is_empty() {
        true => Arc::new(Schema::new(
            all.fields().iter().take(1).cloned().collect::<Vec<_>>(),
        )),
        false => Arc::clone(wanted),
    }
}

/// What can be asked of an object's rows.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Compared(String, &'static str, ScalarValue),
    OneOf(String, Vec<ScalarValue>),
    IsNull(String),
    IsNotNull(String),
}

impl Condition {
    /// What a filter asks, if the object means the same by it.
    fn of(filter: &Expr, given: &Schema) -> Option<Condition> {
        match filter {
            Expr::BinaryExpr(both) => match both.op {
                Operator::And | Operator::Or => {
                    let parts = vec![
                        Condition::of(&both.left, given)?,
                        Condition::of(&both.right, given)?,
                    ];
                    Some(match both.op {
                        Operator::And => Condition::All(parts),
                        _ => Condition::Any(parts),
                    })
                }
                operator => {
                    if let (Some(name), Some(value)) = (
                        column(&both.left, given),
                        value(&both.right, given, &both.left),
                    ) {
                        return Some(Condition::Compared(name, symbol(operator)?, value));
                    }
                    let name = column(&both.right, given)?;
                    let value = value(&both.left, given, &both.right)?;
                    Some(Condition::Compared(name, symbol(operator.swap()?)?, value))
                }
            },
            Expr::InList(list) if !list.negated => {
                let name = column(&list.expr, given)?;
                let values = list.list.iter();
                let values = values.map(|item| value(item, given, &list.expr));
                Some(Condition::OneOf(name, values.collect::<Option<_>>()?))
            }
            Expr::IsNull(inner) => Some(Condition::IsNull(column(inner, given)?)),
            Expr::IsNotNull(inner) => Some(Condition::IsNotNull(column(inner, given)?)),
            _ => None,
        }
    }

    /// As grouse/_objects.py takes it: a tuple of a word and its parts.
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parts = |parts: &[Condition]| {
            let parts = parts.iter().map(|part| part.to_python(py));
            PyList::new(py, parts.collect::<PyResult<Vec<_>>>()?)
        };
        let tuple = match self {
            Condition::All(all) => ("and", parts(all)?).into_pyobject(py)?.into_any(),
            Condition::Any(any) => ("or", parts(any)?).into_pyobject(py)?.into_any(),
            Condition::Compared(name, symbol, value) => (*symbol, name, object(py, value)?)
                .into_pyobject(py)?
                .into_any(),
            Condition::OneOf(name, values) => {
                let values = values.iter().map(|value| object(py, value));
                let values = PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)?;
                ("in", name, values).into_pyobject(py)?.into_any()
            }
            Condition::IsNull(name) => ("is null", name).into_pyobject(py)?.into_any(),
            Condition::IsNotNull(name) => ("is not null", name).into_pyobject(py)?.into_any(),
        };
        Ok(tuple)
    }
}

fn symbol(operator: Operator) -> Option<&'static str> {
    Some(match operator {
        Operator::Eq => "=",
        Operator::NotEq => "<>",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        _ => return None,
    })
}

/// The name of a column whose values are compared there as here.
fn column(expr: &Expr, given: &Schema) -> Option<String> {
    let Expr::Column(column) = expr else {
        return None;
    };
    let field = given.field_with_name(&column.name).ok()?;
    let kind = field.data_type();
    let is_plain = kind.is_integer()
        || matches!(
            kind,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Boolean
                | DataType::Date32
        );
    is_plain.then(|| column.name.clone())
}

/// A literal that is of the kind of the column beside it.
fn value(expr: &Expr, given: &Schema, beside: &Expr) -> Option<ScalarValue> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    let name = column(beside, given)?;
    let kind = given.field_with_name(&name).ok()?.data_type();
    let fits = match value.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => kind.is_string(),
        DataType::Boolean => kind == &DataType::Boolean,
        DataType::Date32 => kind == &DataType::Date32,
        other => other.is_integer() && kind.is_integer(),
    };
    (fits && !value.is_null()).then(|| value.clone())
}

/// The value as Python has it.
fn object<'py>(py: Python<'py>, value: &ScalarValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ScalarValue::Boolean(Some(boolean)) => boolean.into_pyobject(py)?.to_owned().into_any(),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::LargeUtf8(Some(text))
        | ScalarValue::Utf8View(Some(text)) => text.into_pyobject(py)?.into_any(),
        ScalarValue::Date32(Some(days)) => {
            let date = py.import("datetime")?.getattr("date")?;
            // Days are counted from 1970 here, and from the year 1 there.
            date.call_method1("fromordinal", (days + EPOCH_ORDINAL,))?
        }
        ScalarValue::UInt64(Some(number)) => number.into_pyobject(py)?.into_any(),
        other => {
            let number = other.cast_to(&DataType::Int64);
            let number = number.map_err(|failure| crate::error::raise(failure.into()))?;
            match number {
                ScalarValue::Int64(Some(number)) => number.into_pyobject(py)?.into_any(),
                _ => py.None().into_bound(py),
            }
        }
    })
}

/// The number that Python has for 1970-01-01.
const EPOCH_ORDINAL: i32 = 719_163;

/// One reading of the object.
struct Scan {
    schema: SchemaRef,
    asked: SchemaRef,
    conditions: Arc<Vec<Condition>>,
    object: Arc<Py<PyAny>>,
    lasting: Lasting,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("schema", &self.schema)
            .field("conditions", &self.conditions)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for Scan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, asked) = (Arc::clone(&self.schema), Arc::clone(&self.asked));
        let (object, conditions) = (Arc::clone(&self.object), Arc::clone(&self.conditions));
        let lasting = self.lasting;
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), AHEAD_BATCHES);
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            for batch in opened(&object, &asked, &conditions)? {
                let batch = batch
                    .and_then(|batch| admit(&batch, &asked, Text::Unknown))
                    .and_then(|batch| lasting_batch(batch, lasting))
                    .map_err(DataFusionError::from)
                    .and_then(|batch| of_schema(batch, &schema));
                let failed = batch.is_err();
                if sender.blocking_send(batch).is_err() || failed {
                    break;
                }
            }
            Ok(())
        });
        builder.build()
    }
}

/// The batch with the columns that were wanted.
fn of_schema(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if !schema.fields().is_empty() {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        Vec::new(),
        &options,
    )?)
}

fn opened(
    object: &Py<PyAny>,
    asked: &Schema,
    conditions: &[Condition],
) -> Result<Box<dyn RecordBatchReader + Send>> {
    let reader = Python::try_attach(|py| {
        let names = asked.fields().iter().map(|field| field.name());
        let names = PyList::new(py, names)?;
        let conditions = conditions.iter().map(|condition| condition.to_python(py));
        let conditions = PyTuple::new(py, conditions.collect::<PyResult<Vec<_>>>()?)?;
        open(&object.bind(py).call_method1("scan", (names, conditions))?)
    });
    match reader {
        Some(Ok(reader)) => Ok(reader),
        Some(Err(failure)) => Err(DataFusionError::Execution(failure.to_string())),
        None => Err(grouse::Error::Cancelled.into()),
    }
}
