//! Options for launches that fail.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tpc_diag::{Diagnostic, codes, visible};
use tpc_engine::{DumpOnFault, ExecutorKind, ExecutorOptions, PlantedLaunchFault};
use tpc_ggml::llama_cpp::quote;

use crate::output::Failure;

/// The variable with the time limit of a launch, in seconds.
const LIMIT: &str = "TPC_LAUNCH_LIMIT";
/// The time limit of a launch on a card, in seconds.
const CARD_LIMIT: f64 = 20.0;
/// The time limit of a launch on an emulated device, in seconds.
const EMULATED_LIMIT: f64 = 600.0;
/// The variable with a fault of emulated devices, for tests.
const FAULT: &str = "TPC_EMULATED_FAULT";
/// The folder in the suggested command.
const FOLDER: &str = "faults";

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct FaultArgs {
    /// Run CUDA kernels one after another (slow); if one fails, name it and write its operands to this folder, for
    /// `tpc replay`.
    #[arg(long, value_name = "DIR")]
    dump_on_fault: Option<PathBuf>,
}

impl FaultArgs {
    /// Adds the dumps to the options of an executor, and creates the folder.
    pub(crate) fn apply(&self, options: ExecutorOptions) -> Result<ExecutorOptions, Failure> {
        let planted = planted(options.kind)?;
        let Some(folder) = &self.dump_on_fault else {
            return Ok(ExecutorOptions { planted, ..options });
        };
        if !options.kind.takes_cards() {
            let kind = options.kind.name();
            let message =
                format!("--dump-on-fault saves CUDA launches, but the executor is {kind}");
            let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--dump-on-fault", message);
            return Err(Failure::usage(d.help(
                "leave out the option, or add `--devices cuda:0` or `--executor checked-cuda`",
            )));
        }
        fs::create_dir_all(folder).map_err(|e| Failure::file(folder, &e))?;
        Ok(ExecutorOptions {
            dump_on_fault: Some(DumpOnFault {
                folder: folder.clone(),
                limit: limit(options.kind)?,
            }),
            planted,
            ..options
        })
    }
}

/// Returns the time limit of a launch.
pub(crate) fn limit(kind: ExecutorKind) -> Result<Duration, Failure> {
    let usual = match kind {
        ExecutorKind::Cuda => CARD_LIMIT,
        _ => EMULATED_LIMIT,
    };
    let Some(text) = std::env::var(LIMIT).ok().filter(|t| !t.is_empty()) else {
        return Ok(Duration::from_secs_f64(usual));
    };
    let seconds = text.parse().ok().filter(|s| (0.1..=86_400.0).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        let text = visible(&text);
        let message = format!("{LIMIT} must be seconds from 0.1 to 86400, not `{text}`");
        let d = Diagnostic::new(&codes::COMMAND_LINE, LIMIT, message);
        Failure::usage(d.help("unset the variable: the limit is 20 on cards"))
    })
}

/// Returns the fault that the environment plants in emulated devices, such as `hang@17`.
pub(crate) fn planted(kind: ExecutorKind) -> Result<Option<PlantedLaunchFault>, Failure> {
    let emulated = matches!(kind, ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda);
    let name = std::env::var(FAULT)
        .ok()
        .filter(|n| emulated && n.contains('@'));
    let Some(name) = name else { return Ok(None) };
    let found = PlantedLaunchFault::from_name(&name);
    found.map(Some).ok_or_else(|| {
        let message = format!("{FAULT} names an unknown fault: `{}`", visible(&name));
        let d = Diagnostic::new(&codes::COMMAND_LINE, FAULT, message);
        Failure::usage(d.help("unset the variable, or give a fault and a launch, such as hang@17"))
    })
}

/// Replaces the help of a failed launch by the command that names the launch and saves its operands. If the command has
/// the option already, the help asks for the dump.
pub(crate) fn suggest_dump(diagnostics: &mut [Diagnostic], arguments: &[OsString]) {
    let words: Vec<String> = arguments
        .iter()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let [
        _,
        command @ ("run" | "bench" | "perplexity" | "eval" | "replay"),
        rest @ ..,
    ] = &*strs(&words)
    else {
        return;
    };
    let is_dumped = |w: &&str| w.starts_with("--dump-on-fault");
    if *command == "replay" || rest.iter().any(is_dumped) {
        for d in diagnostics {
            if *d.code == tpc_cuda::KERNEL_FAILED {
                let text = "report this bug in tpc with the message and the dump";
                *d = d.clone().help(text);
            }
        }
        return;
    }
    let rest: Vec<String> = rest.iter().map(|w| quote(w)).collect();
    let command = format!("tpc {command} --dump-on-fault {FOLDER} {}", rest.join(" "));
    let run = format!("run `{command}`: it names the launch and saves its operands");
    for d in diagnostics {
        let text = if *d.code == tpc_cuda::DEVICE_LOST {
            format!("{} To find the launch, {run}", d.code.cure)
        } else if *d.code == tpc_cuda::KERNEL_FAILED || *d.code == tpc_cuda::FAULT {
            format!("{run}. Report this bug in tpc with the message and the dump")
        } else {
            continue;
        };
        *d = d.clone().help(text);
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(arguments: &[&str]) -> Option<String> {
        let d = Diagnostic::new(&tpc_cuda::KERNEL_FAILED, "execution", "failed");
        let mut all = [d.help("usual")];
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        suggest_dump(&mut all, &arguments);
        all[0].help.as_ref().map(ToString::to_string)
    }

    #[test]
    fn the_command_that_finds_the_launch_is_named() {
        let found = help(&["tpc", "run", "my model.gguf", "-p", "Hi"]).unwrap_or_default();
        let expected = "run `tpc run --dump-on-fault faults 'my model.gguf' -p Hi`: it names";
        assert!(found.starts_with(expected), "{found}");
        let given = ["tpc", "run", "m.gguf", "--dump-on-fault", "d"];
        let dumped = Some("report this bug in tpc with the message and the dump");
        assert_eq!(help(&given).as_deref(), dumped);
        assert_eq!(help(&["tpc", "replay", "d"]).as_deref(), dumped);
        assert_eq!(help(&["tpc", "rpc"]).as_deref(), Some("usual"));
    }
}
