//! Runs a llama.cpp program to capture its graphs.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{interrupted, listen, serve, version};
use crate::codes;
use crate::output::{self, Failure};
use tpc_diag::{Diagnostic, codes as common};
use tpc_rpc::{Captures, Device, Limits, Version};

/// Runs a llama.cpp command with a capturing device. If the program does not state its version, tpc tries version 8 of
/// the protocol, and then version 7.
pub(crate) fn capture_program(command: &str, memory: u64) -> Result<Captures, Failure> {
    if command.trim().is_empty() {
        let d = Diagnostic::new(
            &common::COMMAND_LINE,
            "--rpc-command",
            "the command is empty",
        );
        return Err(Failure::usage(d.help(
            "give a llama.cpp program with its model, such as `llama-bench -m X.gguf -r 1 -p 8 -n 2`",
        )));
    }
    if let Some(version) = version::ask(command) {
        let run = capture_with(command, memory, version)?;
        return run.captures(command);
    }
    let run = capture_with(command, memory, Version::V8)?;
    if !run.is_other_version {
        return run.captures(command);
    }
    capture_with(command, memory, Version::V7)?.captures(command)
}

/// The end of a program.
struct Run {
    captures: Captures,
    /// The reason if the program failed.
    failure: Option<String>,
    /// True if every client left after the greeting.
    is_other_version: bool,
}

impl Run {
    /// Returns the captures. Graphs captured before a failure are still linted.
    fn captures(self, command: &str) -> Result<Captures, Failure> {
        match self.failure {
            None => {}
            Some(what) if self.captures.graphs() == 0 => return Err(failed(command, &what)),
            Some(what) => failed(command, &what)
                .diagnostics
                .iter()
                .for_each(output::diagnostic),
        }
        Ok(self.captures)
    }
}

fn capture_with(command: &str, memory: u64, version: Version) -> Result<Run, Failure> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = listen(any, version, Limits::new(memory))?;
    let address = server
        .address()
        .map_err(|e| failed(command, &e.to_string()))?;
    let mut child =
        start(&pointed(command, address)).map_err(|e| failed(command, &e.to_string()))?;
    let captures = Captures::default();
    let pressed = interrupted();
    let mut status = None;
    let device: Arc<dyn Device> = Arc::new(captures.clone());
    let left = serve(&server, &device, &mut |_| {
        if pressed.load(Ordering::SeqCst) {
            let _ = child.kill();
        }
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let failure = match status {
        Some(s) if s.success() => None,
        Some(s) => Some(format!("failed with {s}")),
        None => Some("the program's exit status is unknown".to_owned()),
    };
    Ok(Run {
        is_other_version: left > 0 && captures.graphs() == 0,
        captures,
        failure,
    })
}

/// Adds `--rpc` and the address; also adds `-ngl 99` if the command has no number of layers.
fn pointed(command: &str, address: SocketAddr) -> String {
    let layers = |w: &str| ["-ngl", "--gpu-layers", "--n-gpu-layers"].contains(&w);
    let says = command.split_whitespace().any(layers);
    let all = if says { "" } else { " -ngl 99" };
    format!("{command} --rpc {address}{all}")
}

/// Starts a command in a shell. The command's output goes to standard error.
fn start(command: &str) -> std::io::Result<Child> {
    let (program, option) = match cfg!(windows) {
        true => ("cmd", "/C".to_owned()),
        // `exec` replaces the shell, so that signals reach the program.
        false => ("sh", "-c".to_owned()),
    };
    let command = match cfg!(windows) {
        true => command.to_owned(),
        false => format!("exec {command}"),
    };
    Command::new(program)
        .arg(option)
        .arg(command)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .spawn()
}

fn failed(command: &str, what: &str) -> Failure {
    let d = Diagnostic::new(
        &codes::CLIENT_PROGRAM,
        command,
        format!("`{command}`: {what}"),
    );
    Failure::findings(vec![d.help(
        "try the command alone; its llama.cpp must be built with -DGGML_RPC=ON",
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_pointed_at_the_server() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 7));
        let said = |command| pointed(command, at);
        assert_eq!(
            said("llama-bench -r 1"),
            "llama-bench -r 1 --rpc 127.0.0.1:7 -ngl 99"
        );
        assert_eq!(
            said("llama-cli -ngl 3"),
            "llama-cli -ngl 3 --rpc 127.0.0.1:7"
        );
    }
}
