//! The server: the real router over real TLS, the real binary, and a fake API server behind it.

mod cluster;
mod corpus;
mod harness;
mod policy;
mod properties;
mod traps;
