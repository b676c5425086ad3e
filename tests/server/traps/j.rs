//! J: security.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::engine::verdict::Verdict;
use plimsoll::server::Limits;
use serde_json::json;

use crate::harness::deciders::{Always, Gated, Panics, everything};
use crate::harness::process::Process;
use crate::harness::{Options, Server, review};

#[test]
fn j05_names_cannot_forge_log_lines() {
    let server = Server::decided_by(Always(everything()));
    let mut review = review("CREATE", "Deployment", "metadata: {}");
    let forged = "web\n{\"level\":\"error\"}\u{1b}[31m";
    review["request"]["object"]["metadata"]["name"] = json!(forged);
    review["request"]["userInfo"]["username"] = json!(format!("{}{forged}", "u".repeat(1000)));
    server.validate(&review);
    let log = server.log();
    assert_eq!(log.lines().count(), 1);
    assert!(!log.contains('\u{1b}'));
    let record = &server.records()[0];
    assert_eq!(record["name"], forged);
    assert_eq!(record["user"].as_str().unwrap().chars().count(), 256);
}

#[test]
fn j06_nothing_of_the_object_is_in_the_log_or_the_metrics() {
    let object = "
metadata: {name: web, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}
spec: {template: {spec: {containers: [{name: app, image: 'app:latest', env: [{name: PASSWORD, value: hunter2}]}]}}}";
    let server = Server::decided_by(Always(everything()));
    let review = review("CREATE", "Deployment", object);
    let reply = server.validate(&review);
    assert!(!reply.allowed());
    server.mutate(&review);
    assert!(!server.log().contains("hunter2"));
    assert!(!server.admin("/metrics").1.contains("hunter2"));
    assert!(!reply.text.contains("hunter2"));
}

#[test]
fn j06_the_process_writes_no_piece_of_a_body_it_cannot_read() {
    let process = Process::start(&["--log-level", "debug"]);
    let mut review = review("CREATE", "Deployment", "metadata: {name: web}");
    review["request"]["userInfo"] = json!("hunter2");
    let reply = process.post("/validate", &review);
    assert_eq!(reply.status, 400);
    let line = process.wait_for("not a review that can be decided on");
    assert!(line["error"].as_str().unwrap().starts_with("request.userInfo: wrong type"), "{line}");
    assert!(!format!("{line}{}", reply.text).contains("hunter2"));
}

#[test]
fn j07_a_panic_lets_mutate_allow_with_the_uid_and_leaves_validate_to_failure_policy() {
    let server = Server::decided_by(Panics);
    let review = review("CREATE", "Deployment", "metadata: {name: web}");
    let mut client = server.connect();
    let reply = client.post("/mutate", &review);
    assert_eq!(reply.response(), &json!({"uid": "0a1b2c", "allowed": true}));
    let reply = client.post("/validate", &review);
    assert_eq!((reply.status, reply.text.as_str()), (500, "plimsoll: an internal error, see the log\n"));
    assert_eq!(server.metric("plimsoll_panics_total"), 2.0);
    assert_eq!(server.metric("plimsoll_requests_in_flight"), 0.0);
    let series = r#"plimsoll_reviews_total{decision="panic",dry_run="false",endpoint="validate",kind="Deployment",operation="CREATE"}"#;
    assert_eq!(server.metric(series), 1.0);
}

#[test]
fn j07_beyond_the_bound_a_review_waits_a_moment_and_is_503() {
    let gated = Gated::closed();
    let server = Server::with(Options {
        limits: Limits { in_flight: 1, queue: Duration::from_millis(20), ..Limits::default() },
        ..Options::new(Arc::new(gated.clone()))
    });
    let review = review("CREATE", "Deployment", "metadata: {name: web}");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| server.mutate(&review));
        server.block_on(gated.reached.acquire()).unwrap().forget();
        assert_eq!(server.metric("plimsoll_requests_in_flight"), 1.0);
        let second = server.mutate(&review);
        assert_eq!((second.status, second.text.as_str()), (503, "plimsoll: too many reviews at the same time\n"));
        gated.gate.add_permits(2);
        assert!(first.join().unwrap().allowed());
        assert!(server.mutate(&review).allowed());
    });
    assert_eq!(server.metric(r#"plimsoll_requests_refused_total{reason="overload"}"#), 1.0);
    assert_eq!(server.metric("plimsoll_requests_in_flight"), 0.0);
}

#[test]
fn j07_a_client_that_hangs_up_does_not_undo_the_decision() {
    let gated = Gated::closed();
    let server = Server::decided_by(gated.clone());
    let review = review("CREATE", "Deployment", "metadata: {name: web}");
    let body = review.to_string();
    server.block_on(async {
        let mut client = server.connect_raw().await;
        client.write_request("/mutate", &body).await;
        gated.reached.acquire().await.unwrap().forget();
    });
    gated.gate.add_permits(1);
    crate::harness::wait_until("the record", || server.records().len() == 1);
    crate::harness::wait_until("its end", || server.metric("plimsoll_requests_in_flight") == 0.0);
}

#[test]
fn j07_many_reviews_at_once_are_all_answered() {
    let server = Server::decided_by(Always(Verdict::default()));
    let review = review("CREATE", "Deployment", "metadata: {name: web}");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = server.connect();
                for _ in 0..50 {
                    assert!(client.post("/mutate", &review).allowed());
                }
            });
        }
    });
    let series = r#"plimsoll_reviews_total{decision="allow",dry_run="false",endpoint="mutate",kind="Deployment",operation="CREATE"}"#;
    assert_eq!(server.metric(series), 400.0);
}
