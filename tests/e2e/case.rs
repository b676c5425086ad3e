//! What every scenario has: a namespace of its own, and Plimsoll installed by its
//! chart, running as the chart's ServiceAccount.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::certs::Authority;
use crate::changes::{Change, changes};
use crate::control_plane::{ControlPlane, free_ports, write_kubeconfig};
use crate::helm::Helm;
use crate::kubectl::Kubectl;
use crate::network::Network;
use crate::plimsoll::{Launch, Reviews, Server};
use crate::process::wait_for;
use crate::{control_plane, manifests};

/// Plimsoll's namespace and the name of its release, and so of its objects.
pub const SYSTEM: &str = "plimsoll-system";
pub const RELEASE: &str = "plimsoll";
/// The environment variable that keeps a scenario's surroundings up.
const HOLD: &str = "PLIMSOLL_E2E_HOLD";

/// What differs between scenarios.
pub struct Setup<'a> {
    /// The policy's spec.
    pub policy: Value,
    /// `failurePolicy` of both configurations.
    pub failure_policy: &'a str,
    /// The way the API server goes to the webhook: a URL on loopback, or a Service with
    /// an endpoint in this network.
    pub network: Option<&'a Network>,
    /// What happens in the scenario's namespace before Plimsoll is installed.
    pub before: Option<&'a dyn Fn(&Kubectl)>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self { policy: manifests::p0(), failure_policy: "Fail", network: None, before: None }
    }
}

/// One scenario's surroundings, taken down when dropped.
pub struct Case {
    pub plane: &'static ControlPlane,
    /// kubectl in the scenario's namespace.
    pub kubectl: Kubectl,
    pub namespace: String,
    /// kubectl in a namespace that the webhooks leave out: what the API server alone
    /// makes of an object.
    pub exempt: Kubectl,
    pub server: Server,
    pub helm: Helm,
    /// The chart's values, a file.
    pub values: PathBuf,
    /// For files of the scenario.
    pub dir: PathBuf,
}

