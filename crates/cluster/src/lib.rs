//! Groupings over several machines.
