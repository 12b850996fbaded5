//! `CREATE EXTERNAL TABLE`: DataFusion's table with its folders read as ours.
//!
//! In: a table as DataFusion makes it: locations, a format, columns.
//! Out: the same, whose scans see the files that are there now.
//! Invariant: a folder's value is what its name says: `07` is the number 7, NULL's folder is NULL, hidden files are no data.
//! A file whose folders lack a column is an error that names it.
//! Not here: writing into the table, which is DataFusion's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::datasource::listing::{ListingTable, ListingTableUrl, PartitionedFile};
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{CreateExternalTable, Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt;
use object_store::ObjectMeta;

use super::access::Access;
use super::hive::{decoded_pairs, folder_value};
use super::location::is_hidden;
use super::parquet::Parquet;
use super::steady_format::Steady;
use super::table::{FilesTable, decided};
use super::unbounded::UnboundedTable;
use super::wrapped::as_wrapped;
use crate::error::Error;
use crate::error::from_datafusion::PATH_UNKNOWN;

/// The formats of `STORED AS`.
const FORMATS: [&str; 5] = ["PARQUET", "CSV", "JSON", "NDJSON", "ARROW"];

/// Factories of all formats, with our table around DataFusion's own.
pub(crate) fn factories() -> HashMap<String, Arc<dyn TableProviderFactory>> {
    let factory: Arc<dyn TableProviderFactory> = Arc::new(ExternalTables);
    let named = FORMATS.map(|name| (name.to_string(), Arc::clone(&factory)));
    named.into_iter().collect()
}

#[derive(Debug)]
struct ExternalTables;

#[async_trait]
impl TableProviderFactory for ExternalTables {
    async fn create(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let access = Access::of(state.config())?;
        for location in &command.locations {
            access.check_location(location)?;
        }
        let with_files = with_file_columns(state, command).await?;
        let command = with_files.as_ref().unwrap_or(command);
        let table = create(state, command).await?;
        match table.downcast_ref::<ListingTable>() {
            Some(listing) if !command.unbounded => {
                let partitions = listing.options().table_partition_cols.clone();
                let schema = with_nullable(&table.schema(), &partitions);
                Ok(Arc::new(ExternalTable { table, schema }))
            }
            Some(_) => Ok(table),
            None => {
                let locations = &command.locations;
                Ok(Arc::new(UnboundedTable::new(table, locations, state)?))
            }
        }
    }
}

async fn create(
    state: &dyn Session,
    command: &CreateExternalTable,
) -> Result<Arc<dyn TableProvider>> {
    let table = DefaultTableFactory::new().create(state, command).await;
    table.map_err(|error| named(error, &command.locations))
}

/// The command with the files' columns, where it only has types for those of folders, `PARTITIONED BY (year INT)`.
async fn with_file_columns(
    state: &dyn Session,
    command: &CreateExternalTable,
) -> Result<Option<CreateExternalTable>> {
    let folders = &command.table_partition_cols;
    let is_folder = |field: &FieldRef| folders.contains(field.name());
    let typed = command.schema.fields();
    if typed.is_empty() || !typed.iter().all(is_folder) {
        return Ok(None);
    }
    let mut command = command.clone();
    let untyped = CreateExternalTable {
        schema: Arc::new(DFSchema::empty()),
        ..command.clone()
    };
    let files = create(state, &untyped).await?.schema();
    let own = files.fields().iter().filter(|field| !is_folder(field));
    let fields: Vec<FieldRef> = own.chain(typed).cloned().collect();
    command.schema = Arc::new(DFSchema::from_unqualified_fields(
        fields.into(),
        files.metadata().clone(),
    )?);
    Ok(Some(command))
}

/// An error about a file that does not say which has the location in the statement.
fn named(error: DataFusionError, locations: &[String]) -> DataFusionError {
    let location = || locations.join(", ");
    let error = match Error::from(error) {
        Error::Format {
            path,
            line,
            message,
        } if path == PATH_UNKNOWN => Error::Format {
            path: location(),
            line,
            message,
        },
        Error::Io { path, message } if path == PATH_UNKNOWN => Error::Io {
            path: location(),
            message,
        },
        other => other,
    };
    error.into()
}

/// The schema with columns of folders that may be NULL.
pub(super) fn with_nullable(schema: &SchemaRef, partitions: &[(String, DataType)]) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let is_folder = partitions.iter().any(|(name, _)| name == field.name());
        let field = field.as_ref().clone();
        match is_folder {
            true => field.with_nullable(true),
            false => field,
        }
    });
    let fields = fields.collect::<Vec<Field>>();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[derive(Debug)]
