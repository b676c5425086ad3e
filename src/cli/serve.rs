//! `plimsoll serve`: wires policy, facts and engine to the server, and ends in good order.

mod args;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub use args::Args;

use super::logging;
use crate::cluster::dir::Dir;
use crate::cluster::{self, FactSource, Offline, live};
use crate::config::digest::{DigestKey, KeyError};
use crate::engine::facts::ServerVersion;
use crate::policy::source::{self, ConfigMapSource, FileSource};
use crate::policy::{self, Policy, Store};
use crate::server::decide::Engine;
use crate::server::drain::{Drain, Phase, Signals};
use crate::server::lines::Lines;
use crate::server::listen::{self, Tls};
use crate::server::metrics::Metrics;
use crate::server::mint::{self, MintError};
use crate::server::record::Format;
use crate::server::tls::{self, Files, PairError};
use crate::server::{App, Condition, Config, health, router};

/// Bytes of log lines that wait for a slow output.
const LOG_BYTES: usize = 8 << 20;
/// How long the end of the process waits for them.
const LOG_PATIENCE: Duration = Duration::from_secs(1);
/// Life of the certificate made at start; the next start makes a new one.
const STANDALONE_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arguments that make no sense.
    #[error("{0}")]
    Usage(String),
    /// The operating system refuses something that every server needs.
    #[error("cannot {action}: {problem}")]
    System {
        /// What was tried.
        action: &'static str,
        /// What the operating system said.
        problem: io::Error,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {problem}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        problem: io::Error,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// No certificate could be made.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// The TLS library refuses its own defaults.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// Two metrics of one name.
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// There is no valid policy to start with (TRAPS I14).
    #[error(transparent)]
    Policy(#[from] source::Error),
    /// The baseline cannot be compiled.
    #[error(transparent)]
    Baseline(#[from] policy::Error),
    /// There is no cluster, or no folder that stands for it.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The key for digests of Secrets.
    #[error(transparent)]
    DigestKey(#[from] KeyError),
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// What kept the server from starting; once it serves, it ends well.
pub fn run(args: &Args) -> Result<(), Error> {
    args.check()?;
    let metrics = Arc::new(Metrics::new()?);
    let format = args.log_format.resolve();
    let system = |action| move |problem| Error::System { action, problem };
    let lines = Lines::to(io::stdout(), LOG_BYTES, metrics.records_dropped.clone())
        .map_err(system("start the log's thread"))?;
    logging::init(&args.log_level, format, lines.clone()).map_err(Error::Usage)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(system("start the runtime"))?;
    let served = runtime.block_on(serve(args, metrics, lines.clone(), format));
    runtime.shutdown_background();
    lines.flush(LOG_PATIENCE);
    served
}

/// How often a policy file is looked at; two looks must agree before it counts.
const POLICY_FILE_INTERVAL: Duration = Duration::from_secs(1);

/// Loads the policy and goes on watching where it comes from. Standalone: `--policy FILE` or the baseline; else the
/// ConfigMap.
async fn policy_store(args: &Args, client: Option<&kube::Client>) -> Result<Arc<Store>, Error> {
    let store = Arc::new(Store::new());
    if let (Some((namespace, name)), Some(client)) = (args.policy_configmap_name(), client) {
        let source = ConfigMapSource::new(client.clone(), namespace, name);
        source.load(&store).await?;
        let watched = store.clone();
        tokio::spawn(async move { source.watch(&watched).await });
    } else if let Some(file) = &args.policy {
        let source = FileSource::new(file);
        source.load(&store).await?;
        let watched = store.clone();
        tokio::spawn(async move { source.watch(&watched, POLICY_FILE_INTERVAL).await });
    } else {
        return Ok(Arc::new(Store::with(Policy::baseline()?)));
    }
    Ok(store)
}

/// Where facts come from: the live cluster, a folder of manifests, or nowhere.
async fn fact_source(
    args: &Args,
    config: Option<kube::Config>,
    metrics: &Metrics,
) -> Result<Arc<dyn FactSource>, Error> {
    let digest_key = match &args.digest_key_file {
        // Anyone who reaches the port can ask, and a digest tells whether a Secret changed (TRAPS J01).
        Some(file) if args.standalone || args.allow_unauthenticated_secret_lookups => Some(DigestKey::read(file)?),
        Some(_) => {
            let flag = "--allow-unauthenticated-secret-lookups";
            tracing::warn!("Secrets are not looked up: callers are not authenticated, and {flag} is not given");
            None
        }
        None => None,
    };
    if let Some(config) = config {
        let lookup_duration = Some(metrics.config_lookup_duration.clone());
        let options = live::Options { kube_version: args.kube_version, digest_key, lookup_duration };
        return Ok(Arc::new(live::Live::start(config, options)?));
    }
    let kube_version = args.kube_version.unwrap_or(ServerVersion::NEWEST);
    match &args.cluster_dir {
        Some(dir) => Ok(Arc::new(Dir::open(dir.clone(), kube_version, digest_key).map_err(cluster::Error::from)?)),
        None => Ok(Arc::new(Offline { kube_version })),
    }
}

/// The certificate's files: those given, or standalone new ones for localhost.
fn certificate_files(args: &Args) -> Result<Files, Error> {
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        return Ok(Files { cert: cert.clone(), key: key.clone() });
    }
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let listen = args.listen().ip();
    if !listen.is_unspecified() && !listen.is_loopback() {
        names.push(listen.to_string());
    }
    let files = mint::mint(&names, SystemTime::now(), STANDALONE_LIFE)?.write(&args.tls_dir)?;
    tracing::info!(ca = %args.tls_dir.join("ca.crt").display(), "made a certificate for localhost");
    Ok(files)
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |problem| Error::Listen { address, problem };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

async fn serve(args: &Args, metrics: Arc<Metrics>, lines: Lines, format: Format) -> Result<(), Error> {
    let signals = Signals::install().map_err(|problem| Error::System { action: "listen to signals", problem })?;
    let config = if args.standalone { None } else { Some(live::client_config(args.kubeconfig.as_deref()).await?) };
    let client = config.clone().map(kube::Client::try_from).transpose();
    let client = client.map_err(|error| cluster::Error::Client(Box::new(error)))?;
    let policy = policy_store(args, client.as_ref()).await?;
    let facts = fact_source(args, config, &metrics).await?;
    let files = certificate_files(args)?;
    let pair = files.load(SystemTime::now())?;
    metrics.certificate_not_after.set(pair.not_after);
    let current = tls::Current::new(&pair);
    let acceptor = TlsAcceptor::from(tls::server_config(current.clone())?);
    let (listener, address) = bind(args.listen()).await?;
    let (admin_listener, admin_address) = bind(args.admin_listen()).await?;

    let drain = Drain::default();
    let app = App::new(Config {
        decider: Arc::new(Engine::new(policy.clone(), facts.clone())),
        policy: policy.clone(),
        conditions: vec![Condition { name: "cluster", missing: Box::new(move || facts.ready().err()) }],
        metrics: metrics.clone(),
        lines,
        format,
        limits: args.limits(),
        drain: drain.clone(),
        own_user: args.own_user(),
        own_namespace: args.namespace().map(str::to_owned),
        policy_config_map: args
            .policy_configmap_name()
            .map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
    });
    tokio::spawn(tls::watch(files, current, args.tls_reload_interval, args.service_name(), metrics.clone()));

    // The admin port outlives the webhooks', so that "not ready" can be read until the end.
    let admin_drain = Drain::default();
    let admin = tokio::spawn(listen::serve(
        admin_listener,
        None,
        health::router(app.clone()),
        args.connections(),
        admin_drain.clone(),
    ));
    let tls = Tls { acceptor, failures: metrics.handshake_failures.clone() };
    let webhooks = tokio::spawn(listen::serve(listener, Some(tls), router(app), args.connections(), drain.clone()));
    tracing::info!(listen = %address, admin = %admin_address, "serving");

    signals.then_drain(&drain, args.drain_delay).await;
    // A panic in there would be a bug that is logged already; the way out is the same.
    let _ = webhooks.await;
    admin_drain.enter(Phase::Ended);
    let _ = admin.await;
    tracing::info!("ended");
    Ok(())
}
