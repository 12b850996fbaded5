//! The expression that a call stands for, with the call's arguments as its columns.
//!
//! In: the arguments' types and which of them are literals; a function that makes an expression of them.
//! Out: the type of that expression; the expression with the arguments in it; its values for some rows.
//! Invariant: types are coerced and equal values have one form here, because a call may be replaced and evaluated after the
//! planner has done so, in one go.
//! Not here: what a function stands for.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use datafusion::physical_expr::create_physical_expr;

use crate::functions::equal_values::among_values;

/// What a call stands for.
pub(super) struct Template {
    expression: Expr,
    schema: DFSchema,
}

impl Template {
    /// What `expression` makes of arguments of these types.
    pub fn new(
        fields: &[FieldRef],
        literals: &[Option<&ScalarValue>],
        expression: fn(Vec<Expr>) -> Result<Expr>,
    ) -> Result<Template> {
        let columns = fields
            .iter()
            .enumerate()
            .map(|(at, field)| Field::new(column_name(at), field.data_type().clone(), true));
        let schema = DFSchema::try_from(Schema::new(columns.collect::<Vec<_>>()))?;
        let arguments = fields.iter().enumerate().map(|(at, field)| {
            Ok(match literals.get(at) {
                // The planner shows a literal as it is written, and its type as it will be.
                Some(Some(value)) => Expr::Literal(value.cast_to(field.data_type())?, None),
                _ => Expr::Column(Column::new_unqualified(column_name(at))),
            })
        });
        let expression = expression(arguments.collect::<Result<_>>()?)?;
        let mut coercion = TypeCoercionRewriter::new(&schema);
        let expression = expression.rewrite(&mut coercion)?.data;
        let expression = among_values(expression, &schema)?;
        Ok(Template { expression, schema })
    }

    /// The fields of arguments.
    pub fn fields(args: &[Expr], schema: &DFSchemaRef) -> Result<Vec<FieldRef>> {
        args.iter()
            .map(|arg| arg.to_field(schema.as_ref()).map(|(_, field)| field))
            .collect()
    }

    /// The value of an argument that is a literal.
    pub fn literal(arg: &Expr) -> Option<&ScalarValue> {
        match arg {
            Expr::Literal(value, _) => Some(value),
            _ => None,
        }
    }

    /// Its type.
    pub fn data_type(&self) -> Result<DataType> {
        self.expression.get_type(&self.schema)
    }

    /// The expression of the arguments themselves.
    pub fn filled(self, args: Vec<Expr>) -> Result<Expr> {
        let filled = self.expression.transform_up(|part| {
            let at = match &part {
                Expr::Column(column) => self.schema.maybe_index_of_column(column),
                _ => None,
            };
            Ok(match at.and_then(|at| args.get(at)) {
                Some(argument) => Transformed::yes(argument.clone()),
                None => Transformed::no(part),
            })
        })?;
        Ok(filled.data)
    }

    /// Its values for rows of the arguments.
    pub fn evaluate(
        &self,
        args: &[ArrayRef],
        rows: usize,
        config: &Arc<ConfigOptions>,
    ) -> Result<ArrayRef> {
        let mut props = ExecutionProps::new();
        props.config_options = Some(Arc::clone(config));
        let expression = create_physical_expr(
            &self.expression,
            &self.schema,
            &props,
            &PhysicalPlanningContext::default(),
        )?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(self.schema.inner());
        let batch = RecordBatch::try_new_with_options(schema, args.to_vec(), &options)?;
        expression.evaluate(&batch)?.into_array(rows)
    }
}

fn column_name(at: usize) -> String {
    format!("argument {at}")
}
