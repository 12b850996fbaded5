//! Columns of Parquet files whose values are 12 bytes that mean something: timestamps of 96 bits and intervals.
//!
//! In: a file's columns of these as 12 bytes a row, which footer.rs makes them. Out: timestamps and intervals of the table's types,
//! also within lists, structs and maps.
//! Invariant: bytes that the file calls bytes are refused where the table has another type.
//! Not here: what the bytes mean (int96.rs, intervals.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_array};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::file::metadata::FileMetaData;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use super::int96::timestamps;
use super::intervals::{INTERVAL, intervals};
use crate::error::types::type_name;
use crate::expr::function_methods::function_methods;

const TWELVE: i32 = 12;

/// Whether a table has intervals.
pub(super) fn has_intervals(schema: &Schema) -> bool {
    has(schema, |kind| *kind == INTERVAL)
}

/// Whether a table has timestamps, which may be of 96 bits.
pub(super) fn may_have_int96(schema: &Schema) -> bool {
    has(schema, is_timestamp)
}

fn is_timestamp(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(..))
}

fn has(schema: &Schema, is_wanted: fn(&DataType) -> bool) -> bool {
    fn within(kind: &DataType, is_wanted: fn(&DataType) -> bool) -> bool {
        is_wanted(kind)
            || parts(kind)
                .iter()
                .any(|part| within(part.data_type(), is_wanted))
    }
    let mut fields = schema.fields().iter();
    fields.any(|field| within(field.data_type(), is_wanted))
}

/// The fields that values of a type are made of.
fn parts(kind: &DataType) -> Vec<FieldRef> {
    match kind {
        DataType::Struct(fields) => fields.to_vec(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![Arc::clone(item)],
        _ => Vec::new(),
    }
}

/// Reads columns of files as those of a table; DataFusion reads all others.
#[derive(Debug)]
pub(super) struct TwelveByteAdapters;

impl PhysicalExprAdapterFactory for TwelveByteAdapters {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let read = Arc::new(read_schema(&file, &table));
        let others = DefaultPhysicalExprAdapterFactory.create(table, Arc::clone(&read))?;
        Ok(Arc::new(TwelveByteAdapter { others, file, read }))
    }
}

/// A column that a table takes for timestamps or intervals, while its file says of its 12 bytes that they are bytes.
pub(super) fn mistaken_bytes(file: &FileMetaData, table: &Schema) -> Option<String> {
    // A schema that cannot be read is told when the columns are.
    let columns = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata()).ok()?;
    let read = read_schema(&columns, table);
    let mut pairs = columns.fields().iter().zip(read.fields());
    let (field, read) = pairs.find(|(field, read)| field.data_type() != read.data_type())?;
    Some(format!(
        "its column '{}' is {}, and in the table {}",
        field.name(),
        type_name(field.data_type()),
        type_name(read.data_type())
    ))
}

/// The file's columns with the table's types where they are 12 bytes.
fn read_schema(file: &Schema, table: &Schema) -> Schema {
    let fields = file.fields().iter().map(|field| {
        let of_table = table.field_with_name(field.name()).ok();
        of_table.map_or_else(
            || Arc::clone(field),
            |of_table| read_field(field, of_table.data_type()),
        )
    });
    Schema::new_with_metadata(fields.collect::<Fields>(), file.metadata().clone())
}

fn read_field(field: &FieldRef, of_table: &DataType) -> FieldRef {
    let kind = read_type(field.data_type(), of_table);
    match kind == *field.data_type() {
        true => Arc::clone(field),
        false => Arc::new(field.as_ref().clone().with_data_type(kind)),
    }
}