impl Case {
    /// Plimsoll under policy P0, called by URL, both webhooks failing closed.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        Self::with(name, &Setup::default())
    }

    /// Installs Plimsoll and waits until the API server asks it about new Deployments.
    #[track_caller]
    pub fn with(name: &str, setup: &Setup) -> Self {
        let plane = control_plane();
        let dir = plane.folder(name);
        let namespace = format!("e2e-{name}");
        let exempt = format!("e2e-{name}-exempt");
        let admin = &plane.kubectl;
        for namespace in [SYSTEM, &exempt, &namespace] {
            make_namespace(plane, namespace);
        }
        if let Some(before) = setup.before {
            before(&admin.in_namespace(&namespace));
        }
        let network = setup.network;
        let [port, admin_port] = free_ports().unwrap();
        let address = network.map_or([127, 0, 0, 1].into(), |network| network.inside);
        let listen = match network {
            None => SocketAddr::new(address, port),
            Some(_) => SocketAddr::new(address, 8443),
        };
        let values = dir.join("values.json");
        let mut webhook = json!({
            "mutating": {"failurePolicy": setup.failure_policy},
            "validating": {"failurePolicy": setup.failure_policy},
        });
        if network.is_none() {
            webhook["url"] = format!("https://{listen}").into();
        }
        let chart_values = json!({
            "exemptNamespaces": ["kube-system", "kube-public", "kube-node-lease", exempt],
            "webhook": webhook,
            "policy": {"spec": setup.policy},
        });
        std::fs::write(&values, chart_values.to_string()).unwrap();

        let helm = Helm::new(plane);
        let installed = Installed { plane };
        let file = values.to_str().unwrap();
        helm.ok(&["install", RELEASE, &manifests::chart(), "--namespace", SYSTEM, "--values", file]);

        let kubeconfig = dir.join("plimsoll.kubeconfig");
        let system = admin.in_namespace(SYSTEM);
        let token = system.ok(&["create", "token", RELEASE, "--duration=2h"]);
        let api = match network {
            None => SocketAddr::from(([127, 0, 0, 1], plane.port)),
            Some(network) => network.forward(plane.port).unwrap(),
        };
        write_kubeconfig(&kubeconfig, &format!("https://{api}"), &plane.ca, &json!({"token": token.trim()})).unwrap();
        let authority = Authority::new(&dir, "webhook-ca").unwrap();
        let service = format!("{RELEASE}.{SYSTEM}.svc");
        let pair = authority.server(&dir, "webhook", &["localhost", "127.0.0.1", &service]).unwrap();
        let wrapper = network.map(|network| ["ip", "netns", "exec", &network.name]);
        let server = Server::start(&Launch {
            wrapper: wrapper.as_ref().map_or(&[], |words| words),
            listen,
            admin: SocketAddr::new(address, admin_port),
            cert: pair.cert,
            key: pair.key,
            kubeconfig,
            policy: &format!("{SYSTEM}/{RELEASE}-policy"),
            dir: &dir,
        })
        .unwrap();
        if let Some(network) = network {
            system.ok_with(&["create", "-f", "-"], &manifests::endpoint(network.inside, 8443));
        }
        fill_in_ca(admin, &authority.pem);

        std::mem::forget(installed);
        let kubectl = admin.in_namespace(&namespace);
        let case = Self { plane, kubectl, namespace, exempt: admin.in_namespace(&exempt), server, helm, values, dir };
        case.wait_until_asked();
        case
    }

    /// New webhook configurations take a moment to reach the API server's admission
    /// chain. Asks by dry run until both endpoints have been called.
    #[track_caller]
    fn wait_until_asked(&self) {
        let probe = manifests::safe("probe");
        self.wait("the webhooks to be called", || {
            let output = self.kubectl.run_with(&["create", "--dry-run=server", "-f", "-"], &probe);
            let reviews = self.server.reviews();
            let asked = |endpoint: &str| reviews.keys().any(|r| r.endpoint == endpoint);
            if output.code == 0 && asked("mutate") && asked("validate") {
                Ok(())
            } else {
                Err(format!("{} reviews: {reviews:?}", output.stderr))
            }
        });
    }

    /// Polls until `probe` gives a value; fails when it never does, or when a part of
    /// the control plane or the webhook ends.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, probe: impl FnMut() -> Result<T, String>) -> T {
        let dead = || self.plane.dead().or_else(|| self.server.dead());
        match wait_for(what, dead, probe) {
            Ok(value) => value,
            Err(e) => panic!("{e}"),
        }
    }

    /// Starts counting reviews.
    #[track_caller]
    pub fn count(&self) -> Count<'_> {
        Count { server: &self.server, before: self.server.reviews() }
    }

    /// What Plimsoll made of `manifest`: the object as it is stored, compared with what
    /// the API server alone would have stored.
    #[track_caller]
    pub fn changes(&self, manifest: &Value, stored: &str) -> Vec<Change> {
        changes(&self.without_us(manifest), &self.kubectl.get(stored))
    }

    /// What the API server alone makes of a manifest.
    #[track_caller]
    pub fn without_us(&self, manifest: &Value) -> Value {
        let count = self.count();
        let text = self.exempt.ok_with(&["create", "--dry-run=server", "-o", "json", "-f", "-"], manifest);
        assert_eq!(count.moved(), [""; 0], "reviews for an exempt namespace");
        serde_json::from_str(&text).unwrap()
    }

    /// `metadata.generation`: moves with every change of the spec.
    #[track_caller]
    pub fn generation(&self, stored: &str) -> i64 {
        self.kubectl.get(stored)["metadata"]["generation"].as_i64().unwrap()
    }

    /// Waits until the controllers have rolled a Deployment out.
    #[track_caller]
    pub fn rolled_out(&self, name: &str) {
        self.wait(&format!("deployment/{name} to roll out"), || {
            let status = self.kubectl.try_ok(&["rollout", "status", "deployment", name, "--watch=false"])?;
            if !status.contains("successfully rolled out") {
                return Err(status);
            }
            // The last status writes come after that; the next update must not race them.
            let deployment = self.kubectl.get(&format!("deployment/{name}"));
            let conditions = deployment["status"]["conditions"].to_string();
            if conditions.contains("NewReplicaSetAvailable") { Ok(()) } else { Err(conditions) }
        });
    }

    /// The ReplicaSets of a Deployment, oldest revision first.
    #[track_caller]
    pub fn replica_sets(&self, deployment: &str) -> Vec<ReplicaSet> {
        let list = self.kubectl.get("replicasets");
        let mut sets: Vec<ReplicaSet> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|set| set["metadata"]["ownerReferences"][0]["name"] == deployment)
            .map(|set| ReplicaSet {
                name: set["metadata"]["name"].as_str().unwrap().to_owned(),
                revision: set["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or_default(),
                replicas: set["spec"]["replicas"].as_i64().unwrap(),
            })
            .collect();
        sets.sort_by_key(|set| set.revision);
        sets
    }
}

