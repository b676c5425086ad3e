//! What kind of object runs the pods.

pub mod bare_pod;
pub mod bare_replicaset;
