//! Requests and limits.

pub mod best_effort;
pub mod implausible_quantity;
pub mod init_dominates;
pub mod missing_memory_limit;
pub mod missing_requests;
pub mod overcommit;
pub mod quantity;
pub mod stanza;
