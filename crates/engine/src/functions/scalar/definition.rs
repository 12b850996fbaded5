//! A scalar function as one entry of a table: its name, what it takes, and how its result comes about.
//!
//! In: a call's arguments. Out: a column, or the expression of other functions that the call stands for.
//! Invariant: arguments have the types that `ParameterKind` promises before a body sees them; a call that fits no form is an error
//! that shows the forms in SQL's words.
//! Not here: the functions themselves, a file per subject; what a type is called (error/types.rs).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use datafusion::arrow::array::{ListArray, StringViewArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
    lit,
};

use super::kinds::{ParameterKind, coerced, forms_as_text};
use super::rewritten::Template;
use crate::error::Error;
use crate::error::types::type_name;
use crate::expr::function_methods::function_methods;

/// What a call may look like: the kinds of its arguments.
pub(super) type CallForm = &'static [ParameterKind];

/// The type of a result, by the types of the arguments.
pub(super) type Returns = fn(&[DataType]) -> Result<DataType>;

/// How a result comes about.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// From the arguments' columns.
    Rows(Returns, fn(&CallArguments) -> Result<ArrayRef>),
    /// The call stands for this expression of its arguments.
    Stands(fn(Vec<Expr>) -> Result<Expr>),
}

/// One function.
pub(super) struct Definition {
    name: &'static str,
    /// What it may take, and what it is then.
    forms: Vec<(CallForm, Body)>,
    signature: Signature,
}

/// A function whose result is computed from columns.
pub(super) fn rows(
    name: &'static str,
    forms: &'static [CallForm],
    returns: Returns,
    run: fn(&CallArguments) -> Result<ArrayRef>,
) -> Definition {
    Definition::new(name, forms, Body::Rows(returns, run))
}

/// A function that stands for an expression.
pub(super) fn stands(
    name: &'static str,
    forms: &'static [CallForm],
    expression: fn(Vec<Expr>) -> Result<Expr>,
) -> Definition {
    Definition::new(name, forms, Body::Stands(expression))
}

