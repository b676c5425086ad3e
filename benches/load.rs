//! What one review costs beside a null webhook: the same TLS and HTTP stack, the whole body read, a constant answered.
//!
//! `cargo bench --bench load` starts both as processes of their own, sends the same reviews to them in turn over one
//! kept-alive connection each, and prints processor time per review and the ratio. Only the ratio means something from
//! one machine to the next. A word after `--` chooses the rows that have it: `cargo bench --bench load -- CREATE`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::routing::post;
use plimsoll::config::{Reference, Source};
use plimsoll::engine::facts::{Facts, Known, Reason, ServerVersion};
use plimsoll::policy::{Policy, Store};
use plimsoll::server::decide::{Constant, Engine};
use plimsoll::server::drain::Drain;
use plimsoll::server::lines::Lines;
use plimsoll::server::listen::{self, Connections, Tls};
use plimsoll::server::metrics::Metrics;
use plimsoll::server::record::Format;
use plimsoll::server::{App, Config, Limits, mint, router, tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Reviews in one turn, and turns of each server.
const REVIEWS: usize = 4_000;
const TURNS: usize = 5;

fn main() -> Result<(), Failure> {
    match std::env::args().skip_while(|argument| argument != "--serve").nth(1) {
        Some(which) => serve(&which),
        None => compare(),
    }
}

/// Serves until standard input ends; says the port and the CA on standard output.
fn serve(which: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = tempfile::tempdir()?;
        let now = SystemTime::now();
        let minted = mint::mint(&["localhost".to_owned()], now, Duration::from_secs(86_400))?;
        let pair = minted.write(folder.path())?.load(now)?;
        let metrics = Arc::new(Metrics::new()?);
        let acceptor = tls::server_config(tls::Current::new(&pair))?.into();
        let tls = Tls { acceptor, failures: metrics.handshake_failures.clone() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", json!({"port": listener.local_addr()?.port(), "ca": minted.ca}));
        let app = if which == "null" { null() } else { plimsoll(metrics)? };
        let connections = Connections { requests: u64::MAX, ..Connections::default() };
        let server = tokio::spawn(listen::serve(listener, Some(tls), app, connections, Drain::default()));
        let closed = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
        let _ = closed.await?;
        server.abort();
        Ok(())
    })
}

/// Reads the whole body and allows.
fn null() -> Router {
    let answer = || {
        async move |body: Body| {
            let body = to_bytes(body, 7 << 20).await.unwrap_or_default();
            std::hint::black_box(&body);
            let json = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"0a1b2c","allowed":true}}"#;
            ([("content-type", "application/json")], json)
        }
    };
    Router::new().route("/mutate", post(answer())).route("/validate", post(answer()))
}

/// The real router under the baseline, with every fact at hand and its records thrown away.
fn plimsoll(metrics: Arc<Metrics>) -> Result<Router, Failure> {
    let policy = Arc::new(Store::with(Policy::baseline()?));
    let reference = Reference { source: Source::ConfigMap, name: "settings".into(), keys: None, optional: false };
    let facts = Facts {
        server_version: Known::Known(ServerVersion::NEWEST),
        quotas: Known::Absent,
        limit_range: Known::Absent,
        revisions: Known::Absent,
        digests: [(reference, Known::Known("0".repeat(64)))].into(),
        ..Facts::unknown(Reason::NotAsked)
    };
    let lines = Lines::to(std::io::sink(), 8 << 20, metrics.records_dropped.clone())?;
    Ok(router(App::new(Config {
        decider: Arc::new(Engine::new(policy.clone(), Arc::new(Constant(facts)))),
        policy,
        conditions: Vec::new(),
        metrics,
        lines,
        format: Format::Json,
        limits: Limits::default(),
        drain: Drain::default(),
        own_user: None,
        own_namespace: None,
        policy_config_map: None,
    })))
}

/// A server in a process of its own, and the connection to it.
struct Server {
    process: Child,
    connection: rustls::StreamOwned<rustls::ClientConnection, TcpStream>,
}

