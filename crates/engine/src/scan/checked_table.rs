//! A table in memory whose rows keep its constraints: keys, NOT NULL, CHECK.
//!
//! In: the rows of a statement that writes to the table. Out: all of them in the table, or an error and none.
//! Invariant: rows are checked together with those that are there, before any of them is. NULL is as SQL has it: it fails
//! NOT NULL and PRIMARY KEY, passes CHECK, and repeats in UNIQUE. No row goes to a table that another one has replaced.
//! Not here: how constraints are written (sql/changes/constraints.rs).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::{
    Constraint, Constraints as KnownKeys, DFSchema, DataFusionError, HashSet, Result, SchemaExt,
};
use datafusion::datasource::TableType;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::execution::context::SessionContext;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{CreateMemoryTable, Expr};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, collect_partitioned};
use datafusion::sql::sqlparser::ast::Ident;
use futures::TryStreamExt;
use tokio::sync::RwLockWriteGuard;

use crate::error::Error;
use crate::scan::constraints::{Constraints, KeyKind, UniqueKey};
use crate::scan::error_location::locate_error;
use crate::scan::row_keys::RowKey;
use crate::scan::schema::replacing_now;
use crate::scan::wrapped::as_wrapped;

/// Constraints of a table with known columns.
#[derive(Debug)]
pub(crate) struct Rules {
    keys: Vec<(Vec<usize>, KeyKind)>,
    not_null: Vec<usize>,
    checks: Vec<(Arc<dyn PhysicalExpr>, String)>,
}

impl Rules {
    /// The rules for rows of `schema`.
    pub(crate) fn new(
        constraints: &Constraints,
        schema: &SchemaRef,
        state: &SessionState,
    ) -> Result<Rules> {
        let place = |name: &Ident| place_of(name, schema);
        let mut keys = Vec::new();
        for key in &constraints.keys {
            let columns: Result<Vec<usize>> = key.columns.iter().map(place).collect();
            keys.push((columns?, key.kind));
        }
        let not_null = constraints.not_null.iter().map(place);
        let mut checks = Vec::new();
        let columns = DFSchema::try_from(Arc::clone(schema))?;
        for check in &constraints.checks {
            let condition = state.create_logical_expr(check, &columns)?;
            let condition = state.create_physical_expr(condition, &columns)?;
            if condition.data_type(schema)? != DataType::Boolean {
                let message = format!("CHECK ({check}) is no condition");
                return Err(Error::planning(message).into());
            }
            checks.push((condition, check.clone()));
        }
        Ok(Rules {
            keys,
            not_null: not_null.collect::<Result<_>>()?,
            checks,
        })
    }

    /// The columns of a table with these rules: NOT NULL where they say so.
    pub(crate) fn schema(&self, schema: &SchemaRef) -> SchemaRef {
        let fields = schema.fields().iter().enumerate();
        let fields = fields.map(|(index, field)| {
            let nullable = field.is_nullable() && !self.not_null.contains(&index);
            field.as_ref().clone().with_nullable(nullable)
        });
        let metadata = schema.metadata().clone();
        Arc::new(Schema::new_with_metadata(
            fields.collect::<Vec<_>>(),
            metadata,
        ))
    }

    /// Places of the columns of each key.
    pub(crate) fn keys(&self) -> &[(Vec<usize>, KeyKind)] {
        &self.keys
    }

    /// The rules as constraints of a table with these columns.
    pub(super) fn constraints(&self, schema: &SchemaRef) -> Constraints {
        let name = |&column: &usize| Ident::with_quote('"', schema.field(column).name());
        let keys = self.keys.iter().map(|(columns, kind)| UniqueKey {
            columns: columns.iter().map(name).collect(),
            kind: *kind,
        });
        Constraints {
            keys: keys.collect(),
            not_null: self.not_null.iter().map(name).collect(),
            checks: self.checks(),
        }
    }

