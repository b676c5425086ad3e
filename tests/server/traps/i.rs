//! I: certificates, draining, readiness.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use plimsoll::engine::verdict::Verdict;
use plimsoll::server::Condition;
use plimsoll::server::drain::Phase;
use plimsoll::server::listen::Connections;
use plimsoll::server::mint::mint;
use plimsoll::server::tls::Files;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::harness::client::{Client, tls};
use crate::harness::deciders::{Always, Gated, NoPolicy, everything};
use crate::harness::process::{Process, serve};
use crate::harness::{Options, Server, localhost, review, wait_until};

fn any_review() -> Value {
    review("CREATE", "Deployment", "metadata: {name: web}")
}

#[test]
fn i01_nothing_in_our_own_namespace_is_judged() {
    let server = Server::with(Options {
        own_namespace: Some("plimsoll".to_owned()),
        ..Options::new(Arc::new(Always(everything())))
    });
    let mut own = any_review();
    assert!(!server.validate(&own).allowed());
    own["request"]["namespace"] = json!("plimsoll");
    for reply in [server.validate(&own), server.mutate(&own)] {
        assert_eq!(reply.response(), &json!({"uid": "0a1b2c", "allowed": true}));
    }
    assert_eq!(server.records()[1]["outOfScope"], true);
}

/// A volume as the kubelet makes them: the files are links through `..data`, which is swapped whole.
struct Volume {
    folder: tempfile::TempDir,
    version: u32,
}

impl Volume {
    fn new() -> Self {
        let mut volume = Volume { folder: tempfile::tempdir().unwrap(), version: 0 };
        volume.swap(write_pair);
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), volume.folder.path().join(name)).unwrap();
        }
        volume
    }

    fn files(&self) -> Files {
        Files { cert: self.folder.path().join("tls.crt"), key: self.folder.path().join("tls.key") }
    }

    fn swap(&mut self, fill: impl FnOnce(&Path)) {
        self.version += 1;
        let name = format!("..{}", self.version);
        fs::create_dir(self.folder.path().join(&name)).unwrap();
        fill(&self.folder.path().join(&name));
        symlink(&name, self.folder.path().join("..new")).unwrap();
        fs::rename(self.folder.path().join("..new"), self.folder.path().join("..data")).unwrap();
    }

    fn certificate(&self) -> Vec<u8> {
        CertificateDer::from_pem_file(self.files().cert).unwrap().to_vec()
    }
}

fn write_pair(folder: &Path) {
    localhost().write(folder).unwrap();
}

#[test]
fn i06_new_pairs_are_used_each_time_and_open_connections_stay() {
    let mut volume = Volume::new();
    let server =
        Server::with(Options { files: Some(volume.files()), ..Options::new(Arc::new(Always(Verdict::default()))) });
    let mut old = server.connect();
    for _ in 0..3 {
        volume.swap(write_pair);
        let expected = volume.certificate();
        wait_until("the new certificate", || server.connect().certificate == expected);
        assert_ne!(old.certificate, expected);
        assert!(old.post("/mutate", &any_review()).allowed());
    }
    assert_eq!(server.metric("plimsoll_certificate_reload_failures_total"), 0.0);
}

#[test]
fn i06_a_bad_pair_is_counted_and_the_good_one_stays_until_a_better_comes() {
    let mut volume = Volume::new();
    let good = volume.certificate();
    let server =
        Server::with(Options { files: Some(volume.files()), ..Options::new(Arc::new(Always(Verdict::default()))) });
    let failures = |count: f64| {
        wait_until("a counted failure", || server.metric("plimsoll_certificate_reload_failures_total") == count);
        assert_eq!(server.connect().certificate, good);
    };
    volume.swap(|folder| {
        write_pair(folder);
        fs::write(folder.join("tls.key"), localhost().key).unwrap();
    });
    failures(1.0);
    volume.swap(|folder| {
        let then = SystemTime::now() - Duration::from_secs(7200);
        mint(&["localhost".to_owned()], then, Duration::from_secs(60)).unwrap().write(folder).unwrap();
    });
    failures(2.0);
    volume.swap(|_| {});
    failures(3.0);
    let life = Duration::from_secs(1000);
    let now = SystemTime::now();
    volume.swap(|folder| {
        mint(&["localhost".to_owned()], now, life).unwrap().write(folder).unwrap();
    });
    let expected = volume.certificate();
    wait_until("the new certificate", || server.connect().certificate == expected);
    let not_after = (now + life).duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(server.metric("plimsoll_certificate_not_after_seconds"), not_after as f64);
}

