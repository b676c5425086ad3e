//! The server, asked over TLS as an API server asks it.

mod cluster;
mod traps;