/// What footer.rs has made 12 bytes has another type in the table.
fn read_type(of_file: &DataType, of_table: &DataType) -> DataType {
    match (of_file, of_table) {
        (DataType::FixedSizeBinary(TWELVE), of_table) if is_timestamp(of_table) => of_table.clone(),
        (DataType::FixedSizeBinary(TWELVE), of_table) if *of_table == INTERVAL => INTERVAL,
        (DataType::Struct(fields), DataType::Struct(of_table)) => {
            let fields = fields
                .iter()
                .map(|field| match of_table.find(field.name()) {
                    Some((_, of_table)) => read_field(field, of_table.data_type()),
                    None => Arc::clone(field),
                });
            DataType::Struct(fields.collect())
        }
        (DataType::Map(entries, is_sorted), DataType::Map(of_table, _)) => {
            DataType::Map(read_entries(entries, of_table), *is_sorted)
        }
        _ => {
            let of_table = match parts(of_table).as_slice() {
                [item] => item.data_type().clone(),
                _ => return of_file.clone(),
            };
            match of_file {
                DataType::List(item) => DataType::List(read_field(item, &of_table)),
                DataType::LargeList(item) => DataType::LargeList(read_field(item, &of_table)),
                DataType::FixedSizeList(item, size) => {
                    DataType::FixedSizeList(read_field(item, &of_table), *size)
                }
                other => other.clone(),
            }
        }
    }
}

/// Keys and values of maps, which have names of the writer's choice.
fn read_entries(entries: &FieldRef, of_table: &FieldRef) -> FieldRef {
    let (DataType::Struct(fields), DataType::Struct(of_table)) =
        (entries.data_type(), of_table.data_type())
    else {
        return Arc::clone(entries);
    };
    let fields = fields.iter().zip(of_table);
    let fields = fields.map(|(field, of_table)| read_field(field, of_table.data_type()));
    let kind = DataType::Struct(fields.collect());
    Arc::new(entries.as_ref().clone().with_data_type(kind))
}

#[derive(Debug)]
struct TwelveByteAdapter {
    others: Arc<dyn PhysicalExprAdapter>,
    file: SchemaRef,
    read: SchemaRef,
}

impl PhysicalExprAdapter for TwelveByteAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = self.others.rewrite(expr)?;
        let read = |expr: Arc<dyn PhysicalExpr>| {
            let index = expr.downcast_ref::<Column>().map(Column::index);
            let Some(index) = index.filter(|index| *index < self.read.fields().len()) else {
                return Ok(Transformed::no(expr));
            };
            let field = &self.read.fields()[index];
            Ok(
                match field.data_type() == self.file.field(index).data_type() {
                    true => Transformed::no(expr),
                    false => Transformed::yes(of_bytes(expr, field)),
                },
            )
        };
        expr.transform_up(read).data()
    }
}

fn of_bytes(column: Arc<dyn PhysicalExpr>, field: &FieldRef) -> Arc<dyn PhysicalExpr> {
    let function = OfTwelveBytes {
        to: field.data_type().clone(),
        signature: Signature::any(1, Volatility::Immutable),
    };
    let function = Arc::new(ScalarUDF::new_from_impl(function));
    let name = function.name().to_string();
    let options = Arc::new(ConfigOptions::default());
    let returns = Arc::clone(field);
    Arc::new(ScalarFunctionExpr::new(
        &name,
        function,
        vec![column],
        returns,
        options,
    ))
}

/// A column of a file with timestamps and intervals in the place of their bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfTwelveBytes {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for OfTwelveBytes {
    function_methods!("timestamps and intervals of bytes");

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(read(&column, &self.to)?))
    }
}

/// The column with timestamps and intervals where the type has them, and the column bytes.
fn read(column: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match (column.data_type(), to) {
        (of, to) if of == to => Ok(Arc::clone(column)),
        (DataType::FixedSizeBinary(_), DataType::Timestamp(unit, _)) => {
            timestamps(column.as_fixed_size_binary(), *unit, to)
        }
        (DataType::FixedSizeBinary(_), to) if *to == INTERVAL => {
            intervals(column.as_fixed_size_binary())
        }
        _ => {
            let data = column.to_data();
            let children = data.child_data().iter().zip(parts(to));
            let children = children.map(|(child, part)| {
                let child = make_array(child.clone());
                Ok(read(&child, part.data_type())?.to_data())
            });
            let children = children.collect::<Result<Vec<_>>>()?;
            let builder = data.into_builder().data_type(to.clone());
            Ok(make_array(builder.child_data(children).build()?))
        }
    }
}
