//! Logs: `tracing` events and decision records share one output that never slows an answer.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::server::lines::Lines;
use crate::server::record::Format;

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// One line for a reader.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// What it comes to on this standard output.
    pub fn resolve(self) -> Format {
        match self {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
            LogFormat::Auto if io::stdout().is_terminal() => Format::Text,
            LogFormat::Auto => Format::Json,
        }
    }
}

/// Sends `tracing` events of these levels (`info`, `plimsoll=debug,kube=warn`) to `lines`, and panics with their place
/// but not their message: it may hold a piece of an object (TRAPS J06).
///
/// # Errors
/// Levels that cannot be read; one line for the user.
pub fn init(levels: &str, format: Format, lines: Lines) -> Result<(), String> {
    let filter = EnvFilter::try_new(levels).map_err(|error| format!("--log-level {levels:?}: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines).with_target(false);
    let set = match format {
        Format::Json => builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init(),
        Format::Text => builder.with_ansi(false).try_init(),
    };
    set.map_err(|error| error.to_string())?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panic");
    }));
    Ok(())
}
