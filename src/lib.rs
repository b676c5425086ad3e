//! Plimsoll: a Kubernetes admission webhook that makes rollouts safe.
//!
//! One review crosses the modules in this order: [`server`] (HTTP), [`review`] (envelope), [`policy`] (the current
//! one), [`engine`] (scope, needs), [`cluster`] (facts), [`engine`] again (rules, ratchet, patch), [`review`] (answer).

pub mod cli;
pub mod cluster;
pub mod config;
pub mod engine;
pub mod policy;
pub mod review;
pub mod rollout;
pub mod rules;
pub mod server;
