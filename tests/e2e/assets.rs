//! The programs of a control plane: from `KUBEBUILDER_ASSETS`, else built once from
//! the Go modules beside this file and kept outside the clone.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fmt::Write as _};

use sha2::{Digest, Sha256};

use crate::process::end_with_us;

/// Where each program is.
pub struct Assets {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: PathBuf,
    pub kube_scheduler: PathBuf,
    pub kubectl: PathBuf,
    pub kwok: PathBuf,
    pub helm: PathBuf,
}

/// A folder under `tests/e2e/assets` and what is built from it.
struct Module {
    name: &'static str,
    /// The module whose version counts.
    path: &'static str,
    /// Package and the program's name.
    programs: &'static [(&'static str, &'static str)],
}

const ETCD: Module =
    Module { name: "etcd", path: "go.etcd.io/etcd/server/v3", programs: &[("go.etcd.io/etcd/server/v3", "etcd")] };
const KUBERNETES: Module = Module {
    name: "kubernetes",
    path: "k8s.io/kubernetes",
    programs: &[
        ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
        ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
        ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
        ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
    ],
};
const KWOK: Module =
    Module { name: "kwok", path: "sigs.k8s.io/kwok", programs: &[("sigs.k8s.io/kwok/cmd/kwok", "kwok")] };
const HELM: Module =
    Module { name: "helm", path: "helm.sh/helm/v4", programs: &[("helm.sh/helm/v4/cmd/helm", "helm")] };

impl Assets {
    /// Finds every program, building what is not there.
    pub fn find() -> Result<Self, String> {
        let given = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let given = given.as_deref();
        // Kubernetes' programs of different minor versions may not understand each
        // other: those given count together or not at all.
        let kubernetes_given = match given {
            Some(dir) => one_minor_version(dir)?.then_some(dir),
            None => None,
        };
        Ok(Self {
            etcd: program(given, &ETCD, "etcd")?,
            kube_apiserver: program(kubernetes_given, &KUBERNETES, "kube-apiserver")?,
            kube_controller_manager: program(kubernetes_given, &KUBERNETES, "kube-controller-manager")?,
            kube_scheduler: program(kubernetes_given, &KUBERNETES, "kube-scheduler")?,
            kubectl: program(kubernetes_given, &KUBERNETES, "kubectl")?,
            kwok: program(given, &KWOK, "kwok")?,
            helm: program(given, &HELM, "helm")?,
        })
    }
}

fn program(given: Option<&Path>, module: &Module, name: &str) -> Result<PathBuf, String> {
    if let Some(file) = given.map(|dir| dir.join(name)).filter(|f| f.is_file()) {
        return Ok(file);
    }
    Ok(module.built()?.join(name))
}

/// Whether Kubernetes' programs in `dir`, with ours for those it lacks, are of one
/// minor version.
fn one_minor_version(dir: &Path) -> Result<bool, String> {
    let mut versions = Vec::new();
    for (_, name) in KUBERNETES.programs {
        let file = dir.join(name);
        versions.push(if file.is_file() { version_of(&file)? } else { KUBERNETES.version()? });
    }
    let minors: Vec<String> = versions.iter().map(|v| minor(v)).collect();
    let one = minors.iter().all(|m| *m == minors[0]);
    if !one {
        eprintln!(
            "KUBEBUILDER_ASSETS: not used for Kubernetes' own programs: with those built here for the ones it lacks, \
             versions would be {}",
            versions.join(", ")
        );
    }
    Ok(one)
}

