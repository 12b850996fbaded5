//! Ballista 55 beside the engine, compiled in one set of features: what plans on several machines will stand on.
//!
//! In: the dependencies of scheduler, executors and client, with all that they turn on in DataFusion. Out: nothing so far.
//! Invariant: DataFusion, Arrow and the crates of the network are compiled once, with or without this crate.
//! Not here: stages of a grouping within one process, which the engine has (exec/node/stages.rs).
