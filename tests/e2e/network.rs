//! A network namespace, so that the webhook has an address as a pod has: endpoints of
//! a Service may not be loopback addresses.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use crate::kubectl::run;
use crate::process::running;

/// What namespaces are called, before the process id of their run.
const NAME: &str = "plimsoll-e2e-";

/// A namespace with one end of a veth pair; it goes away with this value.
pub struct Network {
    /// `ip netns exec` knows it by this name.
    pub name: String,
    /// Our end.
    pub outside: IpAddr,
    /// The end in the namespace.
    pub inside: IpAddr,
}

impl Network {
    /// Makes the namespace; needs root and iproute2.
    pub fn new() -> Result<Self, String> {
        let id = std::process::id();
        remove_namespaces(|run| !running(run));
        // A /30 of the range kept for benchmarks (RFC 2544), by our process id so that
        // two runs do not meet.
        let block = (id % 0x3fff) << 2;
        let address =
            |host: u32| IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + block + host));
        let network = Self { name: format!("{NAME}{id}"), outside: address(1), inside: address(2) };
        let (name, link) = (network.name.as_str(), format!("plim{id}"));
        let (outside, inside) = (format!("{}/30", network.outside), format!("{}/30", network.inside));
        ip(&["netns", "add", name])?;
        ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", name])?;
        ip(&["address", "add", &outside, "dev", &link])?;
        ip(&["link", "set", &link, "up"])?;
        ip(&["-n", name, "address", "add", &inside, "dev", "eth0"])?;
        ip(&["-n", name, "link", "set", "eth0", "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        Ok(network)
    }

    /// Lets the namespace reach a port of our 127.0.0.1; gives the address to use there.
    pub fn forward(&self, port: u16) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind((self.outside, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for inner in listener.incoming().flatten() {
                let Ok(outer) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let pairs = (inner.try_clone(), outer.try_clone());
                if let (Ok(inner2), Ok(outer2)) = pairs {
                    thread::spawn(move || pipe(inner, outer));
                    thread::spawn(move || pipe(outer2, inner2));
                }
            }
        });
        Ok(address)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

/// Removes the namespaces of the runs, by process id, that `which` names.
pub fn remove_namespaces(which: impl Fn(u32) -> bool) {
    // Where iproute2 keeps them; without it there are none.
    let entries = std::fs::read_dir("/run/netns");
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = name.strip_prefix(NAME).and_then(|pid| pid.parse().ok());
        if run.is_some_and(&which) {
            let _ = ip(&["netns", "delete", &name]);
        }
    }
}

fn pipe(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn ip(args: &[&str]) -> Result<(), String> {
    let what = format!("ip {}", args.join(" "));
    run(Command::new("ip").args(args), None)
        .and_then(|output| output.success(&what))
        .map(drop)
        .map_err(|e| format!("the Service route needs root and iproute2 for a network namespace: {e}"))
}
