//! A relation: the lazy result of one statement.
//!
//! In: a statement with its parameters and the variables that it names. Out: rows, tables and streams, each from a run of its own.
//! Invariant: the schema is the physical plan's; every run plans anew (a plan runs once), sees the same variables, and
//! fails rather than give columns of other types than announced. A statement that changes something has run already.
//! Not here: rows (rows.rs), Arrow out (export.rs), text and HTML (grouse/_display.py).

pub(crate) mod source;
mod variables;

use std::sync::{Arc, Mutex};
use std::vec::IntoIter;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use grouse::Position;
use grouse::only_reads;
use grouse::sql_name;
use grouse::{Error, Params, Query, Session, Tables};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::borrowed::Borrowed;
use crate::error::{invalid, raise};
use crate::export::{self, Batches};
use crate::frame;
use crate::object_cache::ObjectCache;
use crate::profile::Profile;
use crate::rows::tuples;
use crate::running::{Running, StopFlag};
use crate::shared::Shared;
use crate::wait::{lock, try_lock, wait};
use source::{Lasting, Source, in_memory, of_recipe};

/// Rows of a relation that its `repr` and a notebook show.
const PREVIEW_ROWS: usize = 20;

/// Plan nodes at the root of statements that change something and say how many rows.
const ACTIONS: &[&str] = &["DataSinkExec", "DmlResultExec"];

/// What has to be planned for each run.
#[derive(Debug, Clone)]
pub struct Recipe {
    text: Arc<str>,
    params: Params,
    tables: Arc<Tables>,
    /// Memory behind the tables that may change.
    borrowed: Borrowed,
}

impl Recipe {
    /// Memory that rows may stand on which the statement gives as it found them.
    pub fn borrowed(&self) -> Borrowed {
        self.borrowed.clone()
    }

    /// A plan for one run.
    pub async fn plan(&self, session: &Session) -> grouse::Result<Query> {
        session
            .query_over(&self.text, self.params.clone(), Arc::clone(&self.tables))
            .await
    }

    /// The tables behind a statement may have changed since its schema was announced.
    pub fn check(&self, found: &Schema, announced: &Schema) -> grouse::Result<()> {
        if found.fields() == announced.fields() {
            return Ok(());
        }
        let message =
            "the columns of its tables have changed since it was planned; call sql() again"
                .to_string();
        Err(Error::Planning {
            message,
            position: None,
        })
    }
}

/// The lazy result of a statement: columns and types are known, rows come when they are asked for.
///
/// Each of `df()`, `pl()`, `arrow()`, `to_batches()`, `__arrow_c_stream__`, iteration and `explain` runs the query anew;
/// `fetchone`, `fetchmany` and `fetchall` share one run. A running query stops when what reads it is dropped or closed.
/// Anything that reads rows may raise a subclass of grouse.Error, and KeyboardInterrupt on Ctrl-C.
#[pyclass(frozen, module = "grouse")]
pub struct Relation {
    shared: Arc<Shared>,
    recipe: Recipe,
    schema: SchemaRef,
    /// The result of a statement that has run.
    kept: Option<Vec<RecordBatch>>,
    /// The plan that told the schema; the first run takes it.
    planned: Mutex<Option<Query>>,
    cursor: Mutex<Option<Cursor>>,
    preview: Mutex<Option<Preview>>,
    /// Set by `close`; the run of the fetch methods looks at it.
    closed: StopFlag,
}

/// The first batches of the result, and whether there are more rows.
#[derive(Clone)]
struct Preview {
    batches: Vec<RecordBatch>,
    more: bool,
}