impl Case {
    /// Lets a person look around before everything goes.
    fn hold(&self) {
        let plane = self.plane;
        eprintln!(
            "\n{HOLD} is set: the scenario stays until you press Enter.\n\
             export KUBECONFIG={} PATH={}:$PATH   # kubectl\n\
             kubectl --namespace {} get all\n\
             helm: {}\n\
             Plimsoll's log: {}",
            plane.admin_kubeconfig.display(),
            plane.assets.kubectl.parent().unwrap_or(Path::new(".")).display(),
            self.namespace,
            plane.assets.helm.display(),
            self.dir.join("plimsoll.log").display(),
        );
        let _ = std::io::stdin().read_line(&mut String::new());
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.plane.log_tails(5));
            eprintln!("{}", self.server.process.log_tail(30));
        }
        if std::env::var_os(HOLD).is_some() {
            self.hold();
        }
        drop(Installed { plane: self.plane });
        self.server.process.kill();
        let (namespace, exempt) = (self.namespace.as_str(), format!("{}-exempt", self.namespace));
        let _ = self.plane.kubectl.try_ok(&["delete", "namespace", namespace, &exempt, "--wait=false"]);
    }
}

/// A release that is uninstalled when dropped, also halfway through a setup that fails.
struct Installed {
    plane: &'static ControlPlane,
}

impl Drop for Installed {
    fn drop(&mut self) {
        Helm::new(self.plane).run(&["uninstall", RELEASE, "--namespace", SYSTEM]);
        // Helm leaves what is not marked as its own any more, or everything if it fails
        // halfway; the next scenario's installation would stumble over it.
        let policy = format!("configmap/{RELEASE}-policy");
        let kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration,clusterrole,clusterrolebinding,\
                     role,rolebinding,serviceaccount,service";
        let system = self.plane.kubectl.in_namespace(SYSTEM);
        let _ = system.try_ok(&["delete", "--ignore-not-found", &policy]);
        let _ = system.try_ok(&["delete", "--ignore-not-found", kinds, RELEASE]);
        let _ = system.try_ok(&["delete", "--ignore-not-found", "secrets", "--selector=owner=helm"]);
    }
}

/// A ReplicaSet as far as rollouts go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSet {
    pub name: String,
    pub revision: i64,
    pub replicas: i64,
}

/// Reviews since it was made.
pub struct Count<'a> {
    server: &'a Server,
    before: Reviews,
}

impl Count<'_> {
    /// Which reviews were answered, sorted, as `validate CREATE Deployment deny` or
    /// `mutate UPDATE Deployment allow (dry run)`. How often is not said: the API server
    /// asks again when an update meets another write.
    #[track_caller]
    pub fn moved(&self) -> Vec<String> {
        self.server
            .reviews()
            .into_iter()
            .filter(|(review, count)| self.before.get(review) != Some(count))
            .map(|(r, _)| {
                let dry = if r.dry_run { " (dry run)" } else { "" };
                format!("{} {} {} {}{dry}", r.endpoint, r.operation, r.kind, r.decision)
            })
            .collect()
    }

    /// How many reviews were answered.
    #[track_caller]
    pub fn total(&self) -> u64 {
        self.server.reviews().values().sum::<u64>() - self.before.values().sum::<u64>()
    }
}

fn make_namespace(plane: &ControlPlane, name: &str) {
    let kubectl = &plane.kubectl;
    if kubectl.run(&["get", "namespace", name]).code != 0 {
        kubectl.ok(&["create", "namespace", name]);
    }
    // Pods are refused until their ServiceAccount is there.
    plane
        .wait_for("the namespace's ServiceAccount", || {
            kubectl.in_namespace(name).try_ok(&["get", "serviceaccount", "default"])
        })
        .unwrap();
}

/// Does what an installation's certificate controller does: the chart leaves `caBundle`
/// alone.
fn fill_in_ca(kubectl: &Kubectl, pem: &str) {
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(pem);
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let entries = kubectl.get(&format!("{kind}/{RELEASE}"))["webhooks"].as_array().map_or(0, Vec::len);
        let patch: Vec<Value> = (0..entries)
            .map(|i| json!({"op": "add", "path": format!("/webhooks/{i}/clientConfig/caBundle"), "value": ca}))
            .collect();
        kubectl.ok(&["patch", kind, RELEASE, "--type=json", "-p", &Value::from(patch).to_string()]);
    }
}
