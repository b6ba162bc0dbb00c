//! Runs a child process; SIGINT and SIGTERM end the child and this program.

use std::io::{self, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

/// The polling interval for the child.
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Signals {
    /// True if no child is running, so that a signal ends this program.
    usual: Arc<AtomicBool>,
    came: Arc<AtomicUsize>,
}

impl Signals {
    /// Registers the signal handlers. If this fails, a signal ends only this program.
    pub(super) fn listen() -> Signals {
        let out = Signals {
            usual: Arc::new(AtomicBool::new(true)),
            came: Arc::new(AtomicUsize::new(0)),
        };
        for signal in [SIGINT, SIGTERM] {
            let number = usize::try_from(signal).unwrap_or(0);
            let _ = flag::register_conditional_default(signal, Arc::clone(&out.usual))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&out.came), number));
        }
        out
    }

    /// Runs a program to its end. A signal ends the program, its children, and this program.
    pub(super) fn output(&self, command: &mut Command) -> io::Result<Output> {
        in_group(command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        self.usual.store(false, Ordering::SeqCst);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let signal = self.came.load(Ordering::SeqCst);
            if signal != 0 {
                end(&mut child);
                self.usual.store(true, Ordering::SeqCst);
                let _ = low_level::raise(i32::try_from(signal).unwrap_or(SIGTERM));
            }
            thread::sleep(LOOK);
        };
        self.usual.store(true, Ordering::SeqCst);
        Ok(Output {
            status,
            stdout: text(stdout),
            stderr: text(stderr),
        })
    }
}

fn reader<R: Read + Send + 'static>(from: Option<R>) -> Option<JoinHandle<Vec<u8>>> {
    let mut from = from?;
    Some(thread::spawn(move || {
        let mut out = Vec::new();
        // After an error, the output read so far counts.
        let _ = from.read_to_end(&mut out);
        out
    }))
}

fn text(reader: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    reader.and_then(|r| r.join().ok()).unwrap_or_default()
}

#[cfg(unix)]
fn in_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
const fn in_group(_: &mut Command) {}

fn end(child: &mut Child) {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
    }
    let _ = child.kill();
    let _ = child.wait();
}