impl Relation {
    /// Plans a statement that starts at `start` of a script.
    pub fn new(
        py: Python<'_>,
        shared: &Arc<Shared>,
        text: &str,
        params: Params,
        start: Option<Position>,
    ) -> PyResult<Relation> {
        let session = shared.session(py)?;
        // A text that cannot be parsed fails below, with its position.
        let names = session.unresolved(text).unwrap_or_default();
        let lasting = match only_reads(text) {
            true => Lasting::Statement,
            false => Lasting::Longer,
        };
        let threads = session.options().threads_effective();
        let found = variables::find(py, &names, threads, lasting)?;
        let recipe = Recipe {
            text: text.into(),
            params,
            tables: Arc::new(found.tables),
            borrowed: found.borrowed,
        };
        let query = wait(py, recipe.plan(&session))?.map_err(|error| {
            let failure = raise(start.map_or(error.clone(), |start| error.moved_to(start)));
            with_notes(py, failure, &found.notes)
        })?;
        shared.warn(py)?;
        let mut relation = Relation {
            shared: Arc::clone(shared),
            recipe,
            schema: query.schema(),
            kept: None,
            planned: Mutex::new(None),
            cursor: Mutex::new(None),
            preview: Mutex::new(None),
            closed: StopFlag::default(),
        };
        if relation.schema.fields().is_empty() || ACTIONS.contains(&query.plan().name()) {
            let mut running = Running::start(query, shared.display(py))?;
            relation.kept = Some(running.collect(py)?);
        } else {
            relation.planned = Mutex::new(Some(query));
        }
        Ok(relation)
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
            None => wait(py, self.recipe.plan(&session))?.map_err(raise)?,
        };
        self.shared.warn(py)?;
        self.recipe
            .check(&query.schema(), &self.schema)
            .map_err(raise)?;
        Running::start(query, self.shared.display(py))
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
            None => of_recipe(self.recipe.clone(), session, schema, lasting),
        }
    }

    fn collect(&self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        self.run_owned(py)?.collect(py)
    }

    fn fetch<'py>(&self, py: Python<'py>, rows_max: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut cursor = lock(py, &self.cursor)?;
        self.check_open()?;
        if cursor.is_none() {
            let running = self.run(py)?.stopped_by(self.closed.clone());
            *cursor = Some(Cursor::new(running));
        }
        let open = cursor.as_mut().expect("it was just set");
        open.take(py, rows_max).inspect_err(|_| *cursor = None)
    }

    /// Enough batches for the first `rows_max` rows; the query stops there.
    fn first_rows(&self, py: Python<'_>, rows_max: usize) -> PyResult<Preview> {
        let mut running = self.run(py)?;
        let (mut batches, mut rows) = (Vec::new(), 0);
        while let Some(batch) = running.next(py)? {
            let left = rows_max - rows;
            if batch.num_rows() > left {
                batches.push(batch.slice(0, left));
                running.stop(py);
                return Ok(Preview {
                    batches,
                    more: true,
                });
            }
            rows += batch.num_rows();
            batches.push(batch);
        }
        Ok(Preview {
            batches,
            more: false,
        })
    }

    /// The preview, kept: a notebook asks for text and HTML of the same relation.
    fn preview(&self, py: Python<'_>) -> PyResult<Preview> {
        let kept = lock(py, &self.preview)?.clone();
        if let Some(preview) = kept {
            return Ok(preview);
        }
        let preview = self.first_rows(py, PREVIEW_ROWS)?;
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
        })
    }
}

struct DisplayCall<'py> {
    function: Bound<'py, PyAny>,
    columns: Vec<String>,
    types: Vec<String>,
    rows: Bound<'py, PyList>,
    more: bool,
}

impl<'py> DisplayCall<'py> {
    fn text(self, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        self.function
            .call((self.columns, self.types, self.rows, self.more), keywords)
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

    /// Types of the columns, in order, such as "int64", "varchar", "timestamp(6) UTC", "list(double)".
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
        Ok(self.fetch(py, 1)?.pop())
    }

