//! The profile of a relation's query, for Python.
//!
//! In: the engine's profile. Out: its sums as text, a page, a trace file.
//! Invariant: it keeps no part of the query alive.
//! Not here: what a profile holds (the engine's).

use std::path::PathBuf;

use grouse::Profile as EngineProfile;
use pyo3::prelude::*;

use crate::error::invalid;

/// What each worker of a query did when, from `Relation.profile()`. In a notebook it is drawn as a timeline.
#[pyclass(frozen, module = "grouse")]
pub struct Profile(EngineProfile);

impl Profile {
    /// Of the engine's.
    pub fn new(profile: EngineProfile) -> Profile {
        Profile(profile)
    }
}

#[pymethods]
impl Profile {
    /// Seconds from the statement to its last row.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.wall.as_secs_f64()
    }

    /// Sums as text: time by phase and worker, what was serial, why threads were idle.
    fn summary(&self) -> String {
        self.0.summary()
    }

    /// One page for a browser, which needs nothing else.
    fn html(&self) -> String {
        self.0.to_html()
    }

    /// The trace event format, which Perfetto and chrome://tracing open.
    fn json(&self) -> String {
        self.0.to_json()
    }

    /// Writes `path`: a page (.html) or a trace (.json).
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let Some(write) = EngineProfile::form_of(&path) else {
            let message = format!(
                "{}: a profile is a page (.html) or a trace (.json)",
                path.display()
            );
            return Err(invalid("path", message));
        };
        std::fs::write(&path, write(&self.0)).map_err(Into::into)
    }

    fn __repr__(&self) -> String {
        self.0.summary()
    }

    fn _repr_html_(&self) -> String {
        let page = self
            .0
            .to_html()
            .replace('&', "&amp;")
            .replace('"', "&quot;");
        format!(
            "<iframe srcdoc=\"{page}\" style=\"width: 100%; height: 640px; border: 0\"></iframe>"
        )
    }
}
