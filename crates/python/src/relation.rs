//! A relation: the lazy result of one statement.
//!
//! In: a statement with its parameters and the variables that it names. Out: rows, tables and streams, each from a run of its own.
//! Invariant: the schema is the physical plan's; every run plans anew (a plan runs once), sees the same variables, and
//! fails rather than give columns of other types than announced. A statement that changes something has run already.
//! Not here: rows (rows.rs), Arrow out (export.rs), text and HTML (grouse/_display.py).

mod recipe;
pub(crate) mod source;
mod scans;
mod variables;
pub(crate) mod cursor;

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use grouse::Position;
use grouse::only_reads;
use grouse::sql_name;
use grouse::{Params, Query};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::borrowed::Borrowed;
use crate::error::{invalid, raise};
use crate::export::{self, Batches};
use crate::frame;
use crate::object_cache::ObjectCache;
use crate::params::from_python;
use crate::profile::Profile;
use crate::rows::tuples;
use crate::running::Running;
use crate::shared::Shared;
use crate::stop::StopFlag;
use crate::wait::{lock, try_lock};
use cursor::{Cursor, Rows};
use recipe::{InnerQuery, Recipe, on_its_own};
use source::{Lasting, Source, in_memory};
use variables::{Consumer, Found};

/// Rows of a relation that its `repr` and a notebook show.
const PREVIEW_ROWS: usize = 20;
/// How long these count the rows that they do not show.
const COUNT_PATIENCE: Duration = Duration::from_millis(200);

/// Plan nodes at the root of statements that change something and say how many rows.
const ACTIONS: &[&str] = &["DataSinkExec", "DmlResultExec"];

/// A statement, and what came with it.
pub struct Given<'a, 'py> {
    pub text: &'a str,
    pub params: Params,
    /// Where it begins in a script.
    pub start: Option<Position>,
    /// Objects by the names that the statement has for them.
    pub tables: Option<&'a Bound<'py, PyDict>>,
}

/// The lazy result of a statement: columns and types are known, rows come when they are asked for.
///
/// Each of `df()`, `pl()`, `arrow()`, `to_batches()`, `__arrow_c_stream__`, iteration and `explain` runs the query anew;
/// `fetchone`, `fetchmany` and `fetchall` share one run. A running query stops when what reads it is dropped or closed.
/// Anything that reads rows may raise a subclass of grouse.Error, and KeyboardInterrupt on Ctrl-C.
///
/// Methods that are written in Python, on top of these, are in grouse/_relation of the package.
#[pyclass(frozen, dict, weakref, module = "grouse")]
pub struct Relation {
    shared: Arc<Shared>,
    recipe: Recipe,
    schema: SchemaRef,
    /// The result of a statement that has run.
    kept: Option<Vec<RecordBatch>>,
    /// The plan that told the schema; the first run takes it.
    planned: Mutex<Option<Query>>,
    cursor: Mutex<Option<Cursor>>,
    /// The run of the newest iterator.
    iterated: Mutex<Weak<Mutex<Cursor>>>,
    preview: Mutex<Option<Preview>>,
    /// Set by `close`; the run of the fetch methods looks at it.
    closed: StopFlag,
}

/// The first batches of the result, and whether there are more rows.
#[derive(Clone)]
struct Preview {
    batches: Vec<RecordBatch>,
    more: bool,
    /// The number of all rows, if it was known soon.
    total: Option<usize>,
}

impl Relation {
    /// Plans a statement.
    pub fn new(py: Python<'_>, shared: &Arc<Shared>, given: Given<'_, '_>) -> PyResult<Relation> {
        let session = shared.session(py)?;
        let text = given.text;
        let names = shared.unresolved(&session, text);
        let consumer = Consumer {
            connection: shared,
            threads: session.options().threads_effective(),
            lasting: match only_reads(text) {
                true => Lasting::Statement,
                false => Lasting::Longer,
            },
        };
        let mut found = Found::of(py, given.tables, &consumer)?;
        found.search(py, &names, &consumer)?;
        let borrowed = found.borrowed();
        let recipe = Recipe {
            text: text.into(),
            params: given.params,
            tables: Arc::new(found.tables),
            queries: found.queries.into(),
            borrowed,
        };
        let query = shared.wait(py, recipe.plan(&session))?.map_err(|error| {
            let start = given.start;
            let failure = raise(start.map_or(error.clone(), |start| error.moved_to(start)));
            with_notes(py, failure, &found.notes)
        })?;
        shared.warn(py)?;
        Relation::planned(py, shared, recipe, query)
    }

