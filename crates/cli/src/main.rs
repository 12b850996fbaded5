//! grouse
fn main() {}
