//! Timestamps that Parquet files have in 96 bits: nanoseconds within a day and the day's Julian number.
//!
//! In: a file's columns of such timestamps as 12 bytes a row, which footer.rs makes them. Out: timestamps of the table's type, cut to
//! its unit, also within lists, structs and maps.
//! Invariant: a timestamp that does not fit the unit is an error. Arrow's reader of such columns wraps around.
//! Not here: which unit the table has (`coerce_int96` of DataFusion's options).

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, TimestampMicrosecondArray, make_array,
};
use datafusion::arrow::datatypes::{DataType, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::parquet::basic::Type as Physical;
use datafusion::parquet::file::metadata::FileMetaData;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

/// Bytes of a timestamp.
const INT96_BYTES: i32 = 12;

/// The Julian number of 1970-01-01.
const JULIAN_DAY_OF_EPOCH: i128 = 2_440_588;

const NANOS_OF_DAY: i128 = 86_400_000_000_000;

/// The leaves of a file that are such timestamps.
pub(super) fn int96_leaves(file: &FileMetaData) -> impl Iterator<Item = usize> {
    let leaves = file.schema_descr().columns().iter().enumerate();
    let leaves = leaves.filter(|(_, leaf)| leaf.physical_type() == Physical::INT96);
    leaves.map(|(leaf, _)| leaf)
}

/// Whether a table may have such timestamps.
pub(super) fn may_have_int96(schema: &Schema) -> bool {
    fn has(kind: &DataType) -> bool {
        matches!(kind, DataType::Timestamp(..))
            || parts(kind).iter().any(|part| has(part.data_type()))
    }
    schema.fields().iter().any(|field| has(field.data_type()))
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

/// Reads columns of files as those of a table.
#[derive(Debug)]
pub(super) struct Int96Adapters {
    /// What reads all other columns.
    others: Arc<dyn PhysicalExprAdapterFactory>,
}

impl Int96Adapters {
    /// `others` = `None`: DataFusion reads them.
    pub(super) fn beside(others: Option<Arc<dyn PhysicalExprAdapterFactory>>) -> Int96Adapters {
        Int96Adapters {
            others: others.unwrap_or_else(|| Arc::new(DefaultPhysicalExprAdapterFactory)),
        }
    }
}

impl PhysicalExprAdapterFactory for Int96Adapters {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let read = Arc::new(read_schema(&file, &table));
        let others = self.others.create(table, Arc::clone(&read))?;
        Ok(Arc::new(Int96Adapter { others, file, read }))
    }
}

/// The file's columns with timestamps of the table's types.
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

/// Only such timestamps are 12 bytes in a file and a timestamp in its table.
fn read_type(of_file: &DataType, of_table: &DataType) -> DataType {
    match (of_file, of_table) {
        (DataType::FixedSizeBinary(INT96_BYTES), DataType::Timestamp(..)) => of_table.clone(),
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
struct Int96Adapter {
    others: Arc<dyn PhysicalExprAdapter>,
    file: SchemaRef,
    read: SchemaRef,
}

impl PhysicalExprAdapter for Int96Adapter {
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
                    false => Transformed::yes(as_timestamps(expr, field)),
                },
            )
        };
        expr.transform_up(read).data()
    }
}

fn as_timestamps(column: Arc<dyn PhysicalExpr>, field: &FieldRef) -> Arc<dyn PhysicalExpr> {
    let function = Int96Timestamps {
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

/// A column of a file with timestamps in the place of their bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Int96Timestamps {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Int96Timestamps {
    fn name(&self) -> &str {
        "timestamps of 96 bits"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(read(&column, &self.to)?))
    }
}

/// The column with timestamps where the type has them, and bytes in their place.
fn read(column: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match (column.data_type(), to) {
        (of, to) if of == to => Ok(Arc::clone(column)),
        (DataType::FixedSizeBinary(_), DataType::Timestamp(unit, _)) => {
            timestamps(column.as_fixed_size_binary(), *unit, to)
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

fn timestamps(bytes: &FixedSizeBinaryArray, unit: TimeUnit, to: &DataType) -> Result<ArrayRef> {
    let nanos = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let values = bytes.iter().map(|bytes| {
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let Some(since_epoch) = nanos_since_epoch(bytes) else {
            return exec_err!("a timestamp of Parquet's INT96 does not have 12 bytes");
        };
        match i64::try_from(since_epoch.div_euclid(nanos)) {
            Ok(value) => Ok(Some(value)),
            Err(_) if unit == TimeUnit::Nanosecond => exec_err!(
                "a timestamp of Parquet's INT96 does not fit nanoseconds, which reach from 1677 to 2262; SET datafusion.execution.parquet.coerce_int96 = 'us' reads it"
            ),
            Err(_) => exec_err!(
                "a timestamp of Parquet's INT96 does not fit 64 bits: its day is {} days from 1970-01-01",
                since_epoch.div_euclid(NANOS_OF_DAY)
            ),
        }
    });
    let values = values.collect::<Result<TimestampMicrosecondArray>>()?;
    // The numbers in their own unit.
    let values = values.to_data().into_builder().data_type(to.clone());
    Ok(make_array(values.build()?))
}

fn nanos_since_epoch(bytes: &[u8]) -> Option<i128> {
    let (nanos, day) = bytes.split_first_chunk::<8>()?;
    let nanos = i64::from_le_bytes(*nanos);
    let day = i32::from_le_bytes(day.try_into().ok()?);
    Some((i128::from(day) - JULIAN_DAY_OF_EPOCH) * NANOS_OF_DAY + i128::from(nanos))
}