    /// The relation of a statement's first plan; one that changes something runs now.
    fn planned(
        py: Python<'_>,
        shared: &Arc<Shared>,
        recipe: Recipe,
        query: Query,
    ) -> PyResult<Relation> {
        let schema = query.schema();
        let (mut kept, mut planned) = (None, None);
        let is_action = query.changes_rows() || ACTIONS.contains(&query.plan().name());
        if schema.fields().is_empty() || is_action {
            kept = Some(Running::start(py, query, shared)?.collect(py)?);
        } else {
            planned = Some(query);
        }
        Ok(Relation {
            shared: Arc::clone(shared),
            recipe,
            schema,
            kept,
            planned: Mutex::new(planned),
            cursor: Mutex::new(None),
            iterated: Mutex::new(Weak::new()),
            preview: Mutex::new(None),
            closed: StopFlag::default(),
        })
    }

    /// Runs the statement for its effects.
    pub fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let mut running = self.run(py)?;
        while running.next(py)?.is_some() {}
        Ok(())
    }

    fn check_open(&self) -> PyResult<()> {
        match self.closed.is_set() {
            true => Err(invalid("relation", "it is closed")),
            false => Ok(()),
        }
    }

    /// An error for what would run a statement again that has changed something.
    fn check_not_run(&self, what: &str) -> PyResult<()> {
        match self.kept.is_some() {
            true => Err(invalid(
                "relation",
                &format!("the statement has run and changed something; {what} would run it again"),
            )),
            false => Ok(()),
        }
    }

    /// Starts a run.
    fn run(&self, py: Python<'_>) -> PyResult<Running> {
        self.check_open()?;
        if let Some(batches) = &self.kept {
            return Ok(Running::kept(Arc::clone(&self.schema), batches.clone()));
        }
        let session = self.shared.session(py)?;
        let planned = lock(py, &self.planned)?.take();
        let query = match planned {
            Some(query) => query,
            None => self
                .shared
                .wait(py, self.recipe.plan(&session))?
                .map_err(raise)?,
        };
        self.shared.warn(py)?;
        self.recipe
            .check(&query.schema(), &self.schema)
            .map_err(raise)?;
        Running::start(py, query, &self.shared)
    }

    /// Starts a run whose batches stay as they are, whatever happens to the objects that were read.
    fn run_owned(&self, py: Python<'_>) -> PyResult<Running> {
        Ok(self.run(py)?.owning(self.recipe.borrowed.clone()))
    }

    /// The relation as a table of another statement.
    pub fn as_source(&self, py: Python<'_>, lasting: Lasting) -> PyResult<Source> {
        let session = self.shared.session(py)?;
        let schema = Arc::clone(&self.schema);
        match &self.kept {
            Some(batches) => {
                let threads = session.options().threads_effective();
                in_memory(schema, batches.clone(), threads).map(Source::own)
            }
            None => {
                let borrowed = match lasting {
                    Lasting::Statement => self.recipe.borrowed.clone(),
                    Lasting::Longer => Borrowed::default(),
                };
                let table = on_its_own(self.recipe.clone(), session, schema, lasting);
                let table = table.map_err(|failure| raise(failure.into()))?;
                Ok(Source { table, borrowed })
            }
        }
    }

    /// The relation as a part of another statement; None where it has to run on its own.
    pub fn as_query(&self, name: &str, consumer: &Consumer<'_>) -> Option<InnerQuery> {
        let is_safe = consumer.lasting == Lasting::Statement || self.recipe.borrowed.is_empty();
        let is_here = Arc::ptr_eq(&self.shared, consumer.connection);
        let is_one = is_safe && is_here && self.kept.is_none() && !self.closed.is_set();
        is_one.then(|| InnerQuery {
            name: name.to_string(),
            recipe: self.recipe.clone(),
            schema: Arc::clone(&self.schema),
        })
    }

    fn collect(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        self.run_owned(py)?.collect(py)
    }

    /// Does something with the run of the fetch methods, which the first of them starts.
    fn fetch<T>(
        &self,
        py: Python<'_>,
        take: impl FnOnce(&mut Cursor) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut cursor = lock(py, &self.cursor)?;
        self.check_open()?;
        if cursor.is_none() {
            let running = self.run(py)?.stopped_by(self.closed.clone());
            *cursor = Some(Cursor::new(running));
        }
        let open = cursor.as_mut().expect("it was just set");
        take(open).inspect_err(|_| *cursor = None)
    }

    /// Enough batches for the first `rows_max` rows; the query stops there, or when `patience` with the others is at its end.
    fn first_rows(&self, py: Python<'_>, rows_max: usize, patience: Duration) -> PyResult<Preview> {
        let mut running = self.run(py)?;
        let (mut batches, mut rows) = (Vec::new(), 0);
        while let Some(batch) = running.next(py)? {
            let left = rows_max - rows;
            if batch.num_rows() > left {
                batches.push(batch.slice(0, left));
                let known = rows + batch.num_rows();
                let total = match patience.is_zero() {
                    true => None,
                    false => running.count_left(py, patience)?.map(|more| known + more),
                };
                running.stop(py);
                return Ok(Preview {
                    batches,
                    more: true,
                    total,
                });
            }
            rows += batch.num_rows();
            batches.push(batch);
        }
        Ok(Preview {
            batches,
            more: false,
            total: Some(rows),
        })
    }

    /// The preview, kept: a notebook asks for text and HTML of the same relation.
    fn preview(&self, py: Python<'_>) -> PyResult<Preview> {
        let kept = lock(py, &self.preview)?.clone();
        if let Some(preview) = kept {
            return Ok(preview);
        }
        let preview = self.first_rows(py, PREVIEW_ROWS, COUNT_PATIENCE)?;
        *lock(py, &self.preview)? = Some(preview.clone());
        Ok(preview)
    }

    fn display<'py>(
        &self,
        py: Python<'py>,
        form: &str,
        preview: &Preview,
    ) -> PyResult<DisplayCall<'py>> {
        let (rows, mut cache) = (PyList::empty(py), ObjectCache::default());
        for batch in &preview.batches {
            for row in tuples(py, batch, &mut cache)? {
                rows.append(row)?;
            }
        }
        let function = py.import("grouse._display")?.getattr(form)?;
        Ok(DisplayCall {
            function,
            columns: self.columns(),
            types: self.types(),
            rows,
            more: preview.more,
            total: preview.total,
        })
    }
}

