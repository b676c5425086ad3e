//! The real binary.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{Client, PATIENCE, Reply, wait_until};

/// `plimsoll serve` with these flags, its environment clean of our variables.
pub fn serve(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PLIMSOLL_")) {
        command.env_remove(name);
    }
    command.arg("serve").args(flags).stdin(Stdio::null());
    command
}

/// A standalone server of its own process, ended with the test.
pub struct Process {
    child: Child,
    runtime: Runtime,
    lines: Option<Receiver<String>>,
    /// Where the webhooks listen.
    pub address: SocketAddr,
    /// Where `/readyz` is.
    pub admin: SocketAddr,
    /// Where the certificates are.
    pub folder: TempDir,
}

impl Process {
    /// Starts it and waits until it serves.
    pub fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(&["--standalone", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.arg("--tls-dir").arg(folder.path()).args(flags).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut process = Process { child, runtime, lines: Some(lines), address: any, admin: any, folder };
        let serving = process.wait_for("serving");
        process.address = serving["listen"].as_str().unwrap().parse().unwrap();
        process.admin = serving["admin"].as_str().unwrap().parse().unwrap();
        process
    }

    /// The next log line with this message; those before it are passed over.
    pub fn wait_for(&self, message: &str) -> Value {
        let lines = self.lines.as_ref().unwrap();
        loop {
            let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no log line says {message:?}"));
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["message"] == message {
                return line;
            }
        }
    }

    /// Closes the reading end of its standard output: the thread that reads ends with its next line.
    pub fn close_output(&mut self) {
        self.lines = None;
    }

    /// Posts a review on a new connection.
    pub fn post(&self, path: &str, review: &Value) -> Reply {
        Client::connect(&self.runtime, self.address).unwrap().post(path, review)
    }

    /// The runtime that clients of this process run on.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Status and text of an admin path, plain HTTP.
    pub fn admin(&self, path: &str) -> (u16, String) {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(self.admin).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Sends a signal, `TERM` or `INT`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the end of the process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended, or ended by this: either way it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
