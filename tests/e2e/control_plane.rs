//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok as plain
//! processes on loopback, shared by all scenarios.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::assets::Assets;
use crate::certs::{Authority, Pair, signing_key};
use crate::kubectl::Kubectl;
use crate::process::{Process, running, wait_for};

/// How many nodes there are; scenarios about scarce nodes count on it.
pub const NODES: usize = 4;

/// What data folders are called, before the process id of their run.
const FOLDER: &str = "plimsoll-e2e-";

/// A running control plane.
pub struct ControlPlane {
    pub assets: Assets,
    /// Port of the API server on 127.0.0.1.
    pub port: u16,
    /// The CA of the API server, PEM file.
    pub ca: PathBuf,
    /// kubectl as cluster admin.
    pub kubectl: Kubectl,
    /// kubectl's and helm's home, and the admin's kubeconfig.
    pub home: PathBuf,
    pub admin_kubeconfig: PathBuf,
    processes: Mutex<Vec<Process>>,
    dir: Mutex<Option<TempDir>>,
}

impl ControlPlane {
    /// Starts everything and waits until the nodes are Ready.
    pub fn start() -> Result<Self, String> {
        remove_folders(|run| !running(run));
        loop {
            match Self::start_on_free_ports(Assets::find()?) {
                // Somebody took a port between our finding it and its use.
                Err(e) if e.contains("address already in use") => eprintln!("again: {e}"),
                outcome => return outcome,
            }
        }
    }

