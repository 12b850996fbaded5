//! grouse: the GROUP BY engine. SQL over Parquet, CSV, JSON and Arrow files in, grouped rows out.
//!
//! In: SQL text. Out: Arrow record batches ([`Query::execute`]), progress, typed errors.
//! Invariant: this is the only crate that plans with the host, Apache DataFusion; the shell and Python use types of its streams,
//! tables and values.
//! Not here: the algorithm (crate `grouse-groupby`), the shell and Python (crates of their own).

pub mod processor;
pub mod options;
pub mod memory;
mod sync;
mod temp;
pub mod host;
mod information_schema;
pub mod session;
pub mod sql;
pub mod scan;
pub mod functions;
pub mod optimizer;
mod shifted_sums;
mod averages;
pub mod plan;
mod folded;
mod top_rows;
mod shared;
mod instead;
mod arithmetic;
mod filters;
mod joins;
pub mod exec;
mod native;
mod udaf;
mod explain;
pub mod numbers;
pub mod query;
pub mod types;
pub mod progress;
pub mod error;

pub use error::{Error, OutOfMemory, Position, Result};
pub use options::{Audience, GroupByOperator, OPTIONS, OptionSpec, SessionOptions};
pub use progress::Progress;
pub use query::Query;
pub use scan::schema::Tables;
pub use session::Session;
pub use sql::params::Params;
pub use sql::statement::Statement;