impl Definition {
    fn new(name: &'static str, forms: &'static [CallForm], body: Body) -> Definition {
        Definition {
            name,
            forms: forms.iter().map(|form| (*form, body)).collect(),
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// The same function, which arguments of another form make stand for another expression.
    pub(super) fn or(mut self, form: CallForm, expression: fn(Vec<Expr>) -> Result<Expr>) -> Self {
        self.forms.push((form, Body::Stands(expression)));
        self
    }

    /// The same function, which computes arguments of another form in another way.
    pub(super) fn or_rows(
        mut self,
        form: CallForm,
        returns: Returns,
        run: fn(&CallArguments) -> Result<ArrayRef>,
    ) -> Self {
        self.forms.push((form, Body::Rows(returns, run)));
        self
    }

    /// What the function is for arguments of these types.
    fn body(&self, types: &[DataType]) -> Result<Body> {
        let mut forms = self.forms.iter();
        let fitting = forms.find(|(form, _)| coerced(form, types).as_deref() == Some(types));
        fitting
            .map(|(_, body)| *body)
            .ok_or_else(|| self.no_form(types))
    }

    /// The same function under another name.
    pub(super) fn also(&self, name: &'static str) -> Definition {
        Definition {
            name,
            forms: self.forms.clone(),
            signature: self.signature.clone(),
        }
    }

    /// The same function, computed anew for every row.
    pub(super) fn volatile(mut self) -> Definition {
        self.signature = Signature::user_defined(Volatility::Volatile);
        self
    }

    /// The error of a call with arguments of these types.
    fn no_form(&self, types: &[DataType]) -> DataFusionError {
        let types: Vec<String> = types.iter().map(type_name).collect();
        let forms = forms_as_text(self.name, self.forms.iter().map(|(form, _)| *form));
        DataFusionError::from(Error::wrong_type(format!(
            "function '{}' does not take ({}); it is written {forms}",
            self.name,
            types.join(", ")
        )))
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Definition {
    fn eq(&self, other: &Definition) -> bool {
        self.name == other.name
    }
}

impl Eq for Definition {}

impl Hash for Definition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Definition {
    function_methods!();

    fn name(&self) -> &str {
        self.name
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let mut forms = self.forms.iter();
        let fitting = forms.find_map(|(form, _)| coerced(form, types));
        fitting.ok_or_else(|| self.no_form(types))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match self.body(types)? {
            Body::Rows(returns, _) => returns(types),
            Body::Stands(_) => Err(self.no_form(types)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = types_of(args.arg_fields);
        let data_type = match self.body(&types)? {
            Body::Rows(returns, _) => returns(&types)?,
            Body::Stands(expression) => {
                Template::new(args.arg_fields, args.scalar_arguments, expression)?.data_type()?
            }
        };
        Ok(Arc::new(Field::new(self.name, data_type, true)))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let fields = Template::fields(&args, info.schema())?;
        let Ok(Body::Stands(expression)) = self.body(&types_of(&fields)) else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let literals: Vec<_> = args.iter().map(Template::literal).collect();
        let template = Template::new(&fields, &literals, expression)?;
        Ok(ExprSimplifyResult::Simplified(template.filled(args)?))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let is_constant =
            self.signature.volatility != Volatility::Volatile && args.args.iter().all(is_scalar);
        let rows = if is_constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| arg.to_array(rows));
        let call = CallArguments {
            name: self.name,
            args: columns.collect::<Result<Vec<ArrayRef>>>()?,
            rows,
            returns: args.return_field.data_type(),
        };
        let column = match self.body(&types_of(&args.arg_fields))? {
            Body::Rows(_, run) => run(&call)?,
            Body::Stands(expression) => {
                let literals: Vec<_> = args.args.iter().map(literal).collect();
                let template = Template::new(&args.arg_fields, &literals, expression)?;
                template.evaluate(&call.args, rows, &args.config_options)?
            }
        };
        let column = match column.data_type() == call.returns {
            true => column,
            false => cast(&column, call.returns)?,
        };
        match is_constant {
            true => ScalarValue::try_from_array(&column, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(column)),
        }
    }
}

fn types_of(fields: &[FieldRef]) -> Vec<DataType> {
    fields
        .iter()
        .map(|field| field.data_type().clone())
        .collect()
}

fn literal(value: &ColumnarValue) -> Option<&ScalarValue> {
    match value {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    }
}

/// The arguments of one call for some rows.
pub(super) struct CallArguments<'a> {
    /// The function.
    pub name: &'static str,
    /// A column per argument.
    pub args: Vec<ArrayRef>,
    /// So many rows have all of them.
    pub rows: usize,
    /// The type of the result.
    pub returns: &'a DataType,
}

impl CallArguments<'_> {
    /// Argument `at`, which is text.
    pub fn strings(&self, at: usize) -> &StringViewArray {
        self.args[at].as_string_view()
    }

    /// Argument `at`, which is an integer.
    pub fn integers(&self, at: usize) -> &Int64Array {
        self.args[at].as_primitive::<Int64Type>()
    }

    /// Argument `at`, which is a DOUBLE.
    pub fn doubles(&self, at: usize) -> &Float64Array {
        self.args[at].as_primitive::<Float64Type>()
    }

    /// Argument `at`, which is a list.
    pub fn lists(&self, at: usize) -> &ListArray {
        self.args[at].as_list::<i32>()
    }

    /// The rows in which no argument is NULL.
    pub fn nulls(&self) -> Option<NullBuffer> {
        self.args.iter().fold(None, |nulls, arg| {
            NullBuffer::union(nulls.as_ref(), arg.logical_nulls().as_ref())
        })
    }

    /// A column of what `value` says of each row in which no argument is NULL.
    pub fn each<A, T>(&self, mut value: impl FnMut(usize) -> Result<Option<T>>) -> Result<ArrayRef>
    where
        A: Array + FromIterator<Option<T>> + 'static,
    {
        let nulls = self.nulls();
        let values = (0..self.rows).map(|row| match &nulls {
            Some(nulls) if nulls.is_null(row) => Ok(None),
            _ => value(row),
        });
        Ok(Arc::new(values.collect::<Result<A>>()?))
    }

    /// The error of a value that the function cannot take.
    pub fn invalid(&self, message: impl fmt::Display) -> DataFusionError {
        // A name with a blank is one of ours for a form.
        let message = match self.name.contains(' ') {
            true => message.to_string(),
            false => format!("{}: {message}", self.name),
        };
        DataFusionError::from(Error::Execution(message))
    }
}

/// The argument of a call that has one.
pub(super) fn only(mut args: Vec<Expr>) -> Expr {
    args.swap_remove(0)
}

/// The arguments of a call that has two; NULL where it has fewer.
pub(super) fn two(args: Vec<Expr>) -> [Expr; 2] {
    let mut args = args.into_iter();
    let mut next = || args.next().unwrap_or(lit(ScalarValue::Null));
    [next(), next()]
}
