//! The way in: the real router behind real TLS, one server for each world.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use plimsoll::cluster::FactSource;
use plimsoll::policy::{Policy, Store};
use plimsoll::server::decide::Engine;
use plimsoll::server::drain::Drain;
use plimsoll::server::lines::Lines;
use plimsoll::server::listen::{self, Connections, Tls};
use plimsoll::server::metrics::{Metrics, PolicyState};
use plimsoll::server::record::Format;
use plimsoll::server::tls::{self, Current};
use plimsoll::server::{App, Config, Limits, mint, router};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Our own ServiceAccount.
pub const OWN_USER: &str = "system:serviceaccount:plimsoll:plimsoll";

/// The namespace that the server runs in.
pub const OWN_NAMESPACE: &str = "plimsoll";

/// One runtime for the servers of all traps and for those who ask them.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// One certificate for all of them, made once.
static IDENTITY: LazyLock<(TlsAcceptor, TlsConnector)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let (now, day) = (SystemTime::now(), Duration::from_secs(86_400));
    let minted = mint::mint(&["localhost".to_owned()], now, day).expect("a certificate");
    let pair = minted.write(folder.path()).expect("files").load(now).expect("a pair");
    let server = tls::server_config(Current::new(&pair)).expect("a TLS configuration");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(minted.ca.as_bytes()).expect("PEM")).expect("an authority");
    let client = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("a TLS version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (TlsAcceptor::from(server), TlsConnector::from(Arc::new(client)))
});

/// A server that runs, until dropped.
pub struct Door {
    port: u16,
    metrics: Arc<Metrics>,
    drain: Drain,
}

impl Door {
    /// Starts a server with this policy and these facts.
    pub fn open(policy: &str, facts: Arc<dyn FactSource>) -> Door {
        let policy = Policy::parse(policy).unwrap_or_else(|error| panic!("{error}"));
        let policy = Arc::new(Store::with(policy));
        let metrics = Arc::new(Metrics::new().expect("metrics"));
        let drain = Drain::default();
        let app = App::new(Config {
            decider: Arc::new(Engine::new(policy.clone(), facts)),
            policy,
            conditions: Vec::new(),
            metrics: metrics.clone(),
            lines: Lines::to(std::io::sink(), 1 << 20, metrics.records_dropped.clone()).expect("a thread"),
            format: Format::Json,
            limits: Limits::default(),
            drain: drain.clone(),
            own_user: Some(OWN_USER.to_owned()),
            own_namespace: Some(OWN_NAMESPACE.to_owned()),
        });
        let listener = RUNTIME.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let tls = Tls { acceptor: IDENTITY.0.clone(), failures: metrics.handshake_failures.clone() };
        RUNTIME.spawn(listen::serve(listener, Some(tls), router(app), Connections::default(), drain.clone()));
        Door { port, metrics, drain }
    }

    /// Posts a review: the HTTP status and the body.
    pub fn post(&self, path: &str, body: &str) -> (u16, String) {
        RUNTIME.block_on(async {
            let stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("a connection");
            let name = ServerName::try_from("localhost").expect("a name");
            let mut stream = IDENTITY.1.connect(name, stream).await.expect("a handshake");
            let head = format!(
                "POST {path}?timeout=10s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.expect("to write");
            stream.write_all(body.as_bytes()).await.expect("to write");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
            (status, body.to_owned())
        })
    }

    /// All metrics, as they are scraped.
    pub fn metrics(&self) -> String {
        self.metrics.render(PolicyState::default()).expect("metrics")
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.drain.enter(plimsoll::server::drain::Phase::Ended);
    }
}
