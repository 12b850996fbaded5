//! What a driver manager finds in the library: `AdbcDriverGrouseInit`, and `AdbcDriverInit` by default.
//!
//! In: ADBC's version 1.1.0. Out: the driver's functions.
//! Not here: anything but the two names.

#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "the exporter of adbc_ffi writes the two functions"
)]

use crate::database::AdbcDriver;

adbc_ffi::export_driver!(AdbcDriverGrouseInit, AdbcDriver);
