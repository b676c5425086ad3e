//! The real binary in cluster mode, and what its metrics say.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{Process, wait_for};

/// How to start a server.
pub struct Launch<'a> {
    /// `ip netns exec NAME`, where the server has a network of its own.
    pub wrapper: &'a [&'a str],
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    pub cert: PathBuf,
    pub key: PathBuf,
    pub kubeconfig: PathBuf,
    /// NAMESPACE/NAME.
    pub policy: &'a str,
    /// Where its log goes.
    pub dir: &'a Path,
}

/// A running `plimsoll serve`.
pub struct Server {
    pub process: Process,
    admin: SocketAddr,
}

/// `plimsoll_reviews_total`: how often each (endpoint, operation, kind, decision,
/// dry run) was answered.
pub type Reviews = BTreeMap<Review, u64>;

/// The labels of one series of `plimsoll_reviews_total`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Review {
    pub endpoint: String,
    pub operation: String,
    pub kind: String,
    pub decision: String,
    pub dry_run: bool,
}

impl Server {
    /// Starts the binary and waits until it says that it can decide.
    pub fn start(launch: &Launch) -> Result<Self, String> {
        let program = env!("CARGO_BIN_EXE_plimsoll");
        let mut command = match launch.wrapper {
            [] => Command::new(program),
            [wrapper, arguments @ ..] => {
                let mut command = Command::new(wrapper);
                command.args(arguments).arg(program);
                command
            }
        };
        command
            .arg("serve")
            .args(["--listen", &launch.listen.to_string()])
            .args(["--admin-listen", &launch.admin.to_string()])
            .args([Path::new("--tls-cert"), &launch.cert])
            .args([Path::new("--tls-key"), &launch.key])
            .args([Path::new("--kubeconfig"), &launch.kubeconfig])
            .args(["--policy-configmap", launch.policy]);
        let server = Self { process: Process::spawn("plimsoll", command, launch.dir)?, admin: launch.admin };
        wait_for(
            "plimsoll to be ready",
            || server.dead(),
            || match server.admin_get("/readyz") {
                Ok((200, _)) => Ok(()),
                Ok((code, body)) => Err(format!("/readyz: {code} {body}")),
                Err(e) => Err(format!("/readyz: {e}")),
            },
        )
        .map_err(|e| format!("{e}\n{}", server.process.log_tail(20)))?;
        Ok(server)
    }

    /// Why the server will never answer, once it has ended.
    pub fn dead(&self) -> Option<String> {
        let status = self.process.exited()?;
        Some(format!("plimsoll ended ({status})\n{}", self.process.log_tail(20)))
    }

    /// The reviews answered so far.
    #[track_caller]
    pub fn reviews(&self) -> Reviews {
        self.series("plimsoll_reviews_total")
            .into_iter()
            .map(|(labels, value)| {
                let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
                let review = Review {
                    endpoint: label("endpoint"),
                    operation: label("operation"),
                    kind: label("kind"),
                    decision: label("decision"),
                    dry_run: label("dry_run") == "true",
                };
                (review, value as u64)
            })
            .collect()
    }

    /// The sum of a metric over all its series.
    #[track_caller]
    pub fn total(&self, metric: &str) -> f64 {
        self.series(metric).iter().map(|(_, value)| value).sum()
    }

    /// The series of a metric: labels and value.
    #[track_caller]
    pub fn series(&self, metric: &str) -> Vec<(BTreeMap<String, String>, f64)> {
        let (code, body) = self.admin_get("/metrics").unwrap();
        assert_eq!(code, 200, "/metrics: {body}");
        body.lines()
            .filter_map(|line| line.strip_prefix(metric))
            .filter(|rest| rest.starts_with(['{', ' ']))
            .map(|rest| {
                let (labels, value) = rest.rsplit_once(' ').expect("a value");
                let labels = labels.trim_matches(['{', '}']);
                // Values of ours hold neither commas nor quotes.
                let labels = labels.split(',').filter_map(|pair| pair.split_once('='));
                (
                    labels.map(|(k, v)| (k.to_owned(), v.trim_matches('"').to_owned())).collect(),
                    value.parse().expect("a number"),
                )
            })
            .collect()
    }

    /// One GET of the plain admin port: status code and body.
    pub fn admin_get(&self, path: &str) -> Result<(u16, String), String> {
        let get = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&self.admin, Duration::from_secs(5))?;
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin)?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = get().map_err(|e| e.to_string())?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no HTTP answer")?;
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok((code.ok_or("no status code")?, body.to_owned()))
    }
}
