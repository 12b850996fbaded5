//! The Python package `grouse`: the engine's sessions and queries as Python objects, Arrow in and out.
//!
//! In: SQL text, parameters and Arrow data from Python. Out: rows, Arrow streams, DataFrames, exceptions.
//! Invariant: the interpreter lock is never held while the engine works or another thread is waited for; the thread
//! that waits looks for signals every few milliseconds.
//! Not here: anything about queries (crate `grouse`); text for people and pandas without pyarrow (python/grouse).

// From the ground up: a module names only those above it in this list.
mod processor;
mod borrowed;
mod wait;
mod error;
mod stop;
mod calls;
mod options;
mod params;
mod progress;
mod shared;
mod running;
mod object_cache;
mod rows;
mod values;
mod function;
mod export;
mod frame;
mod profile;
mod relation;
mod session;

/// What `import grouse` finds.
#[pyo3::pymodule(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::export::{Batch, Batches};
    #[pymodule_export]
    use crate::profile::Profile;
    #[pymodule_export]
    use crate::progress::Progress;
    #[pymodule_export]
    use crate::relation::Relation;
    #[pymodule_export]
    use crate::relation::cursor::Rows;
    #[pymodule_export]
    use crate::session::{Connection, connect, default_connection, sql};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        grouse_allocator::keep_pages();
        crate::calls::end_with_the_interpreter(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
