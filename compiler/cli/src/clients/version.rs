//! The version of ggml's RPC protocol that a program speaks.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tpc_rpc::Version;

/// The maximum time that a program may take to print its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// The last minor version of llama.cpp 0 with version 7 of the protocol.
const LAST_MINOR_OF_7: u64 = 6;

/// Asks the program of a command for its version. `None` if the program does not state it.
pub(super) fn ask(command: &str) -> Option<Version> {
    let program = command.split_whitespace().next()?;
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Releases differ in the stream.
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    child.stderr.take()?.read_to_string(&mut text).ok()?;
    of_text(&text)
}

/// Returns the protocol of `version: 0.8.0 (build 1, commit a)`, or of `version: 9890 (a)` in older releases.
fn of_text(text: &str) -> Option<Version> {
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.trim().strip_prefix("version:"))?;
    let number = number.split_whitespace().next()?;
    let mut parts = number.split(['.', '-']).map(str::parse::<u64>);
    match (parts.next()?.ok()?, parts.next()) {
        (_, None) => Some(Version::V7),
        (0, Some(Ok(minor))) if minor <= LAST_MINOR_OF_7 => Some(Version::V7),
        (_, Some(Ok(_))) => Some(Version::V8),
        (_, Some(Err(_))) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_the_protocol_of_their_version() {
        let of =
            |number: &str| of_text(&format!("ggml started\nversion: {number} (x)\nbuilt with"));
        assert_eq!(of("0.8.0"), Some(Version::V8));
        assert_eq!(of("0.9.0-dev"), Some(Version::V8));
        assert_eq!(of("1.0.0"), Some(Version::V8));
        assert_eq!(of("0.6.2"), Some(Version::V7));
        assert_eq!(of("0.5.0"), Some(Version::V7));
        assert_eq!(of("9890"), Some(Version::V7));
        assert_eq!(of("unknown"), None);
        assert_eq!(of_text("error: unknown argument: --version"), None);
    }

    #[test]
    fn a_program_that_does_not_answer_is_asked_in_vain() {
        assert_eq!(ask("/nonexistent/llama-bench -m x"), None);
        assert_eq!(ask(""), None);
        #[cfg(unix)]
        assert_eq!(ask("true -m x"), None);
    }
}
