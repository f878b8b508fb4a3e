//! The ff binary.
fn main() {}