    /// The conditions as SQL, each with the names of its columns.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.checks.iter().map(|(condition, text)| {
            let names = collect_columns(condition).into_iter();
            let names: BTreeSet<String> = names.map(|column| column.name().to_string()).collect();
            (text.as_str(), names.into_iter().collect())
        })
    }

    /// The conditions as SQL.
    pub(crate) fn checks(&self) -> Vec<String> {
        self.checks.iter().map(|(_, text)| text.clone()).collect()
    }

    /// The keys none of whose columns may be NULL.
    fn known(&self, schema: &SchemaRef) -> KnownKeys {
        let keys = self.keys.iter().filter(|(columns, _)| {
            let mut fields = columns.iter().map(|&column| schema.field(column));
            fields.all(|field| !field.is_nullable())
        });
        let keys = keys.map(|(columns, _)| Constraint::PrimaryKey(columns.clone()));
        KnownKeys::new_unverified(keys.collect())
    }

    /// Whether `new` rows may stand beside the `old` ones.
    pub(crate) fn check(&self, old: &[RecordBatch], new: &[RecordBatch]) -> Result<()> {
        self.check_change(old, &HashSet::new(), new)
    }

    /// Whether `new` rows may stand beside the `old` ones without those at the places `gone`.
    pub(super) fn check_change(
        &self,
        old: &[RecordBatch],
        gone: &HashSet<usize>,
        new: &[RecordBatch],
    ) -> Result<()> {
        for batch in new {
            for &column in &self.not_null {
                if batch.column(column).logical_null_count() > 0 {
                    let name = batch.schema_ref().field(column).name().clone();
                    return Err(violated(format!(
                        "column '{name}' is NOT NULL, and a row has NULL there"
                    )));
                }
            }
            for (condition, text) in &self.checks {
                let held = condition.evaluate(batch)?.into_array(batch.num_rows())?;
                let held = held.as_boolean();
                if held.iter().any(|holds| holds == Some(false)) {
                    return Err(violated(format!("a row does not keep CHECK ({text})")));
                }
            }
        }
        self.keys
            .iter()
            .try_for_each(|(columns, kind)| check_key((columns, *kind), (old, gone), new))
    }
}

fn violated(message: String) -> DataFusionError {
    Error::Execution(format!("constraint: {message}")).into()
}

fn place_of(name: &Ident, schema: &SchemaRef) -> Result<usize> {
    let fields = schema.fields();
    let exact = fields.iter().position(|field| *field.name() == name.value);
    let same = || {
        let alike = |field: &Arc<Field>| {
            name.quote_style.is_none() && field.name().eq_ignore_ascii_case(&name.value)
        };
        fields.iter().position(alike)
    };
    exact.or_else(same).ok_or_else(|| {
        Error::UnknownColumn {
            name: name.value.clone(),
            nearest: Vec::new(),
            position: None,
        }
        .into()
    })
}

/// Whether no two rows have the same key. The old ones, which have not, are looked up among the new ones.
fn check_key(
    (columns, kind): (&[usize], KeyKind),
    (old, gone): (&[RecordBatch], &HashSet<usize>),
    new: &[RecordBatch],
) -> Result<()> {
    let Some(first) = new.first() else {
        return Ok(());
    };
    let key = RowKey::new(columns, kind, &first.schema())?;
    let mut seen: HashSet<Box<[u8]>> = HashSet::new();
    for batch in new {
        key.each(batch, |row, values| match seen.insert(Box::from(values)) {
            true => Ok(()),
            false => Err(repeated((columns, kind), &key, batch, row)),
        })?;
    }
    if seen.is_empty() {
        return Ok(());
    }
    let mut start = 0;
    for batch in old {
        key.each(batch, |row, values| {
            match seen.contains(values) && !gone.contains(&(start + row)) {
                true => Err(repeated((columns, kind), &key, batch, row)),
                false => Ok(()),
            }
        })?;
        start += batch.num_rows();
    }
    Ok(())
}

fn repeated(
    (columns, kind): (&[usize], KeyKind),
    key: &RowKey<'_>,
    rows: &RecordBatch,
    row: usize,
) -> DataFusionError {
    let schema = rows.schema();
    let names = columns.iter();
    let names: Vec<&str> = names
        .map(|&column| schema.field(column).name().as_str())
        .collect();
    let values = key.values(rows);
    let shown: std::result::Result<Vec<String>, _> = values
        .iter()
        .map(|column| array_value_to_string(column, row))
        .collect();
    let shown = match shown {
        Ok(shown) => shown.join(", "),
        Err(error) => return error.into(),
    };
    let kind = match kind {
        KeyKind::Primary => "PRIMARY KEY",
        _ => "UNIQUE",
    };
    let names = names.join(", ");
    violated(format!("{kind} ({names}) has the value {shown} twice"))
}

pub(super) fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
    let metadata = schema.metadata().clone();
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        metadata,
    ))
}