#[test]
fn i08_the_process_does_not_start_with_an_expired_or_broken_pair() {
    let folder = tempfile::tempdir().unwrap();
    let then = SystemTime::now() - Duration::from_secs(7200);
    let files = mint(&["localhost".to_owned()], then, Duration::from_secs(60)).unwrap().write(folder.path()).unwrap();
    let start = || {
        let mut command = serve(&["--standalone", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.arg("--tls-cert").arg(&files.cert).arg("--tls-key").arg(&files.key).output().unwrap()
    };
    let output = start();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(told.lines().count(), 1);
    assert!(told.contains("tls.crt expired") && told.contains("seconds ago"), "{told}");
    fs::remove_file(&files.key).unwrap();
    assert_eq!(start().status.code(), Some(1));
}

#[test]
fn i09_a_pair_that_is_not_valid_yet_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let later = SystemTime::now() + Duration::from_secs(7200);
    let files =
        mint(&["localhost".to_owned()], later, Duration::from_secs(86_400)).unwrap().write(folder.path()).unwrap();
    let server = Server::with(Options { files: Some(files), ..Options::new(Arc::new(Always(Verdict::default()))) });
    assert!(server.mutate(&any_review()).allowed());
}

#[test]
fn i10_the_standalone_certificate_is_good_for_localhost_under_its_authority() {
    let process = Process::start(&[]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(process.folder.path().join("ca.crt")).unwrap()).unwrap();
    let config = tls(Some(roots), &["http/1.1"]);
    let mut client = Client::connect_with(process.runtime(), process.address, config).unwrap();
    assert!(client.post("/mutate", &any_review()).allowed());
}

#[test]
fn i11_leaving_is_not_ready_but_serves_and_closes_each_connection() {
    let server = Server::decided_by(Always(Verdict::default()));
    let mut open = server.connect();
    assert_eq!(open.post("/mutate", &any_review()).connection, None);
    assert_eq!(server.admin("/readyz"), (200, "policy: ok\nserving: ok\n".to_owned()));
    server.drain.enter(Phase::Leaving);
    assert_eq!(server.admin("/readyz"), (503, "policy: ok\nserving: leaving\n".to_owned()));
    assert_eq!(server.admin("/livez").0, 200);
    for client in [&mut open, &mut server.connect()] {
        let reply = client.post("/mutate", &any_review());
        assert!(reply.allowed());
        assert_eq!(reply.connection.as_deref(), Some("close"));
    }
}

#[test]
fn i11_a_request_under_way_is_answered_after_the_end_of_accepting() {
    let gated = Gated::closed();
    let server = Server::decided_by(gated.clone());
    std::thread::scope(|scope| {
        let under_way = scope.spawn(|| server.connect().post("/validate", &any_review()));
        server.block_on(gated.reached.acquire()).unwrap().forget();
        server.drain.enter(Phase::Leaving);
        server.drain.enter(Phase::Ended);
        wait_until("the end of accepting", || server.try_connect().is_err());
        gated.gate.add_permits(1);
        let reply = under_way.join().unwrap();
        assert!(reply.allowed());
        assert_eq!(reply.connection.as_deref(), Some("close"));
    });
}

#[test]
fn i11_sigterm_drains_and_ends_with_0() {
    let mut process = Process::start(&["--drain-delay", "1h"]);
    let mut open = Client::connect(process.runtime(), process.address).unwrap();
    assert!(open.post("/mutate", &any_review()).allowed());
    process.signal("TERM");
    wait_until("not ready", || process.admin("/readyz").0 == 503);
    assert_eq!(open.post("/mutate", &any_review()).connection.as_deref(), Some("close"));
    assert!(process.post("/validate", &any_review()).allowed());
    drop(open);
    // The delay of an hour ends with a second signal.
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
}

#[test]
fn i11_sigterm_ends_by_itself_and_sigint_at_once() {
    let mut process = Process::start(&["--drain-delay", "10ms"]);
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
    let mut process = Process::start(&["--drain-delay", "1h"]);
    process.signal("INT");
    assert_eq!(process.ended().code(), Some(0));
}

#[test]
fn i12_a_connection_is_closed_after_so_many_requests() {
    let server = Server::with(Options {
        connections: Connections { requests: 3, ..Connections::default() },
        ..Options::new(Arc::new(Always(Verdict::default())))
    });
    let mut client = server.connect();
    let closes: Vec<_> = (0..3).map(|_| client.post("/mutate", &any_review()).connection).collect();
    assert_eq!(closes, [None, None, Some("close".to_owned())]);
    assert!(client.try_send("POST", "/mutate", Some("application/json"), Vec::new()).is_err());
}

#[test]
fn i12_http_2_is_not_offered() {
    let server = Server::decided_by(Always(Verdict::default()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    assert!(Client::connect_with(&runtime, server.address, tls(None, &["h2"])).is_err());
    assert!(Client::connect_with(&runtime, server.address, tls(None, &["h2", "http/1.1"])).is_ok());
    assert_eq!(server.metric("plimsoll_tls_handshake_failures_total"), 1.0);
}

#[test]
fn i13_without_a_policy_readiness_says_so_and_reviews_are_503() {
    let server = Server::decided_by(NoPolicy);
    assert_eq!(server.admin("/readyz"), (503, "policy: none is loaded yet\nserving: ok\n".to_owned()));
    assert_eq!(server.admin("/livez"), (200, "ok\n".to_owned()));
    for reply in [server.mutate(&any_review()), server.validate(&any_review())] {
        assert_eq!((reply.status, reply.text.as_str()), (503, "plimsoll: not ready, policy: none is loaded yet\n"));
    }
    assert_eq!(server.metric(r#"plimsoll_requests_refused_total{reason="not-ready"}"#), 2.0);
}

#[test]
fn i13_a_missing_condition_is_named_until_it_is_met() {
    let known = Arc::new(AtomicBool::new(false));
    let seen = known.clone();
    let server = Server::with(Options {
        conditions: vec![Condition {
            name: "server-version",
            missing: Box::new(move || (!seen.load(Ordering::Relaxed)).then(|| "not asked yet".to_owned())),
        }],
        ..Options::new(Arc::new(Always(Verdict::default())))
    });
    let text = "policy: ok\nserver-version: not asked yet\nserving: ok\n";
    assert_eq!(server.admin("/readyz"), (503, text.to_owned()));
    assert_eq!(server.mutate(&any_review()).text, "plimsoll: not ready, server-version: not asked yet\n");
    known.store(true, Ordering::Relaxed);
    assert_eq!(server.admin("/readyz").0, 200);
    assert!(server.mutate(&any_review()).allowed());
}

#[test]
fn i20_members_of_a_newer_api_server_are_ignored() {
    let mut review = any_review();
    review["request"]["futureThing"] = json!({});
    review["future"] = json!([1]);
    assert!(Server::decided_by(Always(Verdict::default())).validate(&review).allowed());
}

#[test]
fn i14_a_broken_policy_is_denied_when_it_is_applied() {
    let server = Server::with(Options {
        own_namespace: Some("plimsoll".to_owned()),
        policy_config_map: Some(("plimsoll".to_owned(), "plimsoll-policy".to_owned())),
        ..Options::new(Arc::new(Always(Verdict::default())))
    });
    let update = |name: &str, object: serde_json::Value, old: serde_json::Value| {
        let mut review = review("UPDATE", "ConfigMap", &object.to_string());
        review["request"]["oldObject"] = old;
        review["request"]["object"]["metadata"]["name"] = name.into();
        review["request"]["namespace"] = "plimsoll".into();
        server.validate(&review)
    };
    let of = |policy: &str| serde_json::json!({"metadata": {}, "data": {"policy.yaml": policy}});
    let config_map = |name: &str, policy: &str| update(name, of(policy), of("another"));
    let policy = |seconds: &str| {
        format!(
            "apiVersion: plimsoll.dev/v1alpha1\nkind: Policy\nmetadata: {{name: cluster}}\nspec:\n  rules:\n    \
             missing-pre-stop: {{params: {{sleepSeconds: {seconds}}}}}\n"
        )
    };
    assert!(config_map("plimsoll-policy", &policy("10")).allowed());
    let refused = config_map("plimsoll-policy", &policy("ten"));
    assert!(!refused.allowed());
    assert!(
        refused.message().starts_with(
            "Plimsoll reads its policy from ConfigMap plimsoll/plimsoll-policy: it is no valid policy, and the one in \
             force stays:\n"
        ),
        "{}",
        refused.message()
    );
    assert!(refused.message().contains("spec.rules.missing-pre-stop.params.sleepSeconds"), "{}", refused.message());
    assert!(refused.message().contains("line 6"), "{}", refused.message());
    assert!(config_map("another", &policy("ten")).allowed(), "other ConfigMaps are nobody's business");
    for (instead, has) in [
        (serde_json::json!({"metadata": {}}), "; it is empty"),
        (
            serde_json::json!({"metadata": {}, "data": {"policy.yml": "", "README": ""}}),
            "; it has \"README\", \"policy.yml\"",
        ),
        (
            serde_json::json!({"metadata": {}, "binaryData": {"policy.yaml": "/w=="}}),
            "; it is there as binaryData, which means that it is not UTF-8",
        ),
    ] {
        let gone = update("plimsoll-policy", instead, of(&policy("10")));
        assert!(!gone.allowed());
        let message = format!("it has no policy under the key policy.yaml{has}, and the one in force stays");
        assert!(gone.message().contains(&message), "{}", gone.message());
    }

    // What was broken before is no fault of who sets a label (B11), and a finalizer must be able to go.
    let mut labelled = of(&policy("ten"));
    labelled["metadata"]["labels"] = serde_json::json!({"team": "platform"});
    assert!(update("plimsoll-policy", labelled, of(&policy("ten"))).allowed());
    let mut going = of(&policy("10"));
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert!(update("plimsoll-policy", of(&policy("ten")), going).allowed());
}
