//! The field of a NULL struct is NULL.
//!
//! In: a logical plan with windows; a physical plan as DataFusion's planner made it. Out: the same plan with a function of ours
//! in place of DataFusion's `get_field`, which hands out whatever lies in memory under a NULL.
//! Invariant: names and types stay, and so does DataFusion's function over a column that a Parquet file has as it is. There
//! nothing lies under NULL but NULL, and DataFusion reads only the field.
//! Not here: maps and lists, in which DataFusion finds nothing under NULL.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::functions::core::get_field;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::repartition::RepartitionExec;

use super::in_windows;
use crate::expr::plan_expressions::exchanged;
use crate::functions::wrapped::as_wrapped;
use crate::wire::portable;

static FIELD: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(FieldOf {
        datafusion: get_field(),
    }))
});

/// The rule for windows, whose physical expressions cannot be exchanged.
pub(in crate::optimizer) fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    in_windows(plan, in_part)
}

fn in_part(part: Expr) -> Transformed<Expr> {
    match part {
        Expr::ScalarFunction(call) if call.func.inner().is::<GetFieldFunc>() => {
            let call = ScalarFunction::new_udf(Arc::clone(&FIELD), call.args);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        other => Transformed::no(other),
    }
}

/// The rule for all other nodes.
pub(in crate::optimizer) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let as_in_file = node.children().iter().all(|child| is_as_in_file(child));
        exchanged(node, &|expr, schema| {
            expr.transform_up(|part| {
                Ok(match in_physical(&part, schema) {
                    Some(ours) if !as_in_file || !is_plain(&ours, schema) => Transformed::yes(ours),
                    _ => Transformed::no(part),
                })
            })
        })
    });
    plan.data()
}

/// True of nodes whose columns are those of Parquet files.
fn is_as_in_file(node: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
        return scan.downcast_to_file_source::<ParquetSource>().is_some();
    }
    let hands_on = node.is::<FilterExec>() || node.is::<RepartitionExec>();
    hands_on && node.children().iter().all(|child| is_as_in_file(child))
}

fn in_physical(part: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Arc<dyn PhysicalExpr>> {
    let call = part.downcast_ref::<ScalarFunctionExpr>()?;
    if !call.fun().inner().is::<GetFieldFunc>() {
        return None;
    }
    Some(Arc::new(ScalarFunctionExpr::new(
        call.name(),
        Arc::clone(&FIELD),
        call.args().to_vec(),
        call.return_field(schema).ok()?,
        Arc::new(call.config_options().clone()),
    )))
}

/// True of a field of a column that has NULL under NULL: one that cannot be NULL has some value there.
fn is_plain(field: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    fn nullable(data_type: &DataType) -> bool {
        match data_type {
            DataType::Struct(fields) => {
                let mut fields = fields.iter();
                fields.all(|field| field.is_nullable() && nullable(field.data_type()))
            }
            _ => true,
        }
    }
    let base = field.children().first().map(|base| Arc::clone(base));
    base.filter(|base| base.is::<Column>())
        .is_some_and(|base| base.data_type(schema).is_ok_and(|of| nullable(&of)))
}

/// `get_field` with the NULLs of the struct in its fields.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::optimizer::fixes) struct FieldOf {
    datafusion: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for FieldOf {
    as_wrapped!(
        datafusion: name, schema_name, signature, return_type, return_field_from_args,
        coerce_types
    );

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((base, names)) = args.args.split_first() else {
            return exec_err!("get_field takes a struct and the name of a field");
        };
        let mut current = base.to_array(args.number_rows)?;
        for (name, field) in names.iter().zip(&args.arg_fields[1..]) {
            current = match (&current.data_type(), name) {
                (DataType::Struct(_), ColumnarValue::Scalar(name)) => in_struct(&current, name)?,
                (DataType::Null, _) => current,
                _ => {
                    let mut step = args.clone();
                    step.args = vec![ColumnarValue::Array(current), name.clone()];
                    step.arg_fields = vec![Arc::clone(&args.arg_fields[0]), Arc::clone(field)];
                    self.datafusion
                        .invoke_with_args(step)?
                        .to_array(args.number_rows)?
                }
            };
        }
        Ok(ColumnarValue::Array(current))
    }
}

portable!(FieldOf, "field_of", datafusion: scalar_function);

fn in_struct(structs: &ArrayRef, name: &ScalarValue) -> Result<ArrayRef> {
    let structs = structs.as_struct();
    let name = name.try_as_str().flatten().unwrap_or_default();
    let Some(field) = structs.column_by_name(name) else {
        return exec_err!("the struct has no field '{name}'");
    };
    Ok(
        match structs.nulls().filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => {
                let is_null = BooleanArray::new(!nulls.inner(), None);
                nullif(field, &is_null)?
            }
            None => Arc::clone(field),
        },
    )
}
