//! The engine from outside: one binary, because linking DataFusion takes longer than the tests.

mod support;
mod session;
mod profile;
mod errors;
mod clauses;
mod constraints;
mod samples;
mod numbers;
mod files;
mod codes;
mod decimal64;
mod bounds;
mod morsels;
mod late_materialisation;
mod filters;
mod parquet;
mod text_files;
mod csv;
mod json;
mod hive;
mod passes;
mod snapshots;
mod stores;
mod writes;
mod arrow_columns;
mod long_statements;
