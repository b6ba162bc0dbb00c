//! `tpc completions`: scripts for shells, generated from the definition of the arguments.

use clap_complete::{Shell, generate};

use super::output::{self, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell that the script is for.
    shell: Shell,
}

/// Prints the script that completes commands and options of `command`.
pub(super) fn run(args: &Args, mut command: clap::Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(args.shell, &mut command, name, &mut script);
    output::result(&String::from_utf8_lossy(&script))
}
