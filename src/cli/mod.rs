//! The command line: one file a command.

pub mod logging;
pub mod serve;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Kubernetes admission webhook that makes rollouts safe.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the admission webhook: POST /mutate and /validate over HTTPS, /livez, /readyz and /metrics plainly.
    Serve(Box<serve::Args>),
}

/// Exit code for arguments that make no sense.
const USAGE: u8 = 2;

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            // Help and version; where nobody reads them, nothing is lost.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(USAGE);
        }
        Err(error) => return fail(USAGE, &one_line(&error.to_string())),
    };
    match cli.command {
        Command::Serve(args) => match serve::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error @ serve::Error::Usage(_)) => fail(USAGE, &error.to_string()),
            Err(error) => fail(1, &error.to_string()),
        },
    }
}

/// One line on standard error, which may be closed.
fn fail(code: u8, line: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "plimsoll: {line}");
    ExitCode::from(code)
}

/// The parser's message without its usage block.
fn one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let said = message.split("\n\nUsage:").next().unwrap_or(message);
    let said = said.split("\n\nFor more information").next().unwrap_or(said);
    format!("{} (see plimsoll --help)", said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_flag_has_a_help_line_and_an_environment_variable_of_its_name() {
        let command = Cli::command();
        command.clone().debug_assert();
        let serve = command.find_subcommand("serve").unwrap();
        for flag in serve.get_arguments().filter(|flag| !matches!(flag.get_id().as_str(), "help" | "version")) {
            let long = flag.get_long().unwrap();
            let variable = format!("PLIMSOLL_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(flag.get_env().and_then(|name| name.to_str()), Some(variable.as_str()), "--{long}");
            let help = flag.get_help().unwrap_or_else(|| panic!("--{long} has no help")).to_string();
            let told = !flag.get_default_values().is_empty() || help.contains("[default:");
            assert!(told, "--{long} does not tell its default: {help}");
        }
    }

    #[test]
    fn an_unknown_flag_is_told_in_one_line() {
        let error = Cli::try_parse_from(["plimsoll", "serve", "--colour"]).unwrap_err();
        let line = one_line(&error.to_string());
        assert!(line.starts_with("unexpected argument '--colour' found"), "{line}");
        assert!(!line.contains('\n'));
    }
}
