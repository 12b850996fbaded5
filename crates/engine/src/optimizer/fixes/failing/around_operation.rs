//! Expressions around an operation that hold its results against something.
//!
//! In: the expression's type, whose field `operation` is the operation. Out: what it has of the operation.
//! Not here: what becomes of the results.

/// Two of a type are one where their operations are, and they are shown as these.
macro_rules! same_as_operation {
    ($around:ident) => {
        impl PartialEq for $around {
            fn eq(&self, other: &Self) -> bool {
                self.operation.eq(&other.operation)
            }
        }

        impl Eq for $around {}

        impl ::std::hash::Hash for $around {
            fn hash<H: ::std::hash::Hasher>(&self, state: &mut H) {
                self.operation.hash(state);
            }
        }

        impl ::std::fmt::Display for $around {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "({})", self.operation)
            }
        }
    };
}

/// Methods of `PhysicalExpr` that say what the operation says.
macro_rules! methods_of_operation {
    () => {
        fn data_type(&self, schema: &Schema) -> Result<DataType> {
            self.operation.data_type(schema)
        }

        fn nullable(&self, schema: &Schema) -> Result<bool> {
            self.operation.nullable(schema)
        }

        fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
            self.operation.return_field(schema)
        }

        fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
            vec![&self.operation]
        }

        fn get_properties(
            &self,
            children: &[::datafusion::logical_expr::sort_properties::ExprProperties],
        ) -> Result<::datafusion::logical_expr::sort_properties::ExprProperties> {
            use ::datafusion::logical_expr::sort_properties::ExprProperties;
            let first = children.first().cloned();
            Ok(first.unwrap_or_else(ExprProperties::new_unknown))
        }

        fn fmt_sql(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
            write!(f, "(")?;
            self.operation.fmt_sql(f)?;
            write!(f, ")")
        }
    };
}

pub(super) use {methods_of_operation, same_as_operation};
