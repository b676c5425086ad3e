//! One review: HTTP to engine and back.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request as HttpRequest, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response as HttpResponse};
use chrono::Utc;
use futures::FutureExt;
use prometheus::IntGauge;
use tokio::time::{Instant, timeout_at};

use super::body::{self, BodyError, Received};
use super::deadline::Deadline;
use super::metrics::{Counted, Decision};
use super::record::{self, Circumstances};
use super::{App, policy_review, repeats};
use crate::engine::finding::Action;
use crate::engine::request::{Endpoint, Operation, Request};
use crate::engine::verdict::{Judged, Verdict};
use crate::policy::Policy;
use crate::review::{Response, Review, ReviewError, cut};

/// `POST /mutate`.
pub async fn mutate(State(app): State<Arc<App>>, request: HttpRequest) -> HttpResponse {
    admit(app, Endpoint::Mutate, request).await
}

/// `POST /validate`.
pub async fn validate(State(app): State<Arc<App>>, request: HttpRequest) -> HttpResponse {
    admit(app, Endpoint::Validate, request).await
}

/// One more in flight, until dropped.
struct InFlight(IntGauge);

impl InFlight {
    fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        InFlight(gauge.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

async fn admit(app: Arc<App>, endpoint: Endpoint, request: HttpRequest) -> HttpResponse {
    let start = Instant::now();
    let in_flight = InFlight::new(&app.config.metrics.requests_in_flight);
    let limits = app.config.limits;
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        app.config.metrics.body_rejected("content-type");
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json");
    }
    let deadline = Deadline::new(start, parts.uri.query(), limits.deadline);
    // Read before anything else is found out, so that the connection can be used again.
    let received = match body::read(body, limits.body_bytes, &app.memory, deadline.answer).await {
        Ok(received) => received,
        Err(error) => return no_body(&app, error),
    };
    let policy = match app.decidable() {
        Ok(policy) => policy,
        Err(missing) => {
            app.config.metrics.refused("not-ready");
            return plain(StatusCode::SERVICE_UNAVAILABLE, &format!("not ready, {missing}"));
        }
    };
    // A task of its own: it comes to its end, record included, when the client hangs up.
    let task = tokio::spawn(async move {
        let _in_flight = in_flight;
        let turn = timeout_at(deadline.answer.min(start + limits.queue), app.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            app.config.metrics.refused("overload");
            return plain(StatusCode::SERVICE_UNAVAILABLE, "too many reviews at the same time");
        };
        answer(&app, endpoint, received, &policy, deadline, start).await
    });
    task.await.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "the review was not decided"))
}

