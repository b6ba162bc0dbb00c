//! `tpc man`: writes manual pages.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap_mangen::Man;

use super::output::{self, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder for the pages of all commands [default: print the page of `tpc`].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Writes the pages of a command and its subcommands: `tpc.1`, `tpc-plan.1`, ….
pub(super) fn run(args: &Args, command: clap::Command) -> Result<(), Failure> {
    // The pages already contain the text of `tpc help`.
    let mut command = command.disable_help_subcommand(true);
    let Some(folder) = &args.output else {
        let page = page(command).map_err(|e| Failure::write("manual page", &e))?;
        return output::result(&String::from_utf8_lossy(&page));
    };
    fs::create_dir_all(folder).map_err(|e| Failure::file(folder, &e))?;
    command.build();
    let name = command.get_name().to_owned();
    // Hidden commands are for tpc's developers.
    let subcommands = command.get_subcommands().filter(|c| !c.is_hide_set());
    let subcommands = subcommands.cloned();
    let named = subcommands.map(|c| (format!("{name}-{}.1", c.get_name()), c));
    let mut pages: Vec<(String, clap::Command)> = named.collect();
    pages.push((format!("{name}.1"), command));
    for (file, command) in pages {
        let path = folder.join(file);
        let page = page(command).map_err(|e| Failure::file(&path, &e))?;
        output::replace(&path, &page)?;
    }
    Ok(())
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    Man::new(command).render(&mut out)?;
    Ok(out)
}
