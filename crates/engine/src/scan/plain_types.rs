//! Types that nobody computes with, as types that the engine does.
//!
//! In: the schema of a table. Out: the same with plain types; a table whose scan casts where they differ.
//! Invariant: run-end encoded columns are their values, views of lists are lists, dictionaries of anything but text and bytes are
//! these values. So are decimals of 32 and 64 bits, beyond which sums and products would run. Dates are days, never milliseconds,
//! which would have a time as strings. All times of day have the unit of TIME '…', since DataFusion compares none of two units. A
//! table of plain types stays what it is. No code stands for NULL: a row without a value has no code.
//! Not here: reading the columns.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, RecordBatch, RecordBatchOptions, make_array,
};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, cast};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

/// The schema with plain types.
pub fn plain_schema(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let kind = plain_type(field.data_type());
    match kind == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(kind)),
    }
}

fn plain_type(kind: &DataType) -> DataType {
    match kind {
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        DataType::ListView(item) | DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeListView(item) | DataType::LargeList(item) => {
            DataType::LargeList(plain_field(item))
        }
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        // DataFusion computes with these as if their results were no longer than they are.
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time64(TimeUnit::Nanosecond),
        DataType::Dictionary(_, values) if !are_worth_codes(values) => plain_type(values),
        other => other.clone(),
    }
}

/// Whether codes are less than these values: numbers of a dictionary are as short as its codes.
fn are_worth_codes(values: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary};
    values.is_string() || matches!(values, Binary | LargeBinary | BinaryView)
}

/// The same rows; where a code stands for NULL among a dictionary's values, the row has none. Arrow's cast of codes to views
/// of strings does not look whether a value is NULL.
pub fn with_null_codes(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data = column.to_data();
    match has_null_values(&data) {
        true => Ok(make_array(null_codes(data)?)),
        false => Ok(Arc::clone(column)),
    }
}

/// The same for all columns.
pub(crate) fn batch_with_null_codes(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(with_null_codes);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let (schema, _, rows) = batch.into_parts();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
}

fn has_null_values(data: &ArrayData) -> bool {
    let is_dictionary = matches!(data.data_type(), DataType::Dictionary(..));
    let has_nulls = |child: &ArrayData| is_dictionary && child.null_count() > 0;
    data.child_data()
        .iter()
        .any(|child| has_nulls(child) || has_null_values(child))
}

fn null_codes(data: ArrayData) -> Result<ArrayData, ArrowError> {
    if !has_null_values(&data) {
        return Ok(data);
    }
    if matches!(data.data_type(), DataType::Dictionary(..)) {
        let nulls = make_array(data.clone()).logical_nulls();
        return data.into_builder().nulls(nulls).build();
    }
    let children = data.child_data().iter().cloned().map(null_codes);
    let children = children.collect::<Result<Vec<_>, _>>()?;
    data.into_builder().child_data(children).build()
}

/// The table, with plain types.
pub(crate) fn with_plain_types(table: Arc<dyn TableProvider>) -> Arc<dyn TableProvider> {
    let schema = plain_schema(&table.schema());
    match schema == table.schema() {
        true => table,
        false => Arc::new(PlainTypes { table, schema }),
    }
}

/// A table whose columns are cast as they are read.
struct PlainTypes {
    table: Arc<dyn TableProvider>,
    schema: SchemaRef,
}

impl fmt::Debug for PlainTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainTypes")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for PlainTypes {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = self.table.scan(state, projection, &[], limit).await?;
        let wanted = match projection {
            Some(wanted) => wanted.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let found = scan.schema();
        let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::with_capacity(wanted.len());
        for (at, field) in wanted.into_iter().enumerate() {
            let field = self.schema.field(field);
            let column = Arc::new(Column::new(found.field(at).name(), at));
            let plain = cast(column, &found, field.data_type().clone())?;
            columns.push((plain, field.name().clone()));
        }
        Ok(Arc::new(ProjectionExec::try_new(columns, scan)?))
    }
}