fn version_of(file: &Path) -> Result<String, String> {
    let mut command = Command::new(file);
    if file.ends_with("kubectl") {
        command.args(["version", "--client"]);
    } else {
        command.arg("--version");
    }
    let output = command.output().map_err(|e| format!("{} does not run: {e}", file.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .find(|word| word.starts_with("v1."))
        .map(str::to_owned)
        .ok_or_else(|| format!("{} does not tell its version: {text:?}", file.display()))
}

/// `v1.37` of `v1.37.2`.
fn minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

impl Module {
    fn dir(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/assets").join(self.name)
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let path = self.dir().join(file);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The version that go.mod asks for.
    fn version(&self) -> Result<String, String> {
        self.read("go.mod")?
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("require ").split_once(' '))
            .find(|(path, _)| *path == self.path)
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .map(str::to_owned)
            .ok_or_else(|| format!("{}/go.mod does not require {}", self.name, self.path))
    }

    /// The folder with the programs, built if it is not there.
    fn built(&self) -> Result<PathBuf, String> {
        let cache = cache()?;
        fs::create_dir_all(&cache).map_err(|e| format!("{}: {e}", cache.display()))?;
        let done = cache.join(format!("{}-{}", self.name, self.hash()?));
        if done.is_dir() {
            return Ok(done);
        }
        let lock_path = done.with_extension("lock");
        let lock = File::create(&lock_path).map_err(|e| format!("{}: {e}", lock_path.display()))?;
        if lock.try_lock().is_err() {
            eprintln!("another run builds {}: waiting for it", self.name);
            lock.lock().map_err(|e| format!("{}: {e}", lock_path.display()))?;
        }
        if !done.is_dir() {
            let staging = tempfile::tempdir_in(&cache).map_err(|e| e.to_string())?;
            self.build(staging.path())?;
            let staged = staging.keep();
            fs::rename(&staged, &done).map_err(|e| format!("{}: {e}", done.display()))?;
        }
        Ok(done)
    }

    /// Names the build: the same module files and flags, the same programs.
    fn hash(&self) -> Result<String, String> {
        let mut hash = Sha256::new();
        for part in [self.read("go.mod")?, self.read("go.sum")?, self.ldflags()?, env::consts::ARCH.to_owned()] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        Ok(hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    /// Kubernetes' programs call themselves v0.0.0 unless their version is linked in.
    fn ldflags(&self) -> Result<String, String> {
        let mut flags = "-s -w".to_owned();
        if self.name == KUBERNETES.name {
            let version = self.version()?;
            let mut numbers = version.trim_start_matches('v').split('.');
            let (major, minor) = (numbers.next(), numbers.next());
            let _ = write!(
                flags,
                " -X k8s.io/component-base/version.gitVersion={version} -X k8s.io/component-base/version.gitMajor={} \
                 -X k8s.io/component-base/version.gitMinor={}",
                major.unwrap_or_default(),
                minor.unwrap_or_default()
            );
        }
        Ok(flags)
    }

    fn build(&self, staging: &Path) -> Result<(), String> {
        // One program is named by us (etcd's package is called server); several go to a
        // folder together, which shares their compilation.
        let target = match self.programs {
            [(_, name)] => staging.join(name),
            _ => staging.join(""),
        };
        let log = staging.join("go.log");
        let output = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let mut command = Command::new("go");
        command
            .current_dir(self.dir())
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags"])
            .arg(self.ldflags()?)
            .arg("-o")
            .arg(&target)
            .args(self.programs.iter().map(|(package, _)| package))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        end_with_us(&mut command);
        let what = format!("{} {}", self.name, self.version()?);
        let mut child = command.spawn().map_err(|e| match e.kind() {
            ErrorKind::NotFound => format!(
                "the end-to-end tests need Go to build {what}: install it from https://go.dev/dl, or set KUBEBUILDER_ASSETS"
            ),
            _ => format!("go: {e}"),
        })?;
        let started = Instant::now();
        let mut told = Duration::ZERO;
        eprintln!("building {what}, once; a first build of all takes about ten minutes");
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            std::thread::sleep(Duration::from_millis(100));
            if started.elapsed() - told >= Duration::from_secs(20) {
                told = started.elapsed();
                eprintln!("building {what}: {} s", told.as_secs());
            }
        };
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        if status.success() {
            eprintln!("built {what} in {} s", started.elapsed().as_secs());
            Ok(())
        } else {
            let last: Vec<&str> = text.lines().rev().take(5).collect();
            let last = last.into_iter().rev().collect::<Vec<_>>().join(" | ");
            Err(format!("go build of {what} failed in {}: {last}", self.dir().display()))
        }
    }
}

/// `${XDG_CACHE_HOME:-~/.cache}/plimsoll/assets`.
fn cache() -> Result<PathBuf, String> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .ok_or("neither XDG_CACHE_HOME nor HOME says where built programs can be kept")?;
    Ok(base.join("plimsoll/assets"))
}
