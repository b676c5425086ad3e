//! The server over real TLS, one function a trap.

mod harness;
mod traps;