/// Makes a table of the rows of a query; one that is replaced goes when the rows are there and keep the constraints.
pub(crate) async fn create(
    context: &SessionContext,
    table: CreateMemoryTable,
    constraints: Option<&Constraints>,
) -> Result<()> {
    let name = table.name.clone();
    let mut replaced = None;
    if context.table_exist(name.clone())? {
        match (table.if_not_exists, table.or_replace) {
            (true, false) => return Ok(()),
            (false, true) => replaced = context.table_provider(name.clone()).await.ok(),
            (true, true) => {
                let message = "OR REPLACE and IF NOT EXISTS in one statement".to_string();
                return Err(Error::unsupported(message).into());
            }
            (false, false) => {
                let message = format!("Table '{name}' already exists");
                return Err(Error::Execution(message).into());
            }
        }
    }
    let replaces = table.or_replace;
    let made = of_query(context, table, constraints).await?;
    replacing_now(|| {
        if replaces {
            context.deregister_table(name.clone())?;
        }
        context.register_table(name, made).map(|_| ())
    })?;
    retire(replaced).await;
    Ok(())
}

/// The table of the rows of a query.
pub(crate) async fn of_query(
    context: &SessionContext,
    table: CreateMemoryTable,
    constraints: Option<&Constraints>,
) -> Result<Arc<dyn TableProvider>> {
    let state = context.state();
    // That a query has no NULL says nothing of what is inserted later.
    let rows = state.create_physical_plan(&table.input).await?;
    let schema = made(table.input.schema().as_arrow(), &rows.schema());
    let parts = match collect_partitioned(Arc::clone(&rows), state.task_ctx()).await {
        Ok(parts) => parts,
        Err(error) => {
            let error = locate_error(error.into(), &rows, state.task_ctx()).await;
            return Err(error.into());
        }
    };
    let none = Constraints::default();
    let rules = Rules::new(constraints.unwrap_or(&none), &schema, &state)?;
    // Rows of one part are added in their order, those of several in turn.
    let rows = with_schema(parts.concat(), &schema)?;
    rules.check(&[], &rows)?;
    let schema = rules.schema(&schema);
    let rows = with_schema(rows, &schema)?;
    let defaults = table.column_defaults.into_iter().collect();
    let rows = MemTable::try_new(schema, vec![rows])?.with_column_defaults(defaults);
    Ok(Arc::new(CheckedTable::new(rows, rules)))
}

/// Lets no more rows into a table that has lost its name: a statement that is older than that has an error instead.
pub(crate) async fn retire(table: Option<Arc<dyn TableProvider>>) {
    if let Some(table) = &table
        && let Some(table) = table.downcast_ref::<CheckedTable>()
    {
        let _held = held(&table.rows).await;
        table.retired.store(true, Ordering::Release);
    }
}

/// The table's schema: names as planned, types as the rows have them, all columns may be NULL. Coercion can change the type of a
/// CASE or of VALUES.
fn made(planned: &Schema, rows: &Schema) -> SchemaRef {
    let fields = planned.fields().iter().zip(rows.fields());
    let fields = fields.map(|(planned, rows)| {
        let field = planned.as_ref().clone();
        field
            .with_data_type(rows.data_type().clone())
            .with_nullable(true)
    });
    let metadata = planned.metadata().clone();
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        metadata,
    ))
}

pub(super) fn with_schema(part: Vec<RecordBatch>, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let batches = part.into_iter();
    let batches =
        batches.map(|batch| RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec()));
    Ok(batches.collect::<std::result::Result<_, _>>()?)
}

/// A table in memory with rules for its rows.
#[derive(Debug)]
pub(crate) struct CheckedTable {
    pub(super) rows: Arc<MemTable>,
    pub(super) rules: Arc<Rules>,
    /// Set, while no statement writes to it, when its name is another table's or nobody's.
    pub(super) retired: Arc<AtomicBool>,
    /// Keys without NULL, which DataFusion may rely on: they hold.
    known: KnownKeys,
}

impl CheckedTable {
    pub(crate) fn new(rows: MemTable, rules: Rules) -> CheckedTable {
        let known = rules.known(&rows.schema());
        CheckedTable {
            rows: Arc::new(rows),
            rules: Arc::new(rules),
            retired: Arc::default(),
            known,
        }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }
}

#[async_trait]
impl TableProvider for CheckedTable {
    as_wrapped!(rows: schema, get_column_default);