    fn start_on_free_ports(assets: Assets) -> Result<Self, String> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("{FOLDER}{}-", std::process::id()))
            .tempdir()
            .map_err(|e| e.to_string())?;
        let root = dir.path().to_owned();
        let certs = root.join("certs");
        let home = root.join("home");
        for folder in [&certs, &home] {
            fs::create_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let ca = Authority::new(&certs, "cluster")?;
        let [port, etcd_client, etcd_peer] = free_ports()?;
        let server = format!("https://127.0.0.1:{port}");
        let kubeconfig = |user: &str, group: Option<&str>| -> Result<PathBuf, String> {
            let pair = ca.client(&certs, user, group)?;
            let path = root.join(format!("{}.kubeconfig", user.replace(':', "-")));
            let credentials = json!({"client-certificate": pair.cert, "client-key": pair.key});
            write_kubeconfig(&path, &server, &ca.file, &credentials)?;
            Ok(path)
        };
        let admin = kubeconfig("admin", Some("system:masters"))?;
        let kubectl = Kubectl::new(&assets.kubectl, &home, &admin);
        let (token_key, token_public) = signing_key(&certs)?;
        let serving =
            ca.server(&certs, "kube-apiserver", &["localhost", "127.0.0.1", "10.0.0.1", "kubernetes.default.svc"])?;

        // From here on whatever was started ends when this value is dropped.
        let plane = Self {
            port,
            ca: ca.file.clone(),
            kubectl,
            home,
            admin_kubeconfig: admin,
            processes: Mutex::default(),
            dir: Mutex::new(Some(dir)),
            assets,
        };
        plane.spawn(&root, etcd(&plane.assets, &root, etcd_client, etcd_peer))?;
        let mut apiserver = Command::new(&plane.assets.kube_apiserver);
        apiserver
            .args([format!("--etcd-servers=http://127.0.0.1:{etcd_client}"), format!("--secure-port={port}")])
            .args(apiserver_flags(&ca, &serving, &token_key, &token_public));
        plane.spawn(&root, apiserver)?;
        plane.wait_for("the API server to be ready", || plane.kubectl.try_ok(&["get", "--raw", "/readyz"]))?;

        let mut manager = Command::new(&plane.assets.kube_controller_manager);
        manager
            .arg("--kubeconfig")
            .arg(kubeconfig("system:kube-controller-manager", None)?)
            .args(["--use-service-account-credentials", "--leader-elect=false", "--secure-port=0"])
            .arg("--service-account-private-key-file")
            .arg(&token_key)
            .arg("--root-ca-file")
            .arg(&ca.file);
        plane.spawn(&root, manager)?;
        let mut scheduler = Command::new(&plane.assets.kube_scheduler);
        scheduler
            .arg("--kubeconfig")
            .arg(kubeconfig("system:kube-scheduler", None)?)
            .args(["--leader-elect=false", "--secure-port=0"]);
        plane.spawn(&root, scheduler)?;
        let mut kwok = Command::new(&plane.assets.kwok);
        kwok.env("HOME", &plane.home)
            .arg("--kubeconfig")
            .arg(&plane.admin_kubeconfig)
            .arg("--config")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/stages.yaml"))
            .args(["--manage-all-nodes=true", "--node-lease-duration-seconds=40"]);
        plane.spawn(&root, kwok)?;

        for number in 1..=NODES {
            let created = plane.kubectl.run_with(&["create", "-f", "-"], &node(number));
            created.success("a node")?;
        }
        plane.wait_for("the nodes to be ready", || {
            let ready = plane.kubectl.try_ok(&[
                "get",
                "nodes",
                "-o",
                "jsonpath={range .items[*]}{.spec.taints}{.status.conditions[?(@.type=='Ready')].status}{end}",
            ])?;
            if ready == "True".repeat(NODES) { Ok(()) } else { Err(ready) }
        })?;
        Ok(plane)
    }

    /// A folder for files of one scenario, removed with the control plane.
    pub fn folder(&self, name: &str) -> PathBuf {
        let dir = self.dir.lock().unwrap_or_else(PoisonError::into_inner);
        let root = dir.as_ref().expect("the control plane has not been stopped");
        let path = root.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Waits for a condition, for as long as the control plane lives.
    pub fn wait_for<T>(&self, what: &str, probe: impl FnMut() -> Result<T, String>) -> Result<T, String> {
        wait_for(what, || self.dead(), probe)
    }

    /// Ends all processes and removes the data folder.
    pub fn stop(&self) {
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        // Last started first: nobody misses the API server while it is being ended.
        while let Some(process) = processes.pop() {
            process.kill();
        }
        drop(self.dir.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The last lines that each part wrote.
    pub fn log_tails(&self, lines: usize) -> String {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let tails: Vec<String> = processes.iter().map(|p| p.log_tail(lines)).collect();
        tails.join("\n")
    }

    /// Which part has ended, if any: nothing will come true any more.
    pub fn dead(&self) -> Option<String> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.iter().find_map(|process| {
            process
                .exited()
                .map(|status| format!("a part of the control plane ended ({status})\n{}", process.log_tail(20)))
        })
    }

    fn spawn(&self, root: &Path, command: Command) -> Result<(), String> {
        let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let process = Process::spawn(&name, command, root)?;
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        Ok(())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Removes the data folders of the runs, by process id, that `which` names: a run that
/// was killed could not.
pub fn remove_folders(which: impl Fn(u32) -> bool) {
    let entries = fs::read_dir(std::env::temp_dir());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = name.strip_prefix(FOLDER).and_then(|rest| rest.split('-').next()).and_then(|pid| pid.parse().ok());
        if run.is_some_and(&which) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A kubeconfig for one user of the API server at `server`.
pub fn write_kubeconfig(path: &Path, server: &str, ca: &Path, credentials: &Value) -> Result<(), String> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        // By its name in the certificate, so that it may be reached by any address.
        "clusters": [{"name": "e2e", "cluster": {
            "server": server, "certificate-authority": ca, "tls-server-name": "localhost"}}],
        "users": [{"name": "e2e", "user": credentials}],
    });
    fs::write(path, config.to_string()).map_err(|e| format!("{}: {e}", path.display()))
}

/// Ports of 127.0.0.1 that nobody listens on. All are held until the last is found,
/// so they differ.
pub fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| e.to_string())?;
        *port = listener.local_addr().map_err(|e| e.to_string())?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn etcd(assets: &Assets, root: &Path, client: u16, peer: u16) -> Command {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let mut command = Command::new(&assets.etcd);
    command.arg("--data-dir").arg(root.join("etcd")).args([
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=error".to_owned(),
    ]);
    command
}

fn apiserver_flags(ca: &Authority, serving: &Pair, token_key: &Path, token_public: &Path) -> Vec<String> {
    let file = |flag: &str, path: &Path| format!("{flag}={}", path.display());
    let mut flags = vec![
        file("--tls-cert-file", &serving.cert),
        file("--tls-private-key-file", &serving.key),
        file("--client-ca-file", &ca.file),
        file("--service-account-signing-key-file", token_key),
        file("--service-account-key-file", token_public),
    ];
    flags.extend(
        [
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            // Webhooks behind a Service are called at their endpoints' addresses: there
            // is no kube-proxy here.
            "--enable-aggregator-routing=true",
        ]
        .map(str::to_owned),
    );
    flags
}

fn node(number: usize) -> Value {
    let name = format!("node-{number}");
    let room = json!({"cpu": "32", "memory": "64Gi", "pods": "200"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": room, "capacity": room},
    })
}
