//! The flags of `plimsoll serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;

use super::Error;
use crate::cli::logging::LogFormat;
use crate::engine::facts::ServerVersion;
use crate::server::Limits;
use crate::server::deadline::parse_duration;
use crate::server::listen::Connections;

/// The flags of `plimsoll serve`; each has an environment variable.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Address of the webhooks, HTTPS [default: 0.0.0.0:8443; standalone 127.0.0.1:8443]
    #[arg(long, env = "PLIMSOLL_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Address of /livez, /readyz and /metrics, plain HTTP [default: 0.0.0.0:8080; standalone 127.0.0.1:8080]
    #[arg(long, env = "PLIMSOLL_ADMIN_LISTEN", value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,

    /// Serving certificate and its intermediates, PEM; read again when it changes [default: none]
    #[arg(long, env = "PLIMSOLL_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM [default: none]
    #[arg(long, env = "PLIMSOLL_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// How often the certificate's files are looked at
    #[arg(
        long, env = "PLIMSOLL_TLS_RELOAD_INTERVAL", default_value = "30s",
        value_parser = duration, value_name = "DURATION"
    )]
    pub tls_reload_interval: Duration,
    /// Standalone: where ca.crt, tls.crt and tls.key of the certificate made at start go
    #[arg(long, env = "PLIMSOLL_TLS_DIR", default_value = "plimsoll-tls", value_name = "DIR")]
    pub tls_dir: PathBuf,

    /// Name of our Service: warns if the certificate lacks it [default: none]
    #[arg(long, env = "PLIMSOLL_SERVICE", value_name = "NAME")]
    service: Option<String>,
    /// Our own namespace, in which nothing is judged [default: that of --policy-configmap]
    #[arg(long, env = "PLIMSOLL_NAMESPACE", value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Our own ServiceAccount, in our own namespace [default: none]
    #[arg(long, env = "PLIMSOLL_SERVICE_ACCOUNT", value_name = "NAME")]
    service_account: Option<String>,
    /// How to reach the API server [default: as a pod does, else as kubectl does]
    #[arg(long, env = "PLIMSOLL_KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// ConfigMap with the policy under the key policy.yaml, watched [default: none]
    #[arg(long, env = "PLIMSOLL_POLICY_CONFIGMAP", value_name = "NAMESPACE/NAME")]
    pub policy_configmap: Option<String>,
    /// Key for digests of Secrets; without it Secrets have none [default: none]
    #[arg(long, env = "PLIMSOLL_DIGEST_KEY_FILE", value_name = "FILE")]
    pub digest_key_file: Option<PathBuf>,
    /// Look up Secrets though anyone who reaches the port can ask [default: off]
    #[arg(long, env = "PLIMSOLL_ALLOW_UNAUTHENTICATED_SECRET_LOOKUPS", value_parser = FalseyValueParser::new())]
    pub allow_unauthenticated_secret_lookups: bool,

    /// Run without a cluster, on 127.0.0.1, with a certificate for localhost made at start [default: off]
    #[arg(long, env = "PLIMSOLL_STANDALONE", value_parser = FalseyValueParser::new())]
    pub standalone: bool,
    /// Standalone: policy file, read again when it changes [default: the baseline]
    #[arg(long, env = "PLIMSOLL_POLICY", value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Standalone: manifests that stand for the cluster; what is not there does not exist [default: all of it unknown]
    #[arg(long, env = "PLIMSOLL_CLUSTER_DIR", value_name = "DIR")]
    pub cluster_dir: Option<PathBuf>,
    /// Standalone: version of the API server [default: the newest known]
    #[arg(long, env = "PLIMSOLL_KUBE_VERSION", value_parser = version, value_name = "VERSION")]
    pub kube_version: Option<ServerVersion>,

    /// Longest time for an answer; ?timeout= less 200 ms where that is shorter
    #[arg(long, env = "PLIMSOLL_DEADLINE", default_value = "2500ms", value_parser = duration, value_name = "DURATION")]
    deadline: Duration,
    /// Largest body; larger ones are answered 413
    #[arg(long, env = "PLIMSOLL_MAX_BODY_BYTES", default_value_t = 7 << 20, value_name = "BYTES")]
    max_body_bytes: usize,
    /// Reviews decided at the same time; others wait up to a second, then are answered 503
    #[arg(long, env = "PLIMSOLL_MAX_IN_FLIGHT", default_value_t = 256, value_name = "NUMBER")]
    max_in_flight: usize,
    /// Connections at the same time, half of them for one address
    #[arg(long, env = "PLIMSOLL_MAX_CONNECTIONS", default_value_t = 1024, value_name = "NUMBER")]
    max_connections: usize,
    /// Requests after which a connection is closed, so that load spreads
    #[arg(long, env = "PLIMSOLL_MAX_REQUESTS_PER_CONNECTION", default_value_t = 1000, value_name = "NUMBER")]
    max_requests_per_connection: u64,
    /// Idle time after which a connection is closed; more than the API server's own 90 s
    #[arg(
        long, env = "PLIMSOLL_IDLE_TIMEOUT", default_value = "120s",
        value_parser = duration, value_name = "DURATION"
    )]
    idle_timeout: Duration,
    /// How long to go on accepting after SIGTERM, while not ready any more
    #[arg(long, env = "PLIMSOLL_DRAIN_DELAY", default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub drain_delay: Duration,
    /// How long requests under way may then take
    #[arg(
        long, env = "PLIMSOLL_DRAIN_TIMEOUT", default_value = "10s",
        value_parser = duration, value_name = "DURATION"
    )]
    drain_timeout: Duration,

    /// auto: text on a terminal, JSON otherwise
    #[arg(long, env = "PLIMSOLL_LOG_FORMAT", default_value = "auto", value_enum, value_name = "FORMAT")]
    pub log_format: LogFormat,
    /// Levels of log lines, as info or plimsoll=debug,kube=warn; decisions are always written
    #[arg(long, env = "PLIMSOLL_LOG_LEVEL", default_value = "info", value_name = "LEVELS")]
    pub log_level: String,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "not a duration such as 500ms, 3s or 1m30s".to_owned())
}

