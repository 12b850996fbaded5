//! Connections, and the default one.
//!
//! In: options, SQL text, parameters, Python objects that hold Arrow data. Out: [`Relation`]s.
//! Invariant: a statement is planned when it is given, so that mistakes are seen at once; statements that change
//! something run then too, exactly once. A connection is used only in the process that made it.
//! Not here: running queries (relation.rs), reading Python objects (source.rs).

use std::sync::{Arc, Mutex, PoisonError};

use grouse::{Params, Session};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyTuple};
use pyo3_arrow::PySchema;

use crate::error::{invalid, raise};
use crate::function::Definition;
use crate::params::from_python;
use crate::progress::Show;
use crate::relation::source::{Lasting, table};
use crate::relation::{Given, Relation};
use crate::shared::Shared;

/// A connection to the engine: options, registered tables, views and worker threads of its own.
///
/// Made by `grouse.connect`. Usable from several threads at once, and as a context manager that closes it.
///
/// Methods that are written in Python, on top of these, are in grouse/_connection of the package.
#[pyclass(frozen, dict, weakref, module = "grouse")]
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

#[pymethods]
impl Connection {
    /// Plans SQL and gives its result as a lazy Relation.
    ///
    /// text: one statement, or several separated by semicolons: all run in order, the last one's result is given.
    /// A query runs when its rows are asked for; any other statement (CREATE, INSERT, COPY, SET, ...) runs at once.
    /// A name in FROM that is no table is looked up among the caller's local, then global variables: anything with
    /// `__arrow_c_stream__` or `__arrow_c_array__` (pandas, polars, pyarrow, another Relation) is read.
    /// params: a sequence for `?` or `$1`, `$2`, ...; a dict for `$name`. One statement only.
    ///
    /// Raises a subclass of grouse.Error; KeyboardInterrupt on Ctrl-C.
    #[pyo3(signature = (text, params=None))]
    fn sql(
        &self,
        py: Python<'_>,
        text: &str,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Relation> {
        run_script(py, &self.shared, text, from_python(params)?)
    }

    /// Plans one statement in which `tables` are tables by their names.
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

    /// Ends the queries of the connection that run now, in whatever thread (grouse.CancelledError is raised there).
    fn interrupt(&self) {
        self.shared.interrupt();
    }

    /// Makes an object's rows visible in SQL as table `name`; an older table of that name is replaced.
    ///
    /// obj: anything with `__arrow_c_stream__` or `__arrow_c_array__`. Data in memory (it has `__len__`) is taken as it
    /// is now: what happens to the object later does not change the table. The index of a pandas DataFrame is no column
    /// (`reset_index()` makes it one). A stream is read when a query runs, a Relation runs anew in each.
    ///
    /// Raises grouse.TypeError for other objects.
    fn register(&self, py: Python<'_>, name: &str, obj: &Bound<'_, PyAny>) -> PyResult<()> {
        let session = self.shared.session(py)?;
        let threads = session.options().threads_effective();
        let source = table(py, obj, threads, Lasting::Longer)?;
        session.register(name, source.table).map_err(raise)
    }

    /// Removes a registered table; it is no error if there is none.
    fn unregister(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.shared.session(py)?.deregister(name).map_err(raise)
    }

    /// Makes a function of Python visible in SQL; `types` has those of its parameters and, as the last, that of its result.
    fn _create_function(
        &self,
        py: Python<'_>,
        definition: Definition,
        types: PySchema,
    ) -> PyResult<()> {
        let session = self.shared.session(py)?;
        let function = definition.function(&types.into_inner(), self.shared.address());
        let registered = session.register_function(function);
        self.shared.wait(py, registered)?.map_err(raise)
    }

    /// Removes a function that was made visible.
    fn _remove_function(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let session = self.shared.session(py)?;
        session.deregister_function(name).map_err(raise)
    }

    /// Names of the registered tables and views, sorted.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.shared.session(py)?.tables())
    }

