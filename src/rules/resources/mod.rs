//! Requests and limits.

pub mod missing_requests;
pub mod quantity;
