//! K: records.

use std::io::Read;
use std::process::Stdio;

use plimsoll::engine::finding::Action;
use plimsoll::engine::verdict::Verdict;
use serde_json::{Value, json};

use crate::harness::deciders::{Always, everything};
use crate::harness::process::{Process, serve};
use crate::harness::{Server, review, update};

fn any_review() -> Value {
    review("CREATE", "Deployment", "metadata: {name: web}")
}

#[test]
fn k01_audit_annotations_have_keys_that_the_api_server_keeps() {
    let verdict = Verdict { overridden: true, rollback: true, ..everything() };
    let server = Server::decided_by(Always(verdict));
    assert_eq!(
        server.validate(&any_review()).response()["auditAnnotations"],
        json!({"deny": "mutable-image-tag,rollout-outage", "warn": "missing-requests", "override": "true",
            "rollback": "true", "policy": "000000000000"})
    );
    let mutate = server.mutate(&any_review());
    assert_eq!(
        mutate.response()["auditAnnotations"],
        json!({"fixed.missing-pre-stop": "true", "override": "true", "rollback": "true", "policy": "000000000000"})
    );
    let keys = mutate.response()["auditAnnotations"].as_object().unwrap().keys();
    assert!(keys.into_iter().all(|key| key.len() <= 63 && !key.contains('/')));
}

#[test]
fn k02_a_round_that_changes_nothing_annotates_nothing() {
    let verdict = Verdict { patch: None, ..everything() };
    let reply = Server::decided_by(Always(verdict)).mutate(&any_review());
    assert_eq!(reply.response().get("auditAnnotations"), None);
}

#[test]
fn k03_the_two_calls_of_an_update_share_the_old_resource_version() {
    let server = Server::decided_by(Always(Verdict::default()));
    let mut review = update("Deployment", "metadata: {name: web, resourceVersion: '77'}", "metadata: {name: web}");
    server.mutate(&review);
    review["request"]["uid"] = json!("another");
    server.validate(&review);
    let versions: Vec<_> = server.records().iter().map(|record| record["oldResourceVersion"].clone()).collect();
    assert_eq!(versions, ["77", "77"]);
}

#[test]
fn k05_equal_denials_are_written_once_and_counted() {
    let server = Server::decided_by(Always(everything()));
    for _ in 0..10 {
        server.validate(&any_review());
    }
    let other = review("CREATE", "Deployment", "metadata: {name: api}");
    server.validate(&other);
    let names: Vec<_> = server.records().iter().map(|record| record["name"].clone()).collect();
    assert_eq!(names, ["web", "api"]);
    assert_eq!(server.metric("plimsoll_records_suppressed_total"), 9.0);
}

#[test]
fn k05_what_is_allowed_is_written_each_time() {
    let warned = Verdict { denial: None, ..everything() };
    assert!(warned.findings.iter().any(|judged| judged.action == Action::Warn));
    let server = Server::decided_by(Always(warned));
    for _ in 0..3 {
        server.validate(&any_review());
    }
    assert_eq!(server.records().len(), 3);
}

#[test]
fn k06_a_closed_output_stops_no_answer() {
    let mut process = Process::start(&[]);
    process.close_output();
    for _ in 0..20 {
        assert!(process.post("/mutate", &any_review()).allowed());
    }
    let dropped = || {
        let (_, metrics) = process.admin("/metrics");
        let line = metrics.lines().find(|line| line.starts_with("plimsoll_records_dropped_total "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    crate::harness::wait_until("dropped records", || {
        assert!(process.post("/mutate", &any_review()).allowed());
        dropped() > 0
    });
    process.signal("INT");
    assert_eq!(process.ended().code(), Some(0));
}

#[test]
fn k06_a_failing_start_with_a_closed_standard_error_still_has_its_exit_code() {
    let mut child = serve(&["--colour"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn k08_the_process_writes_one_json_object_a_decision() {
    let process = Process::start(&[]);
    assert!(process.post("/validate", &any_review()).allowed());
    let record = process.wait_for("decision");
    let expected = [
        ("uid", "0a1b2c"),
        ("endpoint", "validate"),
        ("operation", "CREATE"),
        ("decision", "allow"),
        ("group", "apps"),
        ("kind", "Deployment"),
        ("ns", "shop"),
        ("name", "web"),
        ("user", "alice"),
    ];
    for (field, value) in expected {
        assert_eq!(record[field], value, "{field}");
    }
    for field in ["ts", "rules", "fixes", "policy", "groupsHash", "dryRun", "durationMs", "opsCount"] {
        assert!(!record[field].is_null(), "{field}");
    }
}

#[test]
fn usage_errors_are_one_line_and_code_2_and_help_tells_every_default() {
    let output = serve(&["--drain-delay", "soon"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "plimsoll: invalid value 'soon' for '--drain-delay <DURATION>': not a duration such as 500ms, 3s or 1m30s (see plimsoll --help)\n"
    );
    let mut child = serve(&["--help"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut help = String::new();
    child.stdout.take().unwrap().read_to_string(&mut help).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(help.contains("[env: PLIMSOLL_DRAIN_DELAY=]") && help.contains("[default: 15s]"), "{help}");
}
