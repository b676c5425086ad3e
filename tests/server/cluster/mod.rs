//! Facts from a live API server, over real HTTP.

mod configs;
mod fake_api;
mod memory;
mod neighbours;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fake_api::{Answer, FakeApi};
use plimsoll::cluster::FactSource;
use plimsoll::cluster::live::{Live, Options};
use plimsoll::config::digest::{Content, DigestKey};
use plimsoll::config::{Reference, Source};
use plimsoll::engine::facts::{
    Facts, Known, Needs, Quota, Reason, Revision, RevisionOwner, RevisionStore, ServerVersion,
};
use tokio::sync::Barrier;
use tokio::time::Instant;

const CFG: &str = "/api/v1/namespaces/shop/configmaps/cfg";

fn config_map(name: &str) -> Reference {
    Reference { source: Source::ConfigMap, name: name.to_owned(), keys: None, optional: false }
}

fn secret(name: &str) -> Reference {
    Reference { source: Source::Secret, ..config_map(name) }
}

fn digests(references: &[Reference]) -> Needs {
    Needs { digests: references.to_vec(), ..Needs::default() }
}

fn holding(value: &str) -> Answer {
    Answer::Json(format!(
        r#"{{"kind":"ConfigMap","metadata":{{"name":"cfg","resourceVersion":"7"}},"data":{{"a":"{value}"}},"newer":[1]}}"#
    ))
}

fn digest_of(value: &str) -> Known<String> {
    let data = [("a".to_owned(), value.to_owned())].into();
    Content::config_map(data, Default::default()).unwrap().digest(&config_map("cfg"), "shop", None)
}

/// The facts, with more time than any of these tests can need.
async fn gather(live: &Live, needs: Needs) -> Facts {
    live.gather("shop", needs, Instant::now() + Duration::from_secs(120)).await
}

