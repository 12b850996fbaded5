//! grouse: the GROUP BY engine. SQL over Parquet, CSV, JSON and Arrow files in, grouped rows out.
//!
//! In: SQL text. Out: Arrow record batches ([`Query::execute`]), progress, typed errors.
//! Invariant: this is the only crate that plans with Apache DataFusion; the shell and Python use types of its streams,
//! tables and values.
//! Not here: the algorithm (crate `grouse-groupby`), the shell and Python (crates of their own).

// From the ground up: a module names only those above it in this list.
mod error;
mod wire;
mod runtime;
mod expr;
pub(crate) mod functions;
mod aggregate;
mod scan;
mod exec;
mod sql;
mod optimizer;
pub mod distribution;
mod session;

pub use error::types::{sql_name, type_name};
pub use error::{Error, OutOfMemory, Position, Result, nearest_names};
pub use functions::{FunctionClass, FunctionText, function_texts, written};
pub use runtime::fair_shares::query_is_over;
pub use runtime::memory::on_short_memory;
pub use runtime::options::{Audience, GroupByOperator, OPTIONS, OptionSpec, SessionOptions};
pub use runtime::processor;
pub use runtime::trace::{Lane, Phase};
pub use scan::door::{Text, admit, admitted_schema};
pub use scan::schema::Tables;
pub use scan::writes::new_file::NewFile;
pub use scan::writes::{READER_GONE, open_in_place};
pub use session::Session;
pub use session::described::Description;
pub use session::profile::Profile;
pub use session::progress::Progress;
pub use session::query::Query;
pub use session::remote::RemoteExecution;
pub use sql::params::Params;
pub use sql::reads::only_reads;
pub use sql::statement::Statement;
pub use wire::{Apart, WireValue};

/// What tests hold against DataFusion alone.
#[doc(hidden)]
pub mod parts {
    pub use crate::functions::register;
    pub use crate::sql::composite_groups;

    /// Rules and planners that fix DataFusion.
    pub mod fixes {
        pub use crate::optimizer::fixes::keep_long_literals;
        pub use crate::optimizer::passes::{
            FIXES, analyzer_rules, described, expr_planners, optimizer_rules, physical_rules,
        };
    }
}
