//! llama-swap's configuration. llama-swap splits the command as a shell does, after it replaced `${…}`.

use super::deployment::PROGRAM;
use super::yaml::{is_break, string};
use super::{Deployment, Unfit};
use crate::report::ShellCommand;

/// Seconds until llama-swap gives up on a model that loads.
const LOADING: u32 = 600;

pub(super) fn emit(deployment: &Deployment) -> Result<String, Unfit> {
    let words = deployment.command(&[]);
    // llama-swap removes lines that begin with `#`, and joins lines that end with a backslash.
    if let Some(word) = words
        .iter()
        .find(|w| w.chars().any(|c| c.is_control() || is_break(c)))
    {
        return Err(Unfit::new(
            format!(
                "llama-swap's commands cannot contain the line breaks or control characters of {word:?}"
            ),
            "rename the file or folder",
        ));
    }
    let mut out = deployment.comments();
    out.push_str(&format!(
        "healthCheckTimeout: {LOADING}\nmodels:\n  {}:\n    cmd: |\n      {PROGRAM} --port ${{PORT}}",
        string(&deployment.name)
    ));
    for word in words {
        let is_option = word.starts_with('-') && word.len() > 1;
        out.push_str(if is_option { "\n      " } else { " " });
        // A quoted word without `${` in one piece is no macro.
        let quoted = ShellCommand::new(vec![word]).to_string();
        out.push_str(&quoted.replace("${", "$''{"));
    }
    out.push('\n');
    Ok(out)
}
