//! The one binary. The only crate that knows environment variables, terminals and exit codes.

fn main() {}
