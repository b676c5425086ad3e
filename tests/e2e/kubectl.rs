//! Short-lived programs, kubectl above all, and what they answer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::end_with_us;

/// What a program printed and how it ended.
#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl Output {
    /// The lines of standard error.
    pub fn told(&self) -> Vec<&str> {
        self.stderr.lines().collect()
    }

    /// Standard output, or an error with all that the program said.
    pub fn success(self, what: &str) -> Result<String, String> {
        if self.code == 0 {
            Ok(self.stdout)
        } else {
            Err(format!("{what}: exit code {}\n{}{}", self.code, self.stdout, self.stderr))
        }
    }
}

/// Runs a program to its end, with `input` as its standard input.
pub fn run(command: &mut Command, input: Option<&str>) -> Result<Output, String> {
    let what = format!("{:?}", command.get_program());
    command
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    end_with_us(command);
    let mut child = command.spawn().map_err(|e| format!("{what}: {e}"))?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        // A program that fails early closes its input; its exit code tells.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| format!("{what}: {e}"))?;
    Ok(Output {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    })
}

/// kubectl as one user, in one namespace.
#[derive(Clone)]
pub struct Kubectl {
    program: PathBuf,
    home: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

impl Kubectl {
    /// `home` keeps its caches, away from the developer's own.
    pub fn new(program: &Path, home: &Path, kubeconfig: &Path) -> Self {
        Self {
            program: program.to_owned(),
            home: home.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            namespace: "default".to_owned(),
        }
    }

    /// The same user in another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// The command with the connection's flags, for those who want to start it themselves.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("HOME", &self.home)
            .env_remove("KUBECONFIG")
            .env("KUBECONFIG", &self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(args);
        command
    }

    /// Runs kubectl and gives what it said, whatever its exit code.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        run(&mut self.command(args), None).unwrap()
    }

    /// As [`Kubectl::run`], with a manifest on standard input (`-f -`).
    #[track_caller]
    pub fn run_with(&self, args: &[&str], manifest: &Value) -> Output {
        run(&mut self.command(args), Some(&manifest.to_string())).unwrap()
    }

    /// Runs kubectl, which must succeed, and gives its standard output.
    pub fn try_ok(&self, args: &[&str]) -> Result<String, String> {
        run(&mut self.command(args), None)?.success(&format!("kubectl {}", args.join(" ")))
    }

    /// Runs kubectl, which must succeed, and gives its standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        self.try_ok(args).unwrap()
    }

    /// As [`Kubectl::ok`], with a manifest on standard input (`-f -`).
    #[track_caller]
    pub fn ok_with(&self, args: &[&str], manifest: &Value) -> String {
        self.run_with(args, manifest).success(&format!("kubectl {}", args.join(" "))).unwrap()
    }

    /// An object (`deployment/web`) or a list (`replicasets`) as it is stored.
    #[track_caller]
    pub fn get(&self, what: &str) -> Value {
        let text = self.ok(&["get", what, "-o", "json", "--show-managed-fields"]);
        serde_json::from_str(&text).unwrap()
    }
}
