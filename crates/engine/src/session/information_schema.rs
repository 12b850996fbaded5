//! `information_schema`: DataFusion's, in SQL's words.
//!
//! In: the session's catalogs and table functions. Out: the schema's tables.
//! Invariant: types have the names that DESCRIBE gives them, places of columns count from 1, `views` has views alone.
//! Functions are described as `duckdb_functions()` does.
//! Not here: constraints (constraint_tables.rs), DESCRIBE and SHOW TABLES (sql/expand/describe.rs).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{CatalogProviderList, SchemaProvider, TableFunction, TableProvider};
use datafusion::common::{Result, exec_err};
use datafusion::datasource::ViewTable;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Volatility, col, create_udf,
    lit,
};

use super::constraint_tables;
use crate::error::types::type_name;
use crate::functions::{FunctionText, function_texts};

/// Its name.
pub(crate) const NAME: &str = "information_schema";

/// The schema. The catalogs hold it, so it does not hold them.
pub(crate) struct InformationSchema {
    catalogs: Weak<dyn CatalogProviderList>,
    functions: HashMap<String, Arc<TableFunction>>,
}

impl fmt::Debug for InformationSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformationSchema").finish_non_exhaustive()
    }
}

impl InformationSchema {
    pub(crate) fn new(state: &SessionState) -> InformationSchema {
        InformationSchema {
            catalogs: Arc::downgrade(state.catalog_list()),
            functions: state.table_functions().clone(),
        }
    }

    fn datafusion(&self) -> Option<InformationSchemaProvider> {
        let datafusion = InformationSchemaProvider::new(self.catalogs.upgrade()?);
        Some(datafusion.with_table_functions(self.functions.clone()))
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let datafusion = self.datafusion().into_iter();
        let names = datafusion.flat_map(|datafusion| datafusion.table_names());
        let own = constraint_tables::NAMES.iter().map(ToString::to_string);
        names.chain(own).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let name = name.to_lowercase();
        let (Some(catalogs), Some(datafusion)) = (self.catalogs.upgrade(), self.datafusion())
        else {
            return Ok(None);
        };
        if let Some(table) = constraint_tables::table(&*catalogs, NAME, &name).await? {
            return Ok(Some(table));
        }
        let Some(table) = datafusion.table(&name).await? else {
            return Ok(None);
        };
        let plan = LogicalPlanBuilder::scan(name.as_str(), provider_as_source(table), None)?;
        let plan = match name.as_str() {
            "views" => plan.filter(col("definition").is_not_null())?,
            _ => plan,
        };
        let plan = in_words(plan.build()?, &name)?;
        Ok(Some(Arc::new(ViewTable::new(plan, None))))
    }

    fn table_exist(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let is_own = constraint_tables::NAMES.contains(&name.as_str());
        let datafusion = self.datafusion();
        datafusion.is_some_and(|datafusion| is_own || datafusion.table_exist(&name))
    }
}

fn in_words(plan: LogicalPlan, table: &str) -> Result<LogicalPlan> {
    let column = |name: &str| {
        let column = col(format!("{table}.{name}"));
        let said: Expr = match name {
            "data_type" => said_type().call(vec![column]),
            "ordinal_position" if table == "columns" => column + lit(1_u64),
            "description" if table == "routines" => said_of(table, column, |text| text.description),
            "syntax_example" if table == "routines" => said_of(table, column, |text| &text.call),
            _ => column,
        };
        said.alias(name)
    };
    let fields = plan.schema().fields();
    let columns: Vec<Expr> = fields.iter().map(|field| column(field.name())).collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// What is said of each function; of one that the session was given, what DataFusion knows.
fn said_of(table: &str, known: Expr, said: fn(&'static FunctionText) -> &'static str) -> Expr {
    let texts = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let [names, classes, known] = arrays.as_slice() else {
            return exec_err!("the text of one name is said at a time");
        };
        let rows = (names.as_string::<i32>().iter())
            .zip(classes.as_string::<i32>())
            .zip(known.as_string::<i32>());
        let texts: StringArray = rows
            .map(|((name, class), known)| text_of(name?, class?).map(said).or(known))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(texts)))
    };
    let texts = create_udf(
        "text_of_function",
        vec![DataType::Utf8; 3],
        DataType::Utf8,
        Volatility::Immutable,
        Arc::new(texts),
    );
    let name = col(format!("{table}.routine_name"));
    let class = col(format!("{table}.function_type"));
    texts.call(vec![name, class, known])
}

fn text_of(name: &str, class: &str) -> Option<&'static FunctionText> {
    let mut texts = function_texts().iter();
    texts.find(|text| text.name == name && text.class.name().eq_ignore_ascii_case(class))
}

/// The name that SQL has for a type of Arrow, or of a function's parameters, which DataFusion has names of its own for.
fn said(written: &str) -> String {
    if let Ok(data_type) = written.parse::<DataType>() {
        return type_name(&data_type);
    }
    let inner = |kind: &str| written.strip_prefix(kind)?.strip_suffix(')');
    if let Some(item) = inner("List(") {
        return format!("{}[]", said(item));
    }
    match written.split('(').next() {
        Some("String") => "VARCHAR".to_string(),
        Some("Date") => "DATE".to_string(),
        Some("Time") => "TIME".to_string(),
        Some("Decimal") => written.to_uppercase().replace(", ", ","),
        _ => written.to_string(),
    }
}

/// Says types.
fn said_type() -> ScalarUDF {
    let said = |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let [written] = arrays.as_slice() else {
            return exec_err!("one name of a type is said at a time");
        };
        let written = written.as_string::<i32>().iter();
        let said: StringArray = written.map(|written| written.map(said)).collect();
        Ok(ColumnarValue::Array(Arc::new(said)))
    };
    create_udf(
        "said_type",
        vec![DataType::Utf8],
        DataType::Utf8,
        Volatility::Immutable,
        Arc::new(said),
    )
}