    fn constraints(&self) -> Option<&KnownKeys> {
        Some(&self.known)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.scan(state, projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        _: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if operation != InsertOp::Append {
            let message = format!("{operation} of a table in memory");
            return Err(Error::unsupported(message).into());
        }
        self.schema()
            .logically_equivalent_names_and_types(&input.schema())?;
        let sink = CheckedSink {
            schema: nullable(&self.schema()),
            rows: Arc::clone(&self.rows),
            rules: Arc::clone(&self.rules),
            retired: Arc::clone(&self.retired),
        };
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }

    async fn delete_from(
        &self,
        state: &dyn Session,
        filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.change(state, RowChange::Delete(filters)).await
    }

    async fn update(
        &self,
        state: &dyn Session,
        assignments: Vec<(String, Expr)>,
        filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let change = RowChange::Update(assignments, filters);
        self.change(state, change).await
    }
}

/// What becomes of the rows that pass filters.
enum RowChange {
    Delete(Vec<Expr>),
    Update(Vec<(String, Expr)>, Vec<Expr>),
}

impl CheckedTable {
    /// Changes a copy, and puts it in the place of the rows if it keeps the rules. Other statements wait meanwhile: what they wrote
    /// would be lost. None of its expressions reads the table (session/row_changes.rs has those that do).
    async fn change(
        &self,
        state: &dyn Session,
        change: RowChange,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut held = held(&self.rows).await;
        check_name(&self.retired)?;
        let nullable = nullable(&self.schema());
        let parts = held.iter().map(|part| {
            let batches = part
                .iter()
                .map(|batch| batch.clone().with_schema(Arc::clone(&nullable)));
            batches.collect::<std::result::Result<Vec<_>, _>>()
        });
        let copy = MemTable::try_new(
            nullable.clone(),
            parts.collect::<std::result::Result<_, _>>()?,
        )?;
        let (counted, may_break) = match change {
            RowChange::Delete(filters) => (copy.delete_from(state, filters).await?, false),
            RowChange::Update(assignments, filters) => {
                (copy.update(state, assignments, filters).await?, true)
            }
        };
        let mut changed = Vec::new();
        for part in &copy.batches {
            changed.push(part.read().await.clone());
        }
        if may_break {
            self.rules.check(&[], &changed.concat())?;
        }
        for (part, batches) in held.iter_mut().zip(changed) {
            **part = with_schema(batches, &self.schema())?;
        }
        Ok(counted)
    }
}

/// All parts of a table, for one statement alone.
pub(super) async fn held(table: &MemTable) -> Vec<RwLockWriteGuard<'_, Vec<RecordBatch>>> {
    let mut held = Vec::with_capacity(table.batches.len());
    for part in &table.batches {
        held.push(part.write().await);
    }
    held
}

/// An error of a table that has lost its name; asked while it is held.
fn check_name(retired: &AtomicBool) -> Result<()> {
    if retired.load(Ordering::Acquire) {
        let message = "another statement has altered, replaced or dropped the table meanwhile; \
                       it has written nothing, run it again";
        return Err(Error::Execution(message.to_string()).into());
    }
    Ok(())
}

/// Where rows go that are written to a table.
struct CheckedSink {
    /// The table's columns, all nullable: NULL is what the rules look for.
    schema: SchemaRef,
    rows: Arc<MemTable>,
    rules: Arc<Rules>,
    retired: Arc<AtomicBool>,
}

impl fmt::Debug for CheckedSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedSink").finish_non_exhaustive()
    }
}

impl DisplayAs for CheckedSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckedTable")
    }
}

#[async_trait]
impl DataSink for CheckedSink {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        _: &Arc<TaskContext>,
    ) -> Result<u64> {
        let new: Vec<RecordBatch> = data.try_collect().await?;
        let number = new.iter().map(|batch| batch.num_rows() as u64).sum();
        let rules = Some(self.rules.as_ref());
        match append(&self.rows, rules, Some(&self.retired), new).await? {
            true => Ok(number),
            false => check_name(&self.retired).map(|()| 0),
        }
    }
}

/// Puts rows behind those of a table, if they keep its rules beside these; false of a table that has lost its name.
pub(super) async fn append(
    table: &MemTable,
    rules: Option<&Rules>,
    retired: Option<&AtomicBool>,
    new: Vec<RecordBatch>,
) -> Result<bool> {
    // Held until the rows are there, so that no other statement writes a row of the same key meanwhile.
    let mut held = held(table).await;
    if retired.is_some_and(|retired| check_name(retired).is_err()) {
        return Ok(false);
    }
    if let Some(rules) = rules {
        let old: Vec<RecordBatch> = held.iter().flat_map(|part| part.iter().cloned()).collect();
        rules.check(&old, &new)?;
    }
    if let Some(first) = held.first_mut() {
        first.extend(with_schema(new, &table.schema())?);
    }
    Ok(true)
}