fn version(text: &str) -> Result<ServerVersion, String> {
    ServerVersion::parse(text).ok_or_else(|| "not a version such as 1.37".to_owned())
}

impl Args {
    /// Refuses flags that do not go together.
    ///
    /// # Errors
    /// [`Error::Usage`], naming the flags.
    pub fn check(&self) -> Result<(), Error> {
        let given = |flags: &[(&'static str, bool)]| flags.iter().find(|(_, given)| *given).map(|(name, _)| *name);
        let usage = |line: String| Err(Error::Usage(line));
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return usage("--tls-cert and --tls-key go together".to_owned());
        }
        if self.standalone {
            let foreign =
                [("--kubeconfig", self.kubeconfig.is_some()), ("--policy-configmap", self.policy_configmap.is_some())];
            if let Some(flag) = given(&foreign) {
                return usage(format!("{flag} needs a cluster, --standalone has none"));
            }
        } else {
            let foreign = [
                ("--policy", self.policy.is_some()),
                ("--cluster-dir", self.cluster_dir.is_some()),
                ("--kube-version", self.kube_version.is_some()),
            ];
            if let Some(flag) = given(&foreign) {
                return usage(format!("{flag} is for --standalone only"));
            }
            if self.tls_cert.is_none() {
                return usage("--tls-cert and --tls-key are needed (or --standalone)".to_owned());
            }
            if self.policy_configmap.is_none() {
                return usage("--policy-configmap NAMESPACE/NAME is needed (or --standalone)".to_owned());
            }
        }
        if self.policy_configmap.is_some() && self.policy_configmap_name().is_none() {
            return usage("--policy-configmap is written NAMESPACE/NAME".to_owned());
        }
        for (flag, name) in [("--service", &self.service), ("--service-account", &self.service_account)] {
            if name.is_some() && self.namespace().is_none() {
                return usage(format!("{flag} needs --namespace"));
            }
        }
        if self.max_in_flight == 0 || self.max_connections == 0 || self.max_requests_per_connection == 0 {
            return usage("--max-in-flight, --max-connections and --max-requests-per-connection start at 1".to_owned());
        }
        if self.tls_reload_interval.is_zero() || self.deadline.is_zero() || self.idle_timeout.is_zero() {
            return usage("--tls-reload-interval, --deadline and --idle-timeout cannot be 0".to_owned());
        }
        Ok(())
    }

    /// `--listen`, or what it is without.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| self.address(8443))
    }