impl Server {
    fn start(which: &str) -> Result<Server, Failure> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--serve", which])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line)?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(said["ca"].as_str().ok_or("no CA")?.as_bytes())?)?;
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = rustls::ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
        let port = u16::try_from(said["port"].as_u64().ok_or("no port")?)?;
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Server { process, connection: rustls::StreamOwned::new(client, stream) })
    }

    /// Processor time of the server for one turn of reviews, microseconds a review.
    fn turn(&mut self, path: &str, body: &str) -> Result<f64, Failure> {
        let head = format!(
            "POST {path}?timeout=3s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        self.send(&request)?;
        let before = self.processor_time()?;
        for _ in 0..REVIEWS {
            self.send(&request)?;
        }
        Ok((self.processor_time()? - before) / REVIEWS as f64)
    }

    fn send(&mut self, request: &[u8]) -> Result<(), Failure> {
        self.connection.write_all(request)?;
        self.connection.flush()?;
        let mut answer = Vec::new();
        let mut buffer = [0; 16_384];
        loop {
            let read = self.connection.read(&mut buffer)?;
            if read == 0 {
                return Err("the server hung up".into());
            }
            answer.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&answer);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            if !head.starts_with("HTTP/1.1 200") {
                return Err(format!("{head}\n{body}").into());
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.ok_or("no length")?.trim().parse()?;
            if body.len() >= length {
                return Ok(());
            }
        }
    }

    /// User and system time so far, microseconds: fields 14 and 15 of `/proc/PID/stat`, in ticks of 10 ms.
    fn processor_time(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no fields")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) * 10_000.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn compare() -> Result<(), Failure> {
    let cases = [
        ("CREATE to /mutate, 4 fixes", "/mutate", create(6_000)),
        ("CREATE to /validate", "/validate", create(6_000)),
        ("UPDATE with managedFields to /mutate", "/mutate", update(65_000)),
        ("UPDATE with managedFields to /validate", "/validate", update(65_000)),
    ];
    let chosen = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let (mut null, mut real) = (Server::start("null")?, Server::start("plimsoll")?);
    println!("processor time per review, median of {TURNS} turns of {REVIEWS} reviews");
    for (name, path, body) in cases.into_iter().filter(|(name, ..)| name.contains(&chosen)) {
        let (mut nulls, mut reals, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let (a, b) = (null.turn(path, &body)?, real.turn(path, &body)?);
            nulls.push(a);
            reals.push(b);
            ratios.push(b / a);
        }
        let (null, real, ratio) = (median(nulls), median(reals), median(ratios));
        println!(
            "{name:<40} {:>6} bytes   null {null:>6.1} us   plimsoll {real:>6.1} us   ratio {ratio:.2}",
            body.len()
        );
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A Deployment as the API server hands it on, its defaults filled in, `bytes` long or a little more.
fn deployment(bytes: usize) -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": "registry.example/team/service:1.2.3", "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "envFrom": [{"configMapRef": {"name": "settings"}}],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1,
                              "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1,
                               "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 3},
        })
    };
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": 4, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container("app")], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
                         "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "securityContext": {}},
            },
        },
    });
    let mut environment = Vec::new();
    while object.to_string().len() < bytes {
        let number = environment.len();
        environment.push(json!({"name": format!("SETTING_{number}"), "value": format!("value of setting {number}")}));
        if environment.len() % 16 == 0 || object.to_string().len() + 200 > bytes {
            object["spec"]["template"]["spec"]["containers"][0]["env"] = json!(environment);
        }
    }
    object
}

fn review(operation: &str, object: Value, old_object: Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "0a1b2c", "operation": operation, "namespace": "shop", "name": "web", "dryRun": false,
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "requestKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "userInfo": {"username": "alice", "groups": ["developers", "system:authenticated"]},
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "fieldManager": "kubectl"},
            "object": object, "oldObject": old_object,
        },
    })
    .to_string()
}

fn create(bytes: usize) -> String {
    review("CREATE", deployment(bytes - 600), Value::Null)
}

/// The image changed; both objects carry managedFields of about their own size.
fn update(bytes: usize) -> String {
    let mut old = deployment(bytes / 4);
    let fields: serde_json::Map<String, Value> = (0..bytes / 4 / 40)
        .map(|number| (format!("k:{{\"name\":\"SETTING_{number}\"}}"), json!({"f:value": {}})))
        .collect();
    old["metadata"]["uid"] = json!("5f3c1b1e-0000-4000-8000-000000000001");
    old["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:template": {"f:spec": fields}}}}]);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/team/service:1.2.4");
    review("UPDATE", new, old)
}
