//! The ADBC driver of grouse: a C library that Arrow's driver managers load, for Python, Go, R, Java, C and others.
//!
//! In: SQL text, options, parameters and tables as Arrow data. Out: results as Arrow streams; errors with ADBC's status and a SQLSTATE.
//! Invariant: no panic goes into C: the exporter catches those of calls, `running` those of streams. A result is read as it is
//! made, so that memory stays bounded.
//! Not here: anything about queries (crate `grouse`), the C functions themselves (crate `adbc_ffi`).

// From the ground up: a module names only those above it in this list.
mod error;
mod options;
mod stop;
mod params;
mod running;
mod ingest;
mod info;
mod objects;
mod statement;
mod connection;
mod database;
mod exported;