    /// `--admin-listen`, or what it is without.
    pub fn admin_listen(&self) -> SocketAddr {
        self.admin_listen.unwrap_or_else(|| self.address(8080))
    }

    fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::from((if self.standalone { [127, 0, 0, 1] } else { [0, 0, 0, 0] }, port))
    }

    /// Namespace and name of the policy's ConfigMap.
    pub fn policy_configmap_name(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.policy_configmap.as_deref()?.split_once('/')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains('/')).then_some((namespace, name))
    }

    /// Our own namespace: `--namespace`, else the policy ConfigMap's.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().or_else(|| self.policy_configmap_name().map(|(namespace, _)| namespace))
    }

    /// The DNS name under which API servers call our Service.
    pub fn service_name(&self) -> Option<String> {
        Some(format!("{}.{}.svc", self.service.as_ref()?, self.namespace()?))
    }

    /// The user name of our ServiceAccount.
    pub fn own_user(&self) -> Option<String> {
        Some(format!("system:serviceaccount:{}:{}", self.namespace()?, self.service_account.as_ref()?))
    }

    /// Bounds of reviews.
    pub fn limits(&self) -> Limits {
        Limits {
            body_bytes: self.max_body_bytes,
            in_flight: self.max_in_flight,
            deadline: self.deadline,
            ..Limits::default()
        }
    }

    /// Bounds of connections.
    pub fn connections(&self) -> Connections {
        Connections {
            max: self.max_connections,
            idle: self.idle_timeout,
            requests: self.max_requests_per_connection,
            drain: self.drain_timeout,
            ..Connections::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Serve {
        #[command(flatten)]
        args: Args,
    }

    fn args(flags: &str) -> Args {
        Serve::parse_from(["serve"].into_iter().chain(flags.split_whitespace())).args
    }

    #[test]
    fn flags_that_do_not_go_together_are_named() {
        for (flags, line) in [
            ("", "--tls-cert and --tls-key are needed (or --standalone)"),
            ("--tls-cert c", "--tls-cert and --tls-key go together"),
            ("--tls-cert c --tls-key k", "--policy-configmap NAMESPACE/NAME is needed (or --standalone)"),
            ("--tls-cert c --tls-key k --policy-configmap x", "--policy-configmap is written NAMESPACE/NAME"),
            ("--standalone --policy-configmap a/b", "--policy-configmap needs a cluster, --standalone has none"),
            ("--kube-version 1.30", "--kube-version is for --standalone only"),
            ("--standalone --service plimsoll", "--service needs --namespace"),
            ("--standalone --deadline 0s", "--tls-reload-interval, --deadline and --idle-timeout cannot be 0"),
        ] {
            assert_eq!(args(flags).check().unwrap_err().to_string(), line, "{flags}");
        }
    }

    #[test]
    fn addresses_and_names_follow_from_the_mode() {
        let standalone = args("--standalone");
        standalone.check().unwrap();
        assert_eq!(standalone.listen().to_string(), "127.0.0.1:8443");
        assert_eq!(standalone.namespace(), None);
        let flags = "--tls-cert c --tls-key k --policy-configmap ops/policy --service web --service-account bot";
        let cluster = args(flags);
        cluster.check().unwrap();
        assert_eq!(cluster.listen().to_string(), "0.0.0.0:8443");
        assert_eq!(cluster.admin_listen().to_string(), "0.0.0.0:8080");
        assert_eq!(cluster.service_name().as_deref(), Some("web.ops.svc"));
        assert_eq!(cluster.own_user().as_deref(), Some("system:serviceaccount:ops:bot"));
        assert_eq!(args(&format!("{flags} --namespace own")).namespace(), Some("own"));
    }

    #[test]
    fn the_flags_defaults_are_the_servers() {
        let args = args("--standalone");
        assert_eq!(args.limits(), Limits::default());
        assert_eq!(args.connections(), Connections::default());
    }
}
