//! A run read row by row.
//!
//! In: a run. Out: its rows as tuples, in order, each once.
//! Invariant: batches that were read to count them, or to see the first error, are given before the next ones.
//! Not here: making tuples (rows.rs).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::vec::IntoIter;

use arrow::array::RecordBatch;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::object_cache::ObjectCache;
use crate::rows::tuples;
use crate::running::Running;
use crate::wait::lock;

/// Reads a run row by row.
pub struct Cursor {
    running: Running,
    ahead: VecDeque<RecordBatch>,
    rows: IntoIter<Py<PyTuple>>,
    cache: ObjectCache,
    is_new: bool,
}

impl Cursor {
    pub fn new(running: Running) -> Cursor {
        Cursor {
            running,
            ahead: VecDeque::new(),
            rows: Vec::new().into_iter(),
            cache: ObjectCache::default(),
            is_new: true,
        }
    }

    /// Waits for the first rows.
    pub fn look_ahead(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.is_new && self.ahead.is_empty() {
            self.ahead.extend(self.running.next(py)?);
        }
        Ok(())
    }

    /// The number of all rows, if none has been taken: they are read, and wait.
    pub fn count(&mut self, py: Python<'_>) -> PyResult<Option<usize>> {
        if !self.is_new {
            return Ok(None);
        }
        while let Some(batch) = self.running.next(py)? {
            self.ahead.push_back(batch);
        }
        Ok(Some(self.ahead.iter().map(RecordBatch::num_rows).sum()))
    }

    /// Stops the run.
    pub fn stop(&mut self, py: Python<'_>) {
        self.ahead.clear();
        self.running.stop(py);
    }

    /// At most `rows_max` more rows.
    pub fn take<'py>(
        &mut self,
        py: Python<'py>,
        rows_max: usize,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.is_new = false;
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
            let Some(batch) = self.next(py)? else {
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

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        match self.ahead.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.running.next(py),
        }
    }
}

/// An iterator over rows; dropping it stops the query.
#[pyclass(frozen, module = "grouse")]
pub struct Rows {
    pub cursor: Arc<Mutex<Cursor>>,
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