/// Media type `application/json`, with whatever parameters (TRAPS A09).
fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn no_body(app: &App, error: BodyError) -> HttpResponse {
    let metrics = &app.config.metrics;
    let status = match error {
        BodyError::TooLarge(_) => {
            metrics.body_rejected("too-large");
            StatusCode::PAYLOAD_TOO_LARGE
        }
        BodyError::TimedOut => {
            metrics.body_rejected("timeout");
            StatusCode::REQUEST_TIMEOUT
        }
        BodyError::BrokeOff => {
            metrics.body_rejected("broken-off");
            StatusCode::BAD_REQUEST
        }
        BodyError::NoMemory => {
            metrics.refused("memory");
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    plain(status, &error.to_string())
}

async fn answer(
    app: &App,
    endpoint: Endpoint,
    mut received: Received,
    policy: &Policy,
    deadline: Deadline,
    start: Instant,
) -> HttpResponse {
    let metrics = &app.config.metrics;
    if let Err(error) = received.make_room(&app.memory) {
        return no_body(app, error);
    }
    let rejected = |error: ReviewError| {
        metrics.body_rejected(error.reason());
        tracing::warn!(endpoint = endpoint.as_str(), %error, "not a review that can be decided on");
        plain(StatusCode::BAD_REQUEST, &error.to_string())
    };
    let review = match Review::parse(&received.bytes) {
        Ok(review) => review,
        Err(error) => return rejected(error),
    };
    // All that must outlive a panic.
    let (version, uid) = (review.version, review.uid.clone());
    let mut counted = Counted {
        endpoint,
        operation: review.operation(),
        kind: review.known_kind(),
        decision: Decision::Panic,
        dry_run: review.dry_run(),
    };
    // Nothing that a panic could leave half done is shared: locks survive poisoning, counters are atomic.
    let judged = AssertUnwindSafe(judge(app, endpoint, review, policy, deadline, start)).catch_unwind().await;
    let response = match judged {
        Ok(Ok((decision, json))) => {
            counted.decision = decision;
            review_json(json)
        }
        Ok(Err(error)) => return rejected(error),
        Err(_panic) => {
            metrics.panics.inc();
            tracing::error!(
                uid = ?cut(&uid, 64),
                endpoint = endpoint.as_str(),
                operation = counted.operation.as_str(),
                kind = counted.kind.map_or("other", |row| row.kind),
                "a panic while deciding: /mutate allows, /validate leaves it to failurePolicy"
            );
            match endpoint {
                Endpoint::Mutate => review_json(Response::allow(version, &uid).to_json()),
                Endpoint::Validate => plain(StatusCode::INTERNAL_SERVER_ERROR, "an internal error, see the log"),
            }
        }
    };
    metrics.review(counted, start.elapsed().as_secs_f64());
    response
}

async fn judge(
    app: &App,
    endpoint: Endpoint,
    review: Review<'_>,
    policy: &Policy,
    deadline: Deadline,
    start: Instant,
) -> Result<(Decision, String), ReviewError> {
    let config = &app.config;
    let (version, uid, converted_from) = (review.version, review.uid.clone(), review.converted_from());
    let request = review.into_request(config.own_user.as_deref())?;
    let own_namespace = config.own_namespace.as_ref().is_some_and(|own| *own == request.namespace);
    let verdict = match policy_review::verdict(app, endpoint, &request) {
        Some(verdict) => verdict,
        None if own_namespace => Verdict { out_of_scope: true, ..Verdict::default() },
        None => config.decider.decide(policy, endpoint, &request, deadline).await,
    };
    let denial = verdict.denial.as_deref().filter(|_| endpoint == Endpoint::Validate);
    let patch = patch(endpoint, request.operation, &verdict);
    let decision = if denial.is_some() { Decision::Deny } else { Decision::Allow };
    count(app, endpoint, &verdict);
    let about = Circumstances {
        at: Utc::now(),
        duration: start.elapsed(),
        uid: &uid,
        endpoint,
        decision,
        policy_hash: &policy.hash,
        converted_from,
        repeats: 0,
    };
    write_record(app, about, &request, &verdict);
    let audit_annotations = audit_annotations(endpoint, policy, &verdict, patch.is_some());
    let json = Response {
        version,
        uid: &uid,
        denial,
        warnings: &verdict.warnings,
        audit_annotations: &audit_annotations,
        patch,
    }
    .to_json();
    Ok((decision, json))
}

/// The patch, where one may be: a patch from `/validate`, on a DELETE, or an empty one would each fail the user's
/// request (TRAPS A04, A10).
fn patch(endpoint: Endpoint, operation: Operation, verdict: &Verdict) -> Option<&str> {
    let writes = matches!(operation, Operation::Create | Operation::Update);
    verdict
        .patch
        .as_deref()
        .filter(|patch| endpoint == Endpoint::Mutate && writes && !patch.is_empty() && *patch != "[]")
}

fn count(app: &App, endpoint: Endpoint, verdict: &Verdict) {
    let metrics = &app.config.metrics;
    for reason in &verdict.anomalies {
        metrics.anomaly(reason);
    }
    match endpoint {
        Endpoint::Mutate => verdict.fixes.iter().for_each(|fix| metrics.fix(fix.rule)),
        Endpoint::Validate => {
            for judged in &verdict.findings {
                metrics.finding(judged.finding.rule, judged.action, judged.unenforced);
            }
        }
    }
}

fn write_record(app: &App, mut about: Circumstances<'_>, request: &Request<'_>, verdict: &Verdict) {
    let config = &app.config;
    if about.decision == Decision::Deny {
        let key = repeats::key(about.endpoint, request, verdict);
        let Some(repeats) = app.repeats.admit(key, std::time::Instant::now()) else {
            config.metrics.records_suppressed.inc();
            return;
        };
        about.repeats = repeats;
    }
    config.lines.push(record::line(config.format, &about, request, verdict));
}

/// Notes for the API server's audit log; none where there is nothing to tell. Keys hold no `/` (TRAPS K01). A fix has a
/// key of its own, so that a later round of the same request never has another value for a key (TRAPS K02).
fn audit_annotations(endpoint: Endpoint, policy: &Policy, verdict: &Verdict, patched: bool) -> Vec<(String, String)> {
    let mut annotations = Vec::new();
    let mut add = |key: &str, value: &str| annotations.push((key.to_owned(), value.to_owned()));
    match endpoint {
        Endpoint::Mutate if patched => {
            let mut rules: Vec<&str> = verdict.fixes.iter().map(|fix| fix.rule).collect();
            rules.sort_unstable();
            rules.dedup();
            rules.iter().for_each(|rule| add(&format!("fixed.{rule}"), "true"));
        }
        Endpoint::Mutate => {}
        Endpoint::Validate => {
            let mut list = |key: &str, told: &dyn Fn(&&Judged) -> bool| {
                let mut rules: Vec<&str> =
                    verdict.findings.iter().filter(told).map(|judged| judged.finding.rule).collect();
                rules.sort_unstable();
                rules.dedup();
                if !rules.is_empty() {
                    add(key, &rules.join(","));
                }
            };
            for (key, action) in [("deny", Action::Deny), ("warn", Action::Warn), ("audit", Action::Audit)] {
                list(key, &|judged| judged.action == action);
            }
            list("unenforced", &|judged| judged.unenforced);
        }
    }
    for (key, value) in [("override", verdict.overridden), ("rollback", verdict.rollback)] {
        if value {
            add(key, "true");
        }
    }
    if !annotations.is_empty() {
        annotations.push(("policy".to_owned(), policy.hash.clone()));
    }
    annotations
}

fn review_json(json: String) -> HttpResponse {
    ([(CONTENT_TYPE, "application/json")], json).into_response()
}

/// One line for the reader of the API server's log.
fn plain(status: StatusCode, line: &str) -> HttpResponse {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("plimsoll: {line}\n")).into_response()
}
