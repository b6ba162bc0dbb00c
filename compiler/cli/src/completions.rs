//! `tpc completions`: prints completion scripts for shells.

use clap_complete::{Shell, generate};

use super::output::{self, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell that the script is for.
    shell: Shell,
}

pub(super) fn run(args: &Args, mut command: clap::Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(args.shell, &mut command, name, &mut script);
    output::result(&String::from_utf8_lossy(&script))
}