    /// At most `size` more rows as a list of tuples; an empty list after the last one.
    #[pyo3(signature = (size=1))]
    fn fetchmany<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.fetch(py, size)?)
    }

    /// All rows that are left as a list of tuples; the next fetch starts over.
    ///
    /// Values are int, float, decimal.Decimal, str, bytes, bool, datetime.date, datetime.datetime (aware if the column has a
    /// zone), datetime.time, datetime.timedelta, list, dict (struct and map) or None. Python counts microseconds: nanoseconds are cut.
    fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.fetch(py, usize::MAX)?;
        *lock(py, &self.cursor)? = None;
        PyList::new(py, rows)
    }

    /// An iterator over the rows of a run of its own.
    fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
        Ok(Rows {
            cursor: Mutex::new(Cursor::new(self.run(py)?)),
        })
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

    /// The result as a pyarrow Table. Needs pyarrow.
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
            _ => self.first_rows(py, max_rows)?,
        };
        let keywords = PyDict::new(py);
        keywords.set_item("width", max_width)?;
        let text = self.display(py, "text", &preview)?.text(Some(&keywords))?;
        py.import("builtins")?
            .call_method1("print", (text,))
            .map(|_| ())
    }

    /// The plan as text; with analyze=True the query runs and the plan tells what each operator did.
    #[pyo3(signature = (*, analyze=false))]
    fn explain(&self, py: Python<'_>, analyze: bool) -> PyResult<String> {
        let verb = if analyze {
            "EXPLAIN ANALYZE"
        } else {
            "EXPLAIN"
        };
        let recipe = Recipe {
            text: format!("{verb} {}", self.recipe.text).into(),
            ..self.recipe.clone()
        };
        let session = self.shared.session(py)?;
        let query = wait(py, recipe.plan(&session))?.map_err(raise)?;
        let mut running = Running::start(query, self.shared.display(py))?;
        let mut text = String::new();
        for batch in running.collect(py)? {
            for row in tuples(py, &batch, &mut ObjectCache::default())? {
                let (title, plan): (String, String) = row.extract()?;
                text.push_str(&format!("{title}\n{}\n\n", plan.trim_end()));
            }
        }
        Ok(text.trim_end().to_string())
    }

    /// Runs the query, without its rows, and tells what each worker did when.
    fn profile(&self, py: Python<'_>) -> PyResult<Profile> {
        let session = self.shared.session(py)?;
        let query = wait(py, self.recipe.plan(&session))?.map_err(raise)?;
        let recording = query.record();
        let mut running = Running::start(query, self.shared.display(py))?;
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
            cursor.running.stop(py);
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

fn with_notes(py: Python<'_>, failure: PyErr, notes: &[String]) -> PyErr {
    for note in notes {
        // Python 3.10 has no notes: the error says enough without them.
        let _ = failure.value(py).call_method1("add_note", (note,));
    }
    failure
}

/// Reads a run row by row.
struct Cursor {
    running: Running,
    rows: IntoIter<Py<PyTuple>>,
    cache: ObjectCache,
}

impl Cursor {
    fn new(running: Running) -> Cursor {
        Cursor {
            running,
            rows: Vec::new().into_iter(),
            cache: ObjectCache::default(),
        }
    }

    /// At most `rows_max` more rows.
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        rows_max: usize,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut taken = Vec::new();
        loop {
            let missing = rows_max - taken.len();
            taken.extend(
                self.rows
                    .by_ref()
                    .take(missing)
                    .map(|row| row.into_bound(py)),
            );
            if taken.len() == rows_max {
                return Ok(taken);
            }
            let Some(batch) = self.running.next(py)? else {
                self.cache = ObjectCache::default();
                return Ok(taken);
            };
            py.check_signals()?;
            let rows = tuples(py, &batch, &mut self.cache)?;
            if rows.len() <= rows_max - taken.len() {
                taken.extend(rows);
            } else {
                self.rows = rows
                    .into_iter()
                    .map(Bound::unbind)
                    .collect::<Vec<_>>()
                    .into_iter();
            }
        }
    }
}

/// An iterator over rows; dropping it stops the query.
#[pyclass(frozen, module = "grouse")]
pub struct Rows {
    cursor: Mutex<Cursor>,
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        Ok(lock(py, &self.cursor)?.take(py, 1)?.pop())
    }
}
