//! Plain HTTP for the kubelet and Prometheus: `/livez`, `/readyz`, `/metrics`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::App;
use super::drain::Phase;
use super::metrics::PolicyState;

/// The admin router. Liveness never depends on the API server: a restart would mend nothing (TRAPS I13).
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(async || (StatusCode::NOT_FOUND, "there are /livez, /readyz and /metrics\n"))
        .with_state(app)
}

/// Ready means: can decide, and is not leaving. One line a condition.
async fn ready(State(app): State<Arc<App>>) -> Response {
    let mut ready = true;
    let mut text = String::new();
    let mut line = |name: &str, missing: Option<&str>| {
        ready &= missing.is_none();
        text.push_str(&format!("{name}: {}\n", missing.unwrap_or("ok")));
    };
    let policy = app.config.decider.policy();
    line("policy", if policy.is_some() { None } else { Some("none is loaded yet") });
    // The last good one decides: no reason to take this replica out, but one to tell.
    let trouble = app.config.policy.trouble();
    for condition in &app.config.conditions {
        line(condition.name, (condition.missing)().as_deref());
    }
    line("serving", if app.config.drain.phase() == Phase::Serving { None } else { Some("leaving") });
    if let Some(trouble) = trouble {
        text.push_str(&format!("policy, last update: {trouble}\n"));
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, text).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    let policy = app.config.decider.policy();
    let state = PolicyState {
        hash: policy.as_ref().map(|policy| policy.hash.as_str()),
        reload_failures: app.config.policy.failures(),
    };
    match app.config.metrics.render(state) {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
