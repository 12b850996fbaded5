//! grouse
