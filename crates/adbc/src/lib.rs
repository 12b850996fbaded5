//! The ADBC driver.

use adbc_core as _;
use adbc_ffi as _;
use arrow as _;
use futures as _;
use grouse as _;
use grouse_allocator as _;
use tokio as _;