/// Gathers until the fact is there: watches start in the background.
async fn gather_until(live: &Live, needs: Needs, enough: impl Fn(&Facts) -> bool) -> Facts {
    let enough = async {
        loop {
            let facts = gather(live, needs.clone()).await;
            if enough(&facts) {
                return facts;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), enough).await.expect("the fact never came")
}

fn start(api: &FakeApi) -> Live {
    Live::start(api.config(), Options::default()).unwrap()
}

#[tokio::test]
async fn f02_the_digest_is_of_what_get_says_not_of_what_a_watch_delivered() {
    let old = r#"{"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"cfg"},"data":{"a":"old"}}}"#;
    let api = FakeApi::start(&[
        (CFG, holding("new")),
        ("/api/v1/configmaps?watch", Answer::Watch(format!("{old}\n"))),
        ("/api/v1/namespaces/shop/configmaps?watch", Answer::Watch(format!("{old}\n"))),
    ])
    .await;
    let live = start(&api);
    let facts = gather(&live, digests(&[config_map("cfg")])).await;
    assert_eq!(facts.digest(&config_map("cfg")), digest_of("new"));

    api.set(CFG, holding("newer"));
    let facts = gather(&live, digests(&[config_map("cfg")])).await;
    assert_eq!(facts.digest(&config_map("cfg")), digest_of("newer"), "nothing is kept");
    assert_eq!(api.seen("configmaps"), [CFG, CFG], "two exact reads, no resourceVersion, no list, no watch");
}

#[tokio::test]
async fn f03_f12_absent_forbidden_failed_and_garbled_are_told_apart() {
    let path = |name: &str| format!("/api/v1/namespaces/shop/configmaps/{name}");
    let answers = [
        ("forbidden", Answer::Code(403)),
        ("failed", Answer::Code(500)),
        ("busy", Answer::Code(429)),
        ("unauthorized", Answer::Code(401)),
        ("garbled", Answer::Json("<html>".to_owned())),
        ("base64", Answer::Json(r#"{"binaryData":{"k":"%"}}"#.to_owned())),
        ("huge", Answer::Json(format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(9 << 20)))),
        ("empty", Answer::Json("{}".to_owned())),
    ];
    let api = FakeApi::start(&[]).await;
    answers.into_iter().for_each(|(name, answer)| api.set(&path(name), answer));
    let names = ["gone", "forbidden", "failed", "busy", "unauthorized", "garbled", "base64", "huge", "empty"];
    let facts = gather(&start(&api), digests(&names.map(config_map))).await;
    let digest = |name| facts.digest(&config_map(name));
    assert_eq!(digest("gone"), Known::Absent);
    assert_eq!(digest("forbidden"), Known::Unknown(Reason::Forbidden));
    for name in ["failed", "busy", "unauthorized", "garbled", "base64", "huge"] {
        assert_eq!(digest(name), Known::Unknown(Reason::Failed), "{name}");
    }
    assert!(digest("empty").known().is_some());
    assert_eq!(api.seen("configmaps").len(), 9, "nothing is tried twice");
}

#[tokio::test]
async fn a07_i04_a_hanging_server_costs_no_more_than_the_deadline() {
    let api = FakeApi::start(&[(CFG, Answer::Hang), ("/apis/apps/v1/namespaces/shop/replicasets", Answer::Hang)]).await;
    let live = start(&api);
    let owner = RevisionOwner { store: RevisionStore::ReplicaSets, uid: "u1".to_owned(), match_labels: Vec::new() };
    let needs = Needs { revisions: Some(owner), ..digests(&[config_map("cfg")]) };
    let facts = live.gather("shop", needs.clone(), Instant::now()).await;
    assert_eq!(facts.digest(&config_map("cfg")), Known::Unknown(Reason::TimedOut));
    assert_eq!(api.seen("/shop/"), Vec::<String>::new(), "past the deadline nothing is sent");

    let facts = live.gather("shop", needs, Instant::now() + Duration::from_millis(50)).await;
    assert_eq!(facts.digest(&config_map("cfg")), Known::Unknown(Reason::TimedOut));
    assert_eq!(facts.revisions, Known::Unknown(Reason::TimedOut));
}

#[tokio::test]
async fn i04_a_thousand_reviews_on_a_hanging_server_hold_64_requests() {
    let api = FakeApi::start(&[(CFG, Answer::Hang)]).await;
    let live = start(&api);
    let deadline = Instant::now() + Duration::from_millis(500);
    let reviews = (0..1000).map(|_| live.gather("shop", digests(&[config_map("cfg")]), deadline));
    for facts in futures::future::join_all(reviews).await {
        assert_eq!(facts.digest(&config_map("cfg")), Known::Unknown(Reason::TimedOut));
    }
    assert!(api.most_running() <= 64, "{}", api.most_running());
}

#[tokio::test]
async fn f02_sixteen_references_are_read_four_at_a_time_and_seventeen_not_at_all() {
    let api = FakeApi::start(&[]).await;
    // Each waits for three others: fewer than four at a time would never end.
    let together = Answer::Together(Arc::new(Barrier::new(4)), r#"{"data":{"a":"x"}}"#.to_owned());
    let names: Vec<_> = (0..17).map(|index| config_map(&format!("c{index}"))).collect();
    for reference in &names {
        api.set(&format!("/api/v1/namespaces/shop/configmaps/{}", reference.name), together.clone());
    }
    let live = start(&api);
    let facts = gather(&live, digests(&names[..16])).await;
    assert_eq!(facts.digests.values().filter(|digest| digest.known().is_some()).count(), 16);
    assert_eq!(api.most_running(), 4);

    let facts = gather(&live, digests(&names)).await;
    let reasons: BTreeSet<_> = facts.digests.values().map(Known::unknown).collect();
    assert_eq!((facts.digests.len(), reasons), (17, [Some(Reason::TooMany)].into()));
    assert_eq!(api.seen("configmaps").len(), 16);
}

#[tokio::test]
async fn j01_secrets_are_read_only_with_a_key_and_their_digest_is_keyed() {
    let path = "/api/v1/namespaces/shop/secrets/s";
    let api = FakeApi::start(&[(path, Answer::Json(r#"{"kind":"Secret","data":{"k":"eA=="}}"#.to_owned()))]).await;
    let facts = gather(&start(&api), digests(&[secret("s")])).await;
    assert_eq!(facts.digest(&secret("s")), Known::Unknown(Reason::NotAllowed));
    assert_eq!(api.seen("secrets"), Vec::<String>::new());

    let digest_key = Some(DigestKey::new(&[7; 32]).unwrap());
    let live = Live::start(api.config(), Options { digest_key: digest_key.clone(), ..Options::default() }).unwrap();
    let facts = gather(&live, digests(&[secret("s")])).await;
    let content = Content::secret([("k".to_owned(), "eA==".to_owned())].into(), Default::default()).unwrap();
    assert_eq!(facts.digest(&secret("s")), content.digest(&secret("s"), "shop", digest_key.as_ref()));
    assert_eq!(api.seen("secrets"), [path], "get only, never list or watch");
}

/// What was logged so far.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// One thread, so that this test's subscriber sees all that happens for it.
#[tokio::test(flavor = "current_thread")]
async fn j06_no_log_line_at_any_level_holds_a_secrets_content() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    // With one dispatcher alone, whether a line is logged at all is decided by the thread that comes by it first, which
    // may be another test's; with two, both are asked.
    let sink = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(std::io::sink);
    let _second = tracing::Dispatch::new(sink.finish());
    let path = |name: &str| format!("/api/v1/namespaces/shop/secrets/{name}");
    let api = FakeApi::start(&[]).await;
    api.set(&path("s"), Answer::Json(r#"{"data":{"k":"aHVudGVyMg=="}}"#.to_owned()));
    api.set(&path("garbled"), Answer::Json(r#"{"data":{"k":["hunter2","aHVudGVyMg=="]}}"#.to_owned()));
    api.set(&path("plain"), Answer::Json(r#"{"data":{"k":"hunter2!"}}"#.to_owned()));
    let digest_key = Some(DigestKey::new(b"correct horse battery staple 0123").unwrap());
    let live = Live::start(api.config(), Options { digest_key, ..Options::default() }).unwrap();
    // A log statement that another test's thread meets first may be taken for one that nobody wants: so all are met
    // once, asked anew, and met again.
    gather(&live, digests(&["s", "garbled", "plain"].map(secret))).await;
    tracing::callsite::rebuild_interest_cache();
    let facts = gather(&live, digests(&["s", "garbled", "plain"].map(secret))).await;
    assert!(facts.digest(&secret("s")).known().is_some());
    assert_eq!(facts.digest(&secret("garbled")), Known::Unknown(Reason::Failed));
    assert_eq!(facts.digest(&secret("plain")), Known::Unknown(Reason::Failed));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("garbled"), "failed look-ups are logged by name: {log}");
    for content in ["hunter2", "aHVudGVyMg", "correct horse"] {
        assert!(!log.contains(content), "{log}");
    }
}

#[tokio::test]
async fn j03_names_that_are_no_names_never_become_a_url() {
    let api = FakeApi::start(&[]).await;
    let live = start(&api);
    let names = ["../../../kube-system/secrets/s", "a/b", "A", "a?b", "..", "a%2fb", "a\nb"];
    let facts = gather(&live, digests(&names.map(config_map))).await;
    assert!(facts.digests.values().all(|digest| *digest == Known::Absent));
    let everything = Needs { quotas: true, limit_range: true, ..digests(&[config_map("cfg")]) };
    let facts = live.gather("shop/../prod", everything, Instant::now() + Duration::from_secs(120)).await;
    assert_eq!(facts.digest(&config_map("cfg")), Known::Unknown(Reason::Failed));
    assert_eq!(api.seen("/namespaces/"), Vec::<String>::new());
}

#[tokio::test]
async fn c14_revisions_are_those_that_the_workload_controls() {
    let owned = |uid: &str, name: &str, rest: &str| {
        format!(r#"{{"metadata":{{"name":"{name}","ownerReferences":[{{"uid":"{uid}","controller":true}}]}},{rest}}}"#)
    };
    let template = r#""spec":{"template":{"spec":{"containers":[]}}}"#;
    let stored = r#""data":{"spec":{"template":{"$patch":"replace","spec":{"containers":[]}}}}"#;
    let list = |items: &[String]| Answer::Json(format!(r#"{{"metadata":{{}},"items":[{}]}}"#, items.join(",")));
    let replica_sets = list(&[
        owned("u1", "web-1", template),
        owned("u2", "other-1", template),
        format!(r#"{{"metadata":{{"name":"bare"}},{template}}}"#),
        owned("u1", "web-2", r#""spec":{"replicas":1}"#),
    ]);
    let revisions = list(&[owned("u1", "db-1", stored), owned("u1", "vm-1", r#""data":{"spec":[1]}"#)]);
    let api = FakeApi::start(&[
        ("/apis/apps/v1/namespaces/shop/replicasets", replica_sets),
        ("/apis/apps/v1/namespaces/shop/controllerrevisions", revisions),
    ])
    .await;
    let live = start(&api);
    let labels = [("app", "web"), ("evil", "a,b!=c"), ("app.kubernetes.io/part-of", "shop")];
    let match_labels: Vec<_> = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut owner = RevisionOwner { store: RevisionStore::ReplicaSets, uid: "u1".to_owned(), match_labels };
    let of = |owner: &RevisionOwner| Needs { revisions: Some(owner.clone()), ..Needs::default() };
    let expected = |name: &str| {
        let template = r#"{"spec":{"containers":[]}}"#.to_owned();
        Known::Known(vec![Revision { name: name.to_owned(), template }])
    };
    assert_eq!(gather(&live, of(&owner)).await.revisions, expected("web-1"));
    let requests = api.seen("/shop/replicasets");
    let query = "limit=500&labelSelector=app%3Dweb%2Capp.kubernetes.io%2Fpart-of%3Dshop";
    let wanted: BTreeSet<_> = query.split('&').collect();
    assert_eq!(requests.len(), 1, "one list call");
    let sent = requests[0].split_once('?').unwrap().1.split('&').filter(|part| !part.is_empty());
    assert_eq!(sent.collect::<BTreeSet<_>>(), wanted);

    owner.store = RevisionStore::ControllerRevisions;
    assert_eq!(gather(&live, of(&owner)).await.revisions, expected("db-1"));
    owner.uid = "u9".to_owned();
    assert_eq!(gather(&live, of(&owner)).await.revisions, Known::Absent);
    let page = Answer::Json(r#"{"metadata":{"continue":"more"},"items":[]}"#.to_owned());
    api.set("/apis/apps/v1/namespaces/shop/controllerrevisions", page);
    assert_eq!(gather(&live, of(&owner)).await.revisions, Known::Unknown(Reason::TooMany));
}

const QUOTA: &str = r#"{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"shop","resourceVersion":"5"},
    "spec":{"hard":{"pods":"4","requests.cpu":"1"}},"status":{"used":{"pods":"1"}}}"#;
const LIMIT_RANGE: &str = r#"{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l","namespace":"shop","resourceVersion":"6"},
    "spec":{"limits":[{"type":"Container","default":{"cpu":"1"}}]}}"#;

fn list(items: &str) -> Answer {
    Answer::Json(format!(
        r#"{{"apiVersion":"v1","kind":"List","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#
    ))
}

fn limits() -> Needs {
    Needs { quotas: true, limit_range: true, ..Needs::default() }
}

fn expected_quotas() -> Known<Vec<Quota>> {
    Known::Known(vec![Quota {
        name: "q".to_owned(),
        hard: vec!["pods".to_owned(), "requests.cpu".to_owned()],
        scopes: Vec::new(),
    }])
}

#[tokio::test]
async fn c20_quotas_and_limit_ranges_come_from_watches() {
    let gone = r#"{"type":"DELETED","object":{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"l","namespace":"shop","resourceVersion":"10"}}}"#;
    let added = format!(r#"{{"type":"ADDED","object":{}}}"#, QUOTA.replace('\n', ""));
    // Reads of the one namespace are forbidden: what is known was watched.
    let api = FakeApi::start(&[
        ("/api/v1/resourcequotas", list("")),
        ("/api/v1/resourcequotas?watch", Answer::Watch(format!("{added}\n"))),
        ("/api/v1/namespaces/shop/resourcequotas", Answer::Code(403)),
        ("/api/v1/limitranges", list(LIMIT_RANGE)),
        ("/api/v1/limitranges?watch", Answer::Watch(format!("{gone}\n"))),
        ("/api/v1/namespaces/shop/limitranges", Answer::Code(403)),
    ])
    .await;
    let live = start(&api);
    let facts = gather_until(&live, limits(), |facts| facts.quotas.known().is_some()).await;
    assert_eq!(facts.quotas, expected_quotas());
    let facts = gather_until(&live, limits(), |facts| facts.limit_range == Known::Absent).await;
    assert_eq!(facts.limit_range, Known::Absent);
    let elsewhere = live.gather("other", limits(), Instant::now() + Duration::from_secs(120)).await;
    assert_eq!((elsewhere.quotas, elsewhere.limit_range), (Known::Absent, Known::Absent));
}

#[tokio::test]
async fn c20_quotas_and_limit_ranges_are_read_live_where_no_watch_is_up() {
    let api = FakeApi::start(&[
        ("/api/v1/resourcequotas", Answer::Code(403)),
        ("/api/v1/namespaces/shop/resourcequotas", list(QUOTA)),
        ("/api/v1/limitranges", Answer::Hang),
        ("/api/v1/namespaces/shop/limitranges", list(LIMIT_RANGE)),
    ])
    .await;
    let live = start(&api);
    let facts = gather(&live, limits()).await;
    assert_eq!((facts.quotas, facts.limit_range), (expected_quotas(), Known::Known(())));
    api.set("/api/v1/namespaces/shop/resourcequotas", list(""));
    api.set("/api/v1/namespaces/shop/limitranges", Answer::Code(403));
    let facts = gather(&live, limits()).await;
    assert_eq!((facts.quotas, facts.limit_range), (Known::Absent, Known::Unknown(Reason::Forbidden)));
}

#[tokio::test]
async fn c20_a_watch_that_failed_does_not_count_until_it_is_back() {
    let expired = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}"#;
    let fail = Arc::new(Barrier::new(2));
    let api = FakeApi::start(&[
        ("/api/v1/resourcequotas", list(QUOTA)),
        ("/api/v1/resourcequotas?watch", Answer::Together(Arc::clone(&fail), format!("{expired}\n"))),
        ("/api/v1/namespaces/shop/resourcequotas", Answer::Code(403)),
    ])
    .await;
    let live = start(&api);
    let needs = Needs { quotas: true, ..Needs::default() };
    let facts = gather_until(&live, needs.clone(), |facts| facts.quotas.known().is_some()).await;
    assert_eq!(facts.quotas, expected_quotas());

    api.set("/api/v1/resourcequotas", Answer::Code(500));
    fail.wait().await;
    let forbidden = Known::Unknown(Reason::Forbidden);
    gather_until(&live, needs.clone(), |facts| facts.quotas == forbidden).await;

    api.set("/api/v1/resourcequotas", list(""));
    gather_until(&live, needs, |facts| facts.quotas == Known::Absent).await;
}

#[tokio::test]
async fn b12_i13_the_version_is_unknown_until_the_server_or_a_flag_tells_it() {
    let needs = Needs { server_version: true, ..Needs::default() };
    let api = FakeApi::start(&[("/version", Answer::Hang)]).await;
    let live = start(&api);
    assert_eq!(gather(&live, needs.clone()).await.server_version, Known::Unknown(Reason::Failed));
    assert!(live.ready().unwrap_err().contains("--kube-version"));

    let kube_version = Some(ServerVersion { major: 1, minor: 29 });
    let told = Live::start(api.config(), Options { kube_version, ..Options::default() }).unwrap();
    assert_eq!(gather(&told, needs.clone()).await.server_version, Known::Known(ServerVersion { major: 1, minor: 29 }));
    assert_eq!(told.ready(), Ok(()));

    let answer = r#"{"major":"1","minor":"28+","gitVersion":"v1.28.9-gke.1"}"#;
    let api = FakeApi::start(&[("/version", Answer::Json(answer.to_owned()))]).await;
    let live = Live::start(api.config(), Options { kube_version, ..Options::default() }).unwrap();
    let read = Known::Known(ServerVersion { major: 1, minor: 28 });
    gather_until(&live, needs, |facts| facts.server_version == read).await;
    assert_eq!(live.ready(), Ok(()));
}

#[tokio::test]
async fn what_is_not_needed_is_not_looked_up_and_what_is_looked_up_is_timed() {
    let lookup_duration = prometheus::Histogram::with_opts(prometheus::HistogramOpts::new("lookup", "help")).unwrap();
    let api = FakeApi::start(&[(CFG, holding("x"))]).await;
    let options = Options { lookup_duration: Some(lookup_duration.clone()), ..Options::default() };
    let live = Live::start(api.config(), options).unwrap();
    assert_eq!(gather(&live, Needs::default()).await, Facts::unknown(Reason::NotAsked));
    assert_eq!(api.seen("/namespaces/"), Vec::<String>::new());
    gather(&live, digests(&[config_map("cfg"), config_map("gone")])).await;
    assert_eq!(lookup_duration.get_sample_count(), 2);
}
