//! Plimsoll on a real control plane: what people and controllers send, what the API
//! server stores of it, and what becomes of the pods.
//!
//! `cargo test --test e2e` runs all scenarios, `cargo test --test e2e -- NAME` those
//! whose name contains NAME. They share one control plane and run one after the other:
//! webhook configurations are the whole cluster's. With `PLIMSOLL_E2E_HOLD=1` each
//! waits for Enter before it is taken down, and says how to reach its cluster.

mod assets;
mod case;
mod certs;
mod changes;
mod control_plane;
mod corpus;
mod helm;
mod kubectl;
mod manifests;
mod network;
mod plimsoll;
mod process;
mod scenarios;

use std::sync::OnceLock;

use control_plane::ControlPlane;
use libtest_mimic::{Arguments, Trial};

static CONTROL_PLANE: OnceLock<Result<ControlPlane, String>> = OnceLock::new();

/// The control plane, started by whoever asks first.
#[track_caller]
fn control_plane() -> &'static ControlPlane {
    match CONTROL_PLANE.get_or_init(ControlPlane::start) {
        Ok(plane) => plane,
        Err(e) => panic!("no control plane: {e}"),
    }
}

/// Values in statics are never dropped, so this is said explicitly.
fn stop_control_plane() {
    if let Some(Ok(plane)) = CONTROL_PLANE.get() {
        plane.stop();
    }
}

fn main() {
    let mut arguments = Arguments::from_args();
    // On the main thread: the kernel ends children together with the thread that
    // started them.
    arguments.test_threads = Some(1);
    std::thread::spawn(stop_when_interrupted);
    let trials = scenarios::all()
        .into_iter()
        .map(|(name, scenario)| {
            Trial::test(name, move || {
                scenario();
                Ok(())
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    stop_control_plane();
    conclusion.exit();
}

/// Ctrl-C ends what was started and removes its traces. What a control plane that was
/// only coming up still writes, the next run removes.
fn stop_when_interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    runtime.block_on(async {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stop_control_plane();
        let own = std::process::id();
        network::remove_namespaces(|run| run == own);
        control_plane::remove_folders(|run| run == own);
        std::process::exit(130);
    });
}
