//! The HTTPS front: from bytes to an answer.
//!
//! [`router`] needs no socket and is what tests drive; [`listen`] puts it behind TLS. Every decision is HTTP 200; any
//! other status means "not decided" and hands over to `failurePolicy` on purpose (TRAPS A01).

pub mod admission;
pub mod body;
mod crowd;
pub mod deadline;
pub mod decide;
pub mod drain;
pub mod health;
pub mod lines;
pub mod listen;
pub mod metrics;
pub mod mint;
mod policy_review;
pub mod record;
pub mod repeats;
mod stall;
pub mod tls;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::sync::Semaphore;

use crate::policy::{Policy, Store};
use decide::Decide;
use drain::Drain;
use lines::Lines;
use metrics::Metrics;
use record::Format;
use repeats::Repeats;

/// Bounds of one review and of all reviews together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one body (TRAPS A08).
    pub body_bytes: usize,
    /// Bytes of all bodies at the same time; beyond that, 503.
    pub body_memory: usize,
    /// Reviews decided at the same time; others wait.
    pub in_flight: usize,
    /// How long a review waits for its turn before it is answered 503 (TRAPS J07).
    pub queue: Duration,
    /// Longest time for an answer; `?timeout=` may shorten it (TRAPS A07).
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 7 << 20,
            body_memory: 256 << 20,
            in_flight: 256,
            queue: Duration::from_secs(1),
            deadline: Duration::from_millis(2500),
        }
    }
}

/// Something without which nothing can be decided (TRAPS I13), beside the policy.
pub struct Condition {
    /// A word for it: `server-version`.
    pub name: &'static str,
    /// `None` where it is met, else what is missing. Asked at every review, so it must be cheap.
    pub missing: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// What the server is made of.
pub struct Config {
    /// What decides.
    pub decider: Arc<dyn Decide>,
    /// The policy in force, and how its reloads fared.
    pub policy: Arc<Store>,
    /// What else must be there before it can.
    pub conditions: Vec<Condition>,
    /// Where is counted.
    pub metrics: Arc<Metrics>,
    /// Where decisions are recorded.
    pub lines: Lines,
    /// How.
    pub format: Format,
    /// Bounds.
    pub limits: Limits,
    /// Whether we are leaving.
    pub drain: Drain,
    /// Name of our own ServiceAccount, `system:serviceaccount:NAMESPACE:NAME`.
    pub own_user: Option<String>,
    /// Namespace that we run in: nothing in it is judged (TRAPS I01), but for our own policy.
    pub own_namespace: Option<String>,
    /// Namespace and name of the ConfigMap that holds our policy.
    pub policy_config_map: Option<(String, String)>,
}

/// The server's state, shared by all requests.
pub struct App {
    config: Config,
    repeats: Repeats,
    turns: Semaphore,
    memory: Arc<Semaphore>,
}

impl App {
    /// The state for this configuration.
    pub fn new(config: Config) -> Arc<Self> {
        let limits = config.limits;
        Arc::new(App {
            config,
            repeats: Repeats::default(),
            turns: Semaphore::new(limits.in_flight.min(Semaphore::MAX_PERMITS)),
            memory: body::memory(limits.body_memory.max(limits.body_bytes)),
        })
    }

    /// The policy, or why nothing can be decided.
    fn decidable(&self) -> Result<Arc<Policy>, String> {
        for condition in &self.config.conditions {
            if let Some(missing) = (condition.missing)() {
                return Err(format!("{}: {missing}", condition.name));
            }
        }
        self.config.decider.policy().ok_or_else(|| "policy: none is loaded yet".to_owned())
    }
}

/// The two webhooks. Paths are matched without the query, for API servers append `?timeout=` (TRAPS A07).
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/mutate", post(admission::mutate))
        .route("/validate", post(admission::validate))
        .fallback(async || (StatusCode::NOT_FOUND, "the webhooks are POST /mutate and POST /validate\n"))
        .with_state(app)
}
