//! A shell script that becomes `llama-server`. Its own arguments follow the plan's.

use super::deployment::PROGRAM;
use super::{Deployment, Unfit};
use crate::report::ShellCommand;

const WIDTH: usize = 100;

pub(super) fn emit(deployment: &Deployment) -> Result<String, Unfit> {
    let mut words = vec!["exec".to_owned(), PROGRAM.to_owned()];
    words.extend(deployment.command(&[]));
    let command = ShellCommand::new(words).lines(WIDTH, 0);
    let command = command.trim_end_matches('\n');
    let comments = deployment.comments();
    Ok(format!("#!/bin/sh\n{comments}{command} \\\n  \"$@\"\n"))
}
