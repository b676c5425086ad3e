//! Leaving without losing a request (TRAPS I11).
//!
//! API servers keep connections to us open and do not repeat a POST that a closed one has swallowed. So after SIGTERM
//! we are no longer ready at once, but keep accepting while endpoints spread, and ask on each answer to close the
//! connection; only then do we stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How far we are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Serving.
    Serving,
    /// Not ready any more, still accepting; each answer closes its connection.
    Leaving,
    /// No longer accepting; requests under way are finished.
    Ended,
}

/// The phase, for everybody who has to know; clones share it.
#[derive(Debug, Clone)]
pub struct Drain {
    phase: Arc<watch::Sender<Phase>>,
}

impl Default for Drain {
    fn default() -> Self {
        Drain { phase: Arc::new(watch::Sender::new(Phase::Serving)) }
    }
}

impl Drain {
    /// How far we are.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Goes on to this phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Waits until we have [ended](Phase::Ended).
    pub async fn ended(&self) {
        // An error says that the sender is gone, but `self` holds it.
        let _ = self.phase.subscribe().wait_for(|phase| *phase == Phase::Ended).await;
    }
}

/// The signals that end the process. Handlers of our own are installed because PID 1 has no default ones.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts listening, so that no signal from here on is lost.
    ///
    /// # Errors
    /// The operating system refuses the handlers.
    pub fn install() -> io::Result<Self> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for SIGTERM or SIGINT, then leaves: after SIGTERM with `delay` between leaving and the end, after SIGINT
    /// (a person at a terminal), or when either comes again, at once.
    pub async fn then_drain(mut self, drain: &Drain, delay: Duration) {
        let delay = tokio::select! {
            _ = self.terminate.recv() => delay,
            _ = self.interrupt.recv() => Duration::ZERO,
        };
        tracing::info!(delay_seconds = delay.as_secs_f64(), "leaving: not ready from now on");
        drain.enter(Phase::Leaving);
        tokio::select! {
            _ = tokio::time::sleep(delay) => {}
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        tracing::info!("finishing the requests under way");
        drain.enter(Phase::Ended);
    }
}
