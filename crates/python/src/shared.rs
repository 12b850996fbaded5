//! What all relations of a connection share: the engine's session, how progress is shown.
//!
//! In: options, interrupts. Out: the session, unless it is closed or belongs to the parent process; its warnings as Python's.
//! Not here: statements (session.rs, relation.rs).

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use grouse::Session;
use grouse_cluster::Clusters;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;

use crate::calls::{Waiting, is_called_by};
use crate::error::{invalid, raise};
use crate::options::{from_keywords, is_safe};
use crate::progress::{Display, Show};
use crate::stop::{Begun, Interrupts};
use crate::wait::Watch;

/// What all relations of a connection share.
#[derive(Debug)]
pub struct Shared {
    session: Mutex<Option<Session>>,
    progress: Show,
    interrupts: Interrupts,
    /// Whether statements see only what is registered, and no variables.
    is_safe: bool,
    process: u32,
}

impl Shared {
    pub fn new(options: &Bound<'_, PyDict>, progress: Show) -> PyResult<Arc<Shared>> {
        let session = Session::new(from_keywords(options)?).map_err(raise)?;
        let clusters = Arc::new(Clusters::default());
        session.reach_clusters_by(clusters).map_err(raise)?;
        Ok(Arc::new(Shared {
            session: Mutex::new(Some(session)),
            progress,
            interrupts: Interrupts::default(),
            is_safe: is_safe(options)?,
            process: std::process::id(),
        }))
    }

    /// The engine's session, unless it is closed or belongs to the parent process.
    pub fn session(&self, py: Python<'_>) -> PyResult<Session> {
        if self.is_forked() {
            return Err(invalid(
                "connection",
                "it was made before this process was forked, and its threads did not come along; call grouse.connect() here",
            ));
        }
        if is_called_by(self.address()) {
            return Err(invalid(
                "connection",
                "a function of its own has called it, on a worker that the statement might wait for; take another connection",
            ));
        }
        let session = self
            .session
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner);
        session
            .clone()
            .ok_or_else(|| invalid("connection", "it is closed"))
    }

    /// What tells the connection from others, as long as it is there.
    pub fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Names in the statement that variables of the caller may stand for.
    pub fn unresolved(&self, session: &Session, text: &str) -> Vec<String> {
        match self.is_safe {
            true => Vec::new(),
            // A text that cannot be parsed fails when it is planned, with its position.
            false => session.unresolved(text).unwrap_or_default(),
        }
    }

    /// Python's warnings of what the session warns of.
    pub fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let category = py.get_type::<PyUserWarning>();
        for sentence in self.session(py)?.take_warnings() {
            let sentence = CString::new(sentence.replace('\0', " "))?;
            PyErr::warn(py, &category, &sentence, 1)?;
        }
        Ok(())
    }

    /// The progress display of one query.
    pub fn display(&self, py: Python<'_>) -> Display {
        self.progress.display(py)
    }

    /// For something that begins, and ends with the next interrupt.
    pub fn begin(&self) -> Begun {
        self.interrupts.begin()
    }

    /// Ends what runs.
    pub fn interrupt(&self) {
        self.interrupts.interrupt();
    }

    /// Waits for `future` on this thread, until an interrupt.
    pub fn wait<F>(&self, py: Python<'_>, future: F) -> PyResult<F::Output>
    where
        F: Future + Send,
        F::Output: Send,
    {
        let begun = self.begin();
        let _waiting = wait_for(self.address())?;
        Watch::new().wait(py, future, |_| begun.check())
    }

    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    pub fn close(&self, py: Python<'_>) {
        let session = self
            .session
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if self.is_forked() {
            // Its threads do not exist here: there is nobody to tell that they should end.
            std::mem::forget(session);
        }
    }
}

/// A wait for the connection at this address, unless that one waits for a function that runs here.
pub fn wait_for(connection: usize) -> PyResult<Waiting> {
    Waiting::of(connection).ok_or_else(|| {
        invalid(
            "connection",
            "a statement of it waits for the function that calls it now, so that they would wait for each other; take another connection",
        )
    })
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_forked() {
            std::mem::forget(
                self.session
                    .get_mut()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        }
    }
}
