//! Arguments to commands.

fn main() {}
