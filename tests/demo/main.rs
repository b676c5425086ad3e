//! `make demo`: one denial, one fix and the log they leave. Starts the real binary without a cluster, asks it over TLS
//! as an API server would, and prints what a person would see from kubectl.

#[allow(dead_code, reason = "the tests of the server use all of it")]
#[path = "../server/harness/client.rs"]
mod client;

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use client::Client;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use tokio::runtime::Runtime;

fn main() -> Result<(), Box<dyn Error>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/demo");
    let folder = tempfile::tempdir()?;
    let mut server = Server::start(&home.join("cluster"), folder.path())?;
    let runtime = Runtime::new()?;

    for (step, file) in ["unsafe.yaml", "fixable.yaml"].into_iter().enumerate() {
        println!("{}$ kubectl apply -f {file}", if step == 0 { "" } else { "\n" });
        let object = read(&home.join(file))?;
        let review = review(&object);
        let mut client = Client::connect(&runtime, server.address)?;
        let mutated = client.post("/mutate", &review);
        let mut stored = object.clone();
        if let Some(patch) = mutated.patch() {
            json_patch::patch(&mut stored, &serde_json::from_value::<json_patch::Patch>(patch)?)?;
        }
        let mut review = review;
        review["request"]["object"] = stored.clone();
        let validated = client.post("/validate", &review);
        for warning in mutated.warnings().iter().chain(&validated.warnings()) {
            println!("Warning: {warning}");
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if validated.allowed() {
            println!("deployment.apps/{name} created\n\nWhat was stored, beside what was sent:");
            diff(&serde_saphyr::to_string(&object)?, &serde_saphyr::to_string(&stored)?);
        } else {
            println!(
                "Error from server (Forbidden): error when creating \"{file}\": admission webhook \
                 \"workloads.validate.plimsoll.dev\" denied the request: {}",
                validated.message()
            );
        }
    }

    println!("\nThe log of these decisions, as an auditor reads it:");
    for line in server.end()? {
        println!("{line}");
    }
    Ok(())
}

fn read(file: &Path) -> Result<Value, Box<dyn Error>> {
    Ok(serde_saphyr::from_str(&std::fs::read_to_string(file)?)?)
}

fn review(object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"],
            "userInfo": {"username": "alice", "groups": ["shop-developers", "system:authenticated"]},
            "object": object, "oldObject": null, "dryRun": false,
        },
    })
}

/// Changed lines with two lines around them.
fn diff(before: &str, after: &str) {
    let diff = TextDiff::from_lines(before, after);
    for operation in diff.grouped_ops(2).iter().flatten() {
        for change in diff.iter_changes(operation) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            print!("  {sign} {}", change.value());
        }
    }
}

/// The real binary, standalone; ended when dropped.
struct Server {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    address: SocketAddr,
}

impl Server {
    fn start(cluster: &Path, certificates: &Path) -> Result<Server, Box<dyn Error>> {
        let mut child = Command::new(binary()?)
            .args(["serve", "--standalone", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--drain-delay", "0s", "--log-format", "json"])
            .arg("--cluster-dir")
            .arg(cluster)
            .arg("--tls-dir")
            .arg(certificates)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut output = BufReader::new(child.stdout.take().ok_or("the server has no output")?);
        loop {
            let mut line = String::new();
            if output.read_line(&mut line)? == 0 {
                return Err(format!("plimsoll ended before it served: {}", child.wait()?).into());
            }
            let said: Value = serde_json::from_str(&line)?;
            if said["message"] == "serving" {
                let address = said["listen"].as_str().ok_or("it does not say where it listens")?.parse()?;
                return Ok(Server { child, output, address });
            }
        }
    }

    /// Ends it; the decisions that it logged.
    fn end(&mut self) -> Result<Vec<String>, Box<dyn Error>> {
        // SAFETY: a plain system call on the process that we started and did not wait for yet.
        unsafe { libc::kill(i32::try_from(self.child.id())?, libc::SIGTERM) };
        let mut decisions = Vec::new();
        for line in self.output.by_ref().lines() {
            let line = line?;
            if serde_json::from_str::<Value>(&line)?["message"] == "decision" {
                decisions.push(line);
            }
        }
        self.child.wait()?;
        Ok(decisions)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary beside this example: `target/debug/plimsoll` for `target/debug/examples/demo`.
fn binary() -> Result<PathBuf, Box<dyn Error>> {
    let example = std::env::current_exe()?;
    let binary = example.parent().and_then(Path::parent).ok_or("no folder above the example")?.join("plimsoll");
    if binary.exists() { Ok(binary) } else { Err(format!("{} is missing; run `make demo`", binary.display()).into()) }
}