struct ExternalTable {
    /// DataFusion's.
    table: Arc<dyn TableProvider>,
    schema: SchemaRef,
}

impl ExternalTable {
    fn listing(&self) -> Result<&ListingTable> {
        let listing = self.table.downcast_ref::<ListingTable>();
        listing.ok_or_else(|| Error::Internal("an external table of no files".to_string()).into())
    }

    /// The table over the files that are there now.
    async fn now(&self, state: &dyn Session) -> Result<Option<FilesTable>> {
        let listing = self.listing()?;
        let options = listing.options();
        let Some(store_url) = listing
            .table_paths()
            .first()
            .map(|path| path.object_store())
        else {
            return Ok(None);
        };
        let store = state.runtime_env().object_store(&store_url)?;
        let mut files = Vec::new();
        for path in listing.table_paths() {
            let extension = &options.file_extension;
            let listed = path
                .list_all_files(state, store.as_ref(), extension)
                .await?;
            let mut listed: Vec<ObjectMeta> = listed.try_collect().await?;
            listed.retain(|meta| !has_hidden_part(path, meta));
            listed.sort_by(|a, b| a.location.cmp(&b.location));
            for meta in listed {
                let values = values(path, &meta, &options.table_partition_cols)?;
                files.push(PartitionedFile::new_from_meta(meta).with_partition_values(values));
            }
        }
        // Locations may overlap: this is one table, no list of files.
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.object_meta.location.clone()));
        let partitions = options.table_partition_cols.len();
        let own = self.schema.fields().len() - partitions;
        let file_schema = self.schema.project(&(0..own).collect::<Vec<_>>())?;
        let folders: Vec<FieldRef> = self.schema.fields()[own..].to_vec();
        let columns = TableSchema::builder(Arc::new(file_schema))
            .with_table_partition_cols(folders)
            .build();
        let format = Arc::clone(&options.format);
        let is_steady = format.is::<Parquet>() || format.is::<Steady>();
        let format = match is_steady {
            true => format,
            false => Arc::new(Steady::new(format)),
        };
        let places = (0..self.schema.fields().len()).collect();
        let table = FilesTable::new(store_url, format, columns, places, files)?;
        let declared = listing.try_create_output_ordering(state.execution_props(), &[])?;
        Ok(Some(table.with_declared_ordering(declared)))
    }
}

fn has_hidden_part(path: &ListingTableUrl, meta: &ObjectMeta) -> bool {
    let parts = path.strip_prefix(&meta.location);
    parts.is_some_and(|mut parts| parts.any(is_hidden))
}

/// The values that a file's folders have.
fn values(
    path: &ListingTableUrl,
    meta: &ObjectMeta,
    columns: &[(String, DataType)],
) -> Result<Vec<ScalarValue>> {
    let folders = path.strip_prefix(&meta.location).into_iter().flatten();
    let mut folders: Vec<&str> = folders.collect();
    folders.pop();
    let pairs = decoded_pairs(&folders);
    let value = |(name, kind): &(String, DataType)| {
        let found = pairs.iter().find(|(folder, _)| folder == name);
        let value = found.and_then(|(_, text)| folder_value(text.clone(), kind));
        value.ok_or_else(|| {
            Error::bad_file(
                format!("/{}", meta.location),
                match found {
                    None => format!("it lies in no folder '{name}=…'"),
                    Some((_, text)) => format!(
                        "its folder '{name}={}' names no {}",
                        text.as_deref().unwrap_or_default(),
                        crate::error::types::type_name(kind)
                    ),
                },
            )
            .into()
        })
    };
    columns.iter().map(value).collect()
}

#[async_trait]
impl TableProvider for ExternalTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    as_wrapped!(table: constraints, table_type, get_table_definition, get_column_default);

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let options = self.listing()?.options();
        let names = options.table_partition_cols.iter();
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        Ok(decided(&names, filters))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.now(state).await? {
            Some(table) => table.scan(state, projection, filters, limit).await,
            None => self.table.scan(state, projection, filters, limit).await,
        }
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        how: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.table.insert_into(state, input, how).await
    }
}