    /// Closes the connection: relations made from it raise grouse.InvalidError from now on; streams that already run
    /// go on until they are read or dropped. Closing twice is no error.
    fn close(&self, py: Python<'_>) {
        self.shared.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.shared.close(py);
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.shared.session(py) {
            Ok(session) => format!(
                "<grouse.Connection, {} threads>",
                session.options().threads_effective()
            ),
            Err(_) => "<grouse.Connection, closed>".to_string(),
        }
    }
}

/// Runs all statements of a script but the last, and plans that.
fn run_script(
    py: Python<'_>,
    shared: &Arc<Shared>,
    text: &str,
    params: Params,
) -> PyResult<Relation> {
    let statements = Session::split(text).map_err(raise)?;
    let plan = |text: &str, start, params| {
        let given = Given {
            text,
            params,
            start,
            tables: None,
        };
        Relation::new(py, shared, given)
    };
    let [first @ .., last] = statements.as_slice() else {
        return plan(text, None, params);
    };
    if first.is_empty() {
        return plan(text, None, params);
    }
    if params != Params::None {
        return Err(invalid(
            "params",
            "several statements take none; run them one at a time",
        ));
    }
    for statement in first {
        plan(&statement.text, Some(statement.start), Params::None)?.drain(py)?;
    }
    plan(&last.text, Some(last.start), Params::None)
}

/// Makes a connection with options of its own.
///
/// cluster: address of the scheduler of a cluster that runs the statements, such as "df://host:50050"; None = this process
///     runs them. `SET cluster = ''` comes back from there.
/// threads: worker threads; 0 or None = as many as the machine offers.
/// memory_limit: bytes as an int, or a size such as "4GB", "512MiB" or "80%" (of the machine or cgroup).
///     None = 80 %, "unlimited" = no limit; at least 8 MiB a thread.
/// temp_directory: folder for the files of queries that need more memory; several, with ':' between them, are used in
///     turn; None = the system's. The process may then have as many files open as the system's hard limit says.
/// progress: True draws a line on stderr while a query runs longer than half a second. A callable is called with a
///     grouse.Progress about five times a second from the waiting thread, and stops the query by raising.
/// safe: True for statements that nobody answers for: they reach no file, no address and no variable of the caller, and
///     change no option. allowed_directories, a path or a list of paths, opens these folders; register gives tables.
/// options: any other option of the engine by its name in SQL SET, such as max_temp_directory_size, batch_size, s3_region.
///
/// Raises grouse.InvalidError for an unknown option or an impossible value.
#[pyfunction]
#[pyo3(signature = (cluster=None, *, threads=None, memory_limit=None, temp_directory=None, progress=None, **options))]
pub fn connect(
    py: Python<'_>,
    cluster: Option<&Bound<'_, PyAny>>,
    threads: Option<&Bound<'_, PyAny>>,
    memory_limit: Option<&Bound<'_, PyAny>>,
    temp_directory: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Connection> {
    let keywords = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?;
    keywords.set_item("cluster", cluster)?;
    keywords.set_item("threads", threads)?;
    keywords.set_item("memory_limit", memory_limit)?;
    keywords.set_item("temp_directory", temp_directory)?;
    Ok(Connection {
        shared: Shared::new(&keywords, Show::from_python(progress)?)?,
    })
}

/// The connection that `grouse.sql` runs on, made at its first use.
static DEFAULT: Mutex<Option<Py<Connection>>> = Mutex::new(None);

/// The connection that `grouse.sql` runs on; made at its first use, and anew after it was closed or in a forked child.
#[pyfunction]
pub fn default_connection(py: Python<'_>) -> PyResult<Py<Connection>> {
    let mut default = DEFAULT
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(connection) = default.as_ref()
        && connection.get().shared.session(py).is_ok()
    {
        return Ok(connection.clone_ref(py));
    }
    let shared = Shared::new(&PyDict::new(py), Show::Off)?;
    let connection = Py::new(py, Connection { shared })?;
    *default = Some(connection.clone_ref(py));
    Ok(connection)
}

/// Plans SQL on the default connection; see `Connection.sql`.
#[pyfunction]
#[pyo3(signature = (text, params=None))]
pub fn sql(py: Python<'_>, text: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<Relation> {
    let params = from_python(params)?;
    let connection = default_connection(py)?;
    run_script(py, &connection.get().shared, text, params)
}
