//! Runs a llama.cpp program to capture its graphs.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{interrupted, listen, serve};
use crate::codes;
use crate::output::{self, Failure};
use tpc_diag::{Diagnostic, codes as common};
use tpc_rpc::{Captures, Device, Limits};

/// Runs a llama.cpp command with a capturing device.
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
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = listen(any, Limits::new(memory))?;
    let address = server
        .address()
        .map_err(|e| failed(command, &e.to_string()))?;
    let mut child =
        start(&pointed(command, address)).map_err(|e| failed(command, &e.to_string()))?;
    let captures = Captures::default();
    let pressed = interrupted();
    let mut status = None;
    let device: Arc<dyn Device> = Arc::new(captures.clone());
    serve(&server, &device, &mut |_| {
        if pressed.load(Ordering::SeqCst) {
            let _ = child.kill();
        }
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    let ended = match status {
        Some(s) if s.success() => None,
        Some(s) => Some(format!("failed with {s}")),
        None => Some("the program's exit status is unknown".to_owned()),
    };
    match ended {
        None => {}
        Some(what) if captures.graphs() == 0 => return Err(failed(command, &what)),
        // Graphs captured before the failure are still linted.
        Some(what) => failed(command, &what)
            .diagnostics
            .iter()
            .for_each(output::diagnostic),
    }
    Ok(captures)
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
