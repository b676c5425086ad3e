//! A real server in this process: the real router, real TLS, port 0. Its calls block, so that tests read from top to
//! bottom.

pub mod client;
pub mod deciders;
pub mod process;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use plimsoll::cluster::FactSource;
use plimsoll::engine::facts::Facts;
use plimsoll::engine::kind::KINDS;
use plimsoll::policy::{Policy, Store};
use plimsoll::server::decide::{Constant, Decide, Engine};
use plimsoll::server::drain::Drain;
use plimsoll::server::lines::Lines;
use plimsoll::server::listen::{Connections, Tls};
use plimsoll::server::metrics::Metrics;
use plimsoll::server::mint::{Minted, mint};
use plimsoll::server::record::Format;
use plimsoll::server::tls::{self, Files};
use plimsoll::server::{App, Condition, Config, Limits, health, listen, router};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

pub use client::{Client, Reply};

/// Our own ServiceAccount.
pub const OWN_USER: &str = "system:serviceaccount:plimsoll:plimsoll";

/// No test waits this long unless it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An object as YAML reads.
pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// A v1 review of one of our kinds (`Deployment`) or of any other (`example.io/v1/Widget`), in namespace `shop`, by
/// `alice`; `request.name` is the object's.
pub fn review(operation: &str, kind: &str, object: &str) -> Value {
    let object = yaml(object);
    let (group, version, kind) = match kind.split('/').collect::<Vec<_>>()[..] {
        [group, version, kind] => (group, version, kind),
        _ => {
            let row = KINDS.iter().find(|row| row.kind == kind).unwrap();
            (row.group, if row.group == "argoproj.io" { "v1alpha1" } else { "v1" }, row.kind)
        }
    };
    let resource = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0a1b2c",
            "operation": operation,
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource},
            "namespace": "shop",
            "name": object["metadata"]["name"].as_str().unwrap_or_default(),
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": object,
            "oldObject": null,
            "dryRun": false,
        },
    })
}

/// An UPDATE from one object to another.
pub fn update(kind: &str, old_object: &str, object: &str) -> Value {
    let mut review = review("UPDATE", kind, object);
    review["request"]["oldObject"] = yaml(old_object);
    review
}

/// The object as the API server would store it: the patch applied.
pub fn apply(patch: &Value, object: &Value) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    let mut object = object.clone();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

/// What a test may set; the rest is as in `plimsoll serve`.
pub struct Options {
    /// What decides.
    pub decider: Arc<dyn Decide>,
    /// Bounds of reviews.
    pub limits: Limits,
    /// Bounds of connections.
    pub connections: Connections,
    /// What must be there before anything is decided.
    pub conditions: Vec<Condition>,
    /// Namespace that we run in.
    pub own_namespace: Option<String>,
    /// ConfigMap that holds our policy.
    pub policy_config_map: Option<(String, String)>,
    /// The certificate's files, looked at every few milliseconds; `None`: a fresh pair that stays.
    pub files: Option<Files>,
}

impl Options {
    /// As in `plimsoll serve`, with this decider.
    pub fn new(decider: Arc<dyn Decide>) -> Self {
        Options {
            decider,
            limits: Limits::default(),
            connections: Connections::default(),
            conditions: Vec::new(),
            own_namespace: None,
            policy_config_map: None,
            files: None,
        }
    }
}

/// The running server.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether it leaves.
    pub drain: Drain,
    runtime: Runtime,
    admin: Router,
    lines: Lines,
    log: Log,
    _folder: TempDir,
}

/// Log lines, kept.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A fresh pair for localhost. Clients trust any; which one it is, is asserted where it matters.
pub fn localhost() -> Minted {
    mint(&["localhost".to_owned(), "127.0.0.1".to_owned()], SystemTime::now(), Duration::from_secs(86_400)).unwrap()
}

impl Server {
    /// The real engine under this policy, with these facts.
    pub fn start(policy: Policy, facts: Facts) -> Server {
        Server::asking(policy, Arc::new(Constant(facts)))
    }

    /// The real engine under this policy, with facts from this source; its own ServiceAccount is [`OWN_USER`].
    pub fn asking(policy: Policy, facts: Arc<dyn FactSource>) -> Server {
        Server::with(Options::new(Arc::new(Engine::new(Arc::new(Store::with(policy)), facts))))
    }

    /// Any decider, default bounds.
    pub fn decided_by(decider: impl Decide + 'static) -> Server {
        Server::with(Options::new(Arc::new(decider)))
    }

    /// Anything else.
    pub fn with(options: Options) -> Server {
        let metrics = Arc::new(Metrics::new().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let files = options.files.clone().unwrap_or_else(|| localhost().write(folder.path()).unwrap());
        let current = tls::Current::new(&files.load(SystemTime::now()).unwrap());
        let log = Log::default();
        let lines = Lines::to(log.clone(), 8 << 20, metrics.records_dropped.clone()).unwrap();
        let drain = Drain::default();
        let app = App::new(Config {
            decider: options.decider,
            policy: Arc::default(),
            conditions: options.conditions,
            metrics: metrics.clone(),
            lines: lines.clone(),
            format: Format::Json,
            limits: options.limits,
            drain: drain.clone(),
            own_user: Some(OWN_USER.to_owned()),
            own_namespace: options.own_namespace,
            policy_config_map: options.policy_config_map,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let tls = Tls {
            acceptor: tls::server_config(current.clone()).unwrap().into(),
            failures: metrics.handshake_failures.clone(),
        };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        if options.files.is_some() {
            runtime.spawn(tls::watch(files, current, Duration::from_millis(5), None, metrics));
        }
        runtime.spawn(listen::serve(listener, Some(tls), router(app.clone()), options.connections, drain.clone()));
        Server { address, drain, runtime, admin: health::router(app), lines, log, _folder: folder }
    }

    /// A new connection.
    pub fn connect(&self) -> Client<'_> {
        Client::connect(&self.runtime, self.address).unwrap()
    }

    /// A new connection, if it can be had.
    pub fn try_connect(&self) -> io::Result<Client<'_>> {
        Client::connect(&self.runtime, self.address)
    }

    /// A new connection for a request that is written and then forgotten.
    pub async fn connect_raw(&self) -> client::Raw {
        client::Raw::connect(self.address).await
    }

    /// Sends the review to `/mutate`.
    pub fn mutate(&self, review: &Value) -> Reply {
        self.connect().post("/mutate", review)
    }

    /// Sends the review to `/validate`.
    pub fn validate(&self, review: &Value) -> Reply {
        self.connect().post("/validate", review)
    }

    /// Status and text of an admin path.
    pub fn admin(&self, path: &str) -> (u16, String) {
        let request = axum::http::Request::get(path).body(Body::empty()).unwrap();
        self.runtime.block_on(async {
            let response = self.admin.clone().oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(bytes.to_vec()).unwrap())
        })
    }

    /// The value of one series, by its exact name and labels; 0 where it is not there.
    pub fn metric(&self, series: &str) -> f64 {
        let (_, text) = self.admin("/metrics");
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_default()
    }

    /// All decision records so far.
    pub fn records(&self) -> Vec<Value> {
        self.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The log as it was written.
    pub fn log(&self) -> String {
        self.lines.flush(PATIENCE);
        String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap()
    }

    /// Runs a future on the server's runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }
}

/// Looks again and again until it is so.
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
