//! INTERVAL of Parquet: months, days and milliseconds in 12 bytes.
//!
//! In: files that do not say which Arrow type such a column was written from. Out: footers in which it is 12 bytes, and scans that
//! make intervals of these.
//! Invariant: months stay. DataFusion's reader gives days and milliseconds alone.
//! Not here: files that keep their Arrow schema, whose intervals are of months or of days; intervals in lists and structs (footer.rs).

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use datafusion::parquet::basic::ConvertedType;
use datafusion::parquet::file::metadata::FileMetaData;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use crate::functions::null_as_args;

/// How an INTERVAL is stored.
const BYTES: DataType = DataType::FixedSizeBinary(12);

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const NANOS_PER_MILLISECOND: i64 = 1_000_000;

/// The leaves that are intervals of no known Arrow type.
pub(super) fn interval_leaves(file: &FileMetaData) -> BTreeSet<usize> {
    let entries = file.key_value_metadata();
    let knows_types =
        entries.is_some_and(|all| all.iter().any(|entry| entry.key == ARROW_SCHEMA_META_KEY));
    if knows_types {
        return BTreeSet::new();
    }
    let leaves = file.schema_descr().columns().iter().enumerate();
    let intervals = leaves.filter(|(_, column)| column.converted_type() == ConvertedType::INTERVAL);
    intervals.map(|(leaf, _)| leaf).collect()
}

/// A file's schema in which such columns are intervals with months.
pub(super) fn with_intervals(schema: &Schema, file: &FileMetaData) -> Schema {
    let leaves = interval_leaves(file);
    let columns = file.schema_descr();
    let names: Vec<&String> = leaves
        .iter()
        .map(|&leaf| &columns.columns()[leaf].path().parts()[0])
        .collect();
    let fields = schema
        .fields()
        .iter()
        .map(|field| match names.contains(&field.name()) {
            true => Arc::new(field.as_ref().clone().with_data_type(INTERVAL)),
            false => Arc::clone(field),
        });
    let fields: Vec<FieldRef> = fields.collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// What a scan of a table with such columns reads its files by; `None` of one without.
pub(super) fn adapters(table: &Schema) -> Option<Arc<dyn PhysicalExprAdapterFactory>> {
    let mut fields = table.fields().iter();
    let has_intervals = fields.any(|field| *field.data_type() == INTERVAL);
    has_intervals.then(|| Arc::new(IntervalAdapters) as _)
}

#[derive(Debug)]
struct IntervalAdapters;

impl PhysicalExprAdapterFactory for IntervalAdapters {
    fn create(&self, table: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        let mut intervals = BTreeSet::new();
        let fields = table.fields().iter().map(|field| {
            let stored = file.field_with_name(field.name()).ok();
            let are_bytes = stored.is_some_and(|stored| *stored.data_type() == BYTES);
            match *field.data_type() == INTERVAL && are_bytes {
                true => {
                    intervals.insert(field.name().clone());
                    Arc::new(field.as_ref().clone().with_data_type(BYTES))
                }
                false => Arc::clone(field),
            }
        });
        let fields: Vec<FieldRef> = fields.collect();
        let metadata = table.metadata().clone();
        let table = Arc::new(Schema::new_with_metadata(fields, metadata));
        let datafusion = DefaultPhysicalExprAdapterFactory.create(table, Arc::clone(&file))?;
        match intervals.is_empty() {
            true => Ok(datafusion),
            false => Ok(Arc::new(IntervalAdapter {
                datafusion,
                file,
                intervals,
            })),
        }
    }
}

#[derive(Debug)]
struct IntervalAdapter {
    /// For the same table with bytes in the place of intervals.
    datafusion: Arc<dyn PhysicalExprAdapter>,
    file: SchemaRef,
    intervals: BTreeSet<String>,
}

impl PhysicalExprAdapter for IntervalAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = self.datafusion.rewrite(expr)?;
        let expr = expr.transform(|part| {
            let column = part.downcast_ref::<Column>();
            if !column.is_some_and(|column| self.intervals.contains(column.name())) {
                return Ok(Transformed::no(part));
            }
            let options = Arc::new(ConfigOptions::default());
            let function = Arc::clone(&INTERVAL_OF_BYTES);
            let call = ScalarFunctionExpr::try_new(function, vec![part], &self.file, options)?;
            Ok(Transformed::yes(Arc::new(call) as _))
        });
        expr.data()
    }
}

static INTERVAL_OF_BYTES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(IntervalOfBytes {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalOfBytes {
    signature: Signature,
}

impl ScalarUDFImpl for IntervalOfBytes {
    fn name(&self) -> &str {
        "interval of bytes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(null_as_args(self.name(), INTERVAL, &args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let column = args.args[0].to_array(args.number_rows)?;
        let Some(bytes) = column.as_fixed_size_binary_opt() else {
            return exec_err!("an INTERVAL that is not of 12 bytes");
        };
        let intervals = (0..bytes.len()).map(|row| match bytes.is_valid(row) {
            true => interval(bytes.value(row)).map(Some),
            false => Ok(None),
        });
        let intervals = intervals.collect::<Result<IntervalMonthDayNanoArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(intervals)))
    }
}

/// Three numbers without a sign, the lowest byte of each first.
fn interval(bytes: &[u8]) -> Result<IntervalMonthDayNano> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let [months, days, milliseconds] = numbers else {
        return exec_err!("an INTERVAL that is not of 12 bytes");
    };
    let [months, days, milliseconds] =
        [months, days, milliseconds].map(|number| u32::from_le_bytes(*number));
    let nanos = i64::from(milliseconds) * NANOS_PER_MILLISECOND;
    match (i32::try_from(months), i32::try_from(days)) {
        (Ok(months), Ok(days)) => Ok(IntervalMonthDayNano::new(months, days, nanos)),
        _ => exec_err!("an INTERVAL of {months} months and {days} days, which is too long"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_days_and_milliseconds() {
        let mut bytes = Vec::new();
        for number in [14_u32, 3, 2_592_000_001] {
            bytes.extend(number.to_le_bytes());
        }
        let expected = IntervalMonthDayNano::new(14, 3, 2_592_000_001_000_000);
        assert_eq!(interval(&bytes).unwrap(), expected);
        assert!(interval(&[255; 12]).is_err());
        assert!(interval(&[0; 8]).is_err());
    }
}