struct DisplayCall<'py> {
    function: Bound<'py, PyAny>,
    columns: Vec<String>,
    types: Vec<String>,
    rows: Bound<'py, PyList>,
    more: bool,
    total: Option<usize>,
}

impl<'py> DisplayCall<'py> {
    fn text(self, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let Self {
            function,
            columns,
            types,
            rows,
            more,
            total,
        } = self;
        function.call((columns, types, rows, more, total), keywords)
    }
}

#[pymethods]
impl Relation {
    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }

    /// Types of the columns, in order, such as "int64", "varchar", "timestamp(6) UTC", "list(double)"; DuckDB has objects.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .map(|field| sql_name(field.data_type()))
            .collect()
    }

    /// The next row as a tuple, or None after the last one.
    ///
    /// The first of the fetch methods starts a run, the others continue it.
    fn fetchone<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        Ok(self.fetch(py, |cursor| cursor.take(py, 1))?.pop())
    }

    /// At most `size` more rows as a list of tuples; an empty list after the last one.
    #[pyo3(signature = (size=1))]
    fn fetchmany<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.fetch(py, |cursor| cursor.take(py, size))?)
    }

    /// All rows that are left as a list of tuples; the next fetch starts over.
    ///
    /// Values are int, float, decimal.Decimal, str, bytes, bool, datetime.date, datetime.datetime (aware if the column has a
    /// zone), datetime.time, datetime.timedelta, list, dict (struct and map) or None. Python counts microseconds: nanoseconds are cut.
    fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.fetch(py, |cursor| cursor.take(py, usize::MAX))?;
        *lock(py, &self.cursor)? = None;
        PyList::new(py, rows)
    }

    /// Starts the run that the fetch methods read, and waits for its first rows: what goes wrong before them is told now.
    fn execute(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().fetch(py, |cursor| cursor.look_ahead(py))?;
        Ok(slf)
    }

    /// An iterator over the rows of a run of its own.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        let cursor = Arc::new(Mutex::new(Cursor::new(self.run(py)?)));
        *lock(py, &self.iterated)? = Arc::downgrade(&cursor);
        Ok(Rows { cursor })
    }

    /// The number of rows of a statement that has run, or that the newest iterator is going to give. `list(relation)` asks
    /// for it once the iterator is there, and must not run the query twice. None where counting takes a query.
    fn _rows_at_hand(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.check_open()?;
        if let Some(batches) = &self.kept {
            return Ok(Some(batches.iter().map(RecordBatch::num_rows).sum()));
        }
        let iterated = lock(py, &self.iterated)?.upgrade();
        match iterated {
            Some(cursor) => lock(py, &cursor)?.count(py),
            None => Ok(None),
        }
    }

    /// Plans a statement of the same connection, in which `tables` are tables by their names.
    #[pyo3(signature = (text, tables, params=None))]
    fn _plan(
        &self,
        py: Python<'_>,
        text: &str,
        tables: &Bound<'_, PyDict>,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Relation> {
        let given = Given {
            text,
            params: from_python(params)?,
            start: None,
            tables: Some(tables),
        };
        Relation::new(py, &self.shared, given)
    }

    /// The statement as it was given.
    #[getter]
    fn _text(&self) -> &str {
        &self.recipe.text
    }

    /// Whether the text alone means the relation: it names no variables, has no parameters, and has changed nothing.
    #[getter]
    fn _is_text(&self) -> bool {
        let recipe = &self.recipe;
        let names_nothing = recipe.tables.is_empty() && recipe.queries.is_empty();
        self.kept.is_none() && names_nothing && recipe.params == Params::None
    }

    /// The result as a pandas DataFrame. Needs pandas; pyarrow, if there, makes it faster.
    fn df<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        frame::need(py, "pandas", "df()")?;
        frame::pandas(py, self.collect(py)?, &self.schema)
    }

    /// The result as a polars DataFrame. Needs polars.
    fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let polars = frame::need(py, "polars", "pl()")?;
        export::to_polars(&polars, self.collect(py)?, &self.schema)
    }

    /// The result as a pyarrow Table (DuckDB gives a reader, as `to_arrow_reader` does). Needs pyarrow.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        frame::need(py, "pyarrow", "arrow()")?;
        export::to_pyarrow(py, self.collect(py)?, &self.schema)
    }

    /// The same as `arrow`.
    fn to_arrow_table<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.arrow(py)
    }

    /// An iterator over the record batches of a run of its own, as they are made: the result is never held as a whole.
    ///
    /// Gives pyarrow.RecordBatch where pyarrow is installed, else grouse.Batch, which any Arrow library can take.
    fn to_batches(&self, py: Python<'_>) -> PyResult<Batches> {
        Ok(Batches::new(self.run_owned(py)?))
    }

    /// Arrow's C stream of a run of its own: batches are made as the consumer asks.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        export::stream_capsule(py, self.run_owned(py)?, requested_schema)
    }

    /// Arrow's C schema of the result, without running the query.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(pyo3_arrow::ffi::to_schema_pycapsule(
            py,
            self.schema.as_ref(),
        )?)
    }

    /// Prints the first `max_rows` rows as a table of at most `max_width` characters (None: as wide as the terminal).
    #[pyo3(signature = (*, max_rows=PREVIEW_ROWS, max_width=None))]
    fn show(&self, py: Python<'_>, max_rows: usize, max_width: Option<usize>) -> PyResult<()> {
        let preview = match max_rows {
            PREVIEW_ROWS => self.preview(py)?,
            _ => self.first_rows(py, max_rows, Duration::ZERO)?,
        };
        let keywords = PyDict::new(py);
        keywords.set_item("width", max_width)?;
        let text = self.display(py, "text", &preview)?.text(Some(&keywords))?;
        py.import("builtins")?
            .call_method1("print", (text,))
            .map(|_| ())
    }

    /// The plan as text; with analyze=True the query runs and the plan tells what each operator did. A notebook shows hot spots.
    #[pyo3(signature = (*, analyze=false))]
    fn explain<'py>(&self, py: Python<'py>, analyze: bool) -> PyResult<Bound<'py, PyAny>> {
        if analyze {
            self.check_not_run("explain(analyze=True)")?;
        }
        let verb = if analyze {
            "EXPLAIN ANALYZE"
        } else {
            "EXPLAIN"
        };
        let recipe = self.recipe.within(verb);
        let session = self.shared.session(py)?;
        let query = self.shared.wait(py, recipe.plan(&session))?;
        let mut running = Running::start(py, query.map_err(raise)?, &self.shared)?;
        let mut text = String::new();
        for batch in running.collect(py)? {
            for row in tuples(py, &batch, &mut ObjectCache::default())? {
                let (title, plan): (String, String) = row.extract()?;
                text.push_str(&format!("{title}\n{}\n\n", plan.trim_end()));
            }
        }
        let class = py.import("grouse._display")?.getattr("Explained")?;
        class.call1((text.trim_end(),))
    }

    /// Runs the query, without its rows, and tells what each worker did when.
    fn profile(&self, py: Python<'_>) -> PyResult<Profile> {
        self.check_not_run("profile()")?;
        let session = self.shared.session(py)?;
        let query = self.shared.wait(py, self.recipe.plan(&session))?;
        let query = query.map_err(raise)?;
        let recording = query.record();
        let mut running = Running::start(py, query, &self.shared)?;
        while running.next(py)?.is_some() {}
        drop(running);
        Ok(Profile::new(recording.finish(None)))
    }

    /// Stops what the fetch methods run, in whatever thread (grouse.CancelledError is raised there), and gives up the plan;
    /// further use raises grouse.InvalidError.
    fn close(&self, py: Python<'_>) {
        self.closed.set();
        // Where the lock is taken a fetch method waits for rows: it sees the flag, stops the run and lets go.
        let cursor = try_lock(&self.cursor).and_then(|mut cursor| cursor.take());
        if let Some(mut cursor) = cursor {
            cursor.stop(py);
        }
        let planned = try_lock(&self.planned).and_then(|mut planned| planned.take());
        let preview = try_lock(&self.preview).and_then(|mut preview| preview.take());
        py.detach(|| drop((planned, preview)));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.closed.is_set() {
            return Ok(pyo3::types::PyString::new(py, "<grouse.Relation, closed>").into_any());
        }
        self.display(py, "text", &self.preview(py)?)?.text(None)
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.display(py, "as_html", &self.preview(py)?)?.text(None)
    }
}

/// The error, with what is said of variables.
fn with_notes(py: Python<'_>, failure: PyErr, notes: &[String]) -> PyErr {
    if !notes.is_empty() {
        let text = format!("{}; {}", failure.value(py), notes.join("; "));
        // An error without the notes says enough.
        let _ = failure.value(py).setattr("args", (text,));
    }
    failure
}
