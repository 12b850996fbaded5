//! Functions that wrap one of DataFusion's: the methods in which they are that function.
//!
//! In: the field that holds it, names of methods. Out: these methods of `ScalarUDFImpl` or `AggregateUDFImpl`.
//! Invariant: a method that is not named is the trait's own or the wrapper's: no property of DataFusion's function is taken over
//! that nobody has looked at.
//! Not here: sources and formats of files (scan/wrapped.rs).

/// `as_wrapped!(inner: name, signature)` within an `impl` has these methods call those of `self.inner`.
macro_rules! as_wrapped {
    ($inner:tt: $($method:ident),+ $(,)?) => {
        $($crate::functions::wrapped::wrapped_method!($inner $method);)+
    };
}

macro_rules! wrapped_method {
    ($inner:tt name) => {
        fn name(&self) -> &str {
            self.$inner.name()
        }
    };
    ($inner:tt aliases) => {
        fn aliases(&self) -> &[String] {
            self.$inner.aliases()
        }
    };
    ($inner:tt signature) => {
        fn signature(&self) -> &::datafusion::logical_expr::Signature {
            self.$inner.signature()
        }
    };
    ($inner:tt schema_name) => {
        fn schema_name(&self, args: &[::datafusion::logical_expr::Expr]) -> ::datafusion::common::Result<String> {
            self.$inner.schema_name(args)
        }
    };
    ($inner:tt coerce_types) => {
        fn coerce_types(&self, types: &[::datafusion::arrow::datatypes::DataType]) -> ::datafusion::common::Result<Vec<::datafusion::arrow::datatypes::DataType>> {
            self.$inner.coerce_types(types)
        }
    };
    ($inner:tt return_type) => {
        fn return_type(&self, types: &[::datafusion::arrow::datatypes::DataType]) -> ::datafusion::common::Result<::datafusion::arrow::datatypes::DataType> {
            self.$inner.return_type(types)
        }
    };
    ($inner:tt return_field_from_args) => {
        fn return_field_from_args(&self, args: ::datafusion::logical_expr::ReturnFieldArgs<'_>) -> ::datafusion::common::Result<::datafusion::arrow::datatypes::FieldRef> {
            self.$inner.return_field_from_args(args)
        }
    };
    ($inner:tt is_strict) => {
        fn is_strict(&self) -> bool {
            self.$inner.is_strict()
        }
    };
    ($inner:tt output_ordering) => {
        fn output_ordering(&self, inputs: &[::datafusion::logical_expr::sort_properties::ExprProperties]) -> ::datafusion::common::Result<::datafusion::logical_expr::sort_properties::SortProperties> {
            self.$inner.output_ordering(inputs)
        }
    };
    ($inner:tt documentation) => {
        fn documentation(&self) -> Option<&::datafusion::logical_expr::Documentation> {
            self.$inner.documentation()
        }
    };
    ($inner:tt simplify) => {
        fn simplify(&self, args: Vec<::datafusion::logical_expr::Expr>, info: &::datafusion::logical_expr::simplify::SimplifyContext) -> ::datafusion::common::Result<::datafusion::logical_expr::simplify::ExprSimplifyResult> {
            self.$inner.simplify(args, info)
        }
    };
    ($inner:tt short_circuits) => {
        fn short_circuits(&self) -> bool {
            self.$inner.short_circuits()
        }
    };
    ($inner:tt conditional_arguments) => {
        fn conditional_arguments<'a>(&self, args: &'a [::datafusion::logical_expr::Expr]) -> Option<(Vec<&'a ::datafusion::logical_expr::Expr>, Vec<&'a ::datafusion::logical_expr::Expr>)> {
            self.$inner.conditional_arguments(args)
        }
    };
    ($inner:tt invoke_with_args) => {
        fn invoke_with_args(&self, args: ::datafusion::logical_expr::ScalarFunctionArgs) -> ::datafusion::common::Result<::datafusion::logical_expr::ColumnarValue> {
            self.$inner.invoke_with_args(args)
        }
    };
    ($inner:tt return_field) => {
        fn return_field(&self, fields: &[::datafusion::arrow::datatypes::FieldRef]) -> ::datafusion::common::Result<::datafusion::arrow::datatypes::FieldRef> {
            self.$inner.return_field(fields)
        }
    };
    ($inner:tt is_nullable) => {
        fn is_nullable(&self) -> bool {
            self.$inner.is_nullable()
        }
    };
    ($inner:tt accumulator) => {
        fn accumulator(&self, args: ::datafusion::logical_expr::function::AccumulatorArgs<'_>) -> ::datafusion::common::Result<Box<dyn ::datafusion::logical_expr::Accumulator>> {
            self.$inner.accumulator(args)
        }
    };
    ($inner:tt state_fields) => {
        fn state_fields(&self, args: ::datafusion::logical_expr::function::StateFieldsArgs<'_>) -> ::datafusion::common::Result<Vec<::datafusion::arrow::datatypes::FieldRef>> {
            self.$inner.state_fields(args)
        }
    };
    ($inner:tt order_sensitivity) => {
        fn order_sensitivity(&self) -> ::datafusion::logical_expr::utils::AggregateOrderSensitivity {
            self.$inner.order_sensitivity()
        }
    };
    ($inner:tt window_function_schema_name) => {
        fn window_function_schema_name(&self, params: &::datafusion::logical_expr::expr::WindowFunctionParams) -> ::datafusion::common::Result<String> {
            self.$inner.window_function_schema_name(params)
        }
    };
    ($inner:tt window_function_display_name) => {
        fn window_function_display_name(&self, params: &::datafusion::logical_expr::expr::WindowFunctionParams) -> ::datafusion::common::Result<String> {
            self.$inner.window_function_display_name(params)
        }
    };
    ($inner:tt supports_null_handling_clause) => {
        fn supports_null_handling_clause(&self) -> bool {
            self.$inner.supports_null_handling_clause()
        }
    };
    ($inner:tt supports_within_group_clause) => {
        fn supports_within_group_clause(&self) -> bool {
            self.$inner.supports_within_group_clause()
        }
    };
}

pub(crate) use as_wrapped;
pub(crate) use wrapped_method;
