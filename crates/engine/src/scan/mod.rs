//! Scan: a name in FROM that is a file, glob, folder or address becomes a table.
//!
//! In: `'data/*.parquet'`, `read_csv('x.csv', delim => ';')`, `s3://bucket/folder/`.
//! Out: a table provider of DataFusion with the schema of the files.
//! Invariant: a file that cannot be read is an error that names it, never a panic and never an empty table.
//! Not here: reading Parquet and Arrow files; DataFusion's decoders do that, from footers that they do not misread
//! (footer.rs).
//!
//! ```text
//! text -> call (what is asked for) -> access (may it?) -> location (which files) -> format (how to read) -> files (schema, table) <- views
//! ```

pub(crate) mod wrapped;
pub mod call;
pub(crate) mod sql_types;
pub mod file_options;
pub mod format;
pub(crate) mod access;
pub mod location;
pub(crate) mod decoder_panics;
mod web;
pub mod stores;
pub(crate) mod decompression;
pub mod text;
pub(crate) mod reserved_words;
pub mod csv;
pub(crate) mod ipc;
pub mod widen;
pub mod names;
pub mod parquet;
pub mod json;
pub(crate) mod hive;
pub(crate) mod steady;
mod steady_format;
mod table;
pub(crate) mod pipe;
pub mod plain_types;
pub mod door;
mod unbounded;
pub(crate) mod external;
pub mod files;
pub mod views;
pub mod schema;
pub(crate) mod constraints;
mod row_keys;
pub(crate) mod checked_table;
pub(crate) mod numbers;
pub(crate) mod replaced_rows;
pub(crate) mod conflicts;
pub(crate) mod portable;
pub mod error_location;
pub mod writes;
