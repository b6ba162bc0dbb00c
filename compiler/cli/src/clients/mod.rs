//! Serves llama.cpp programs as an RPC device, and captures their graphs.

mod program;
mod version;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::codes;
use crate::output::{self, Failure};
pub(super) use program::capture_program;
use tpc_diag::{Diagnostic, codes as common};
use tpc_rpc::{Captures, Count, Device, Event, Limits, Server, Tell, Version, left_after_greeting};

/// The memory that a capturing device reports, in bytes; larger than any model.
pub(super) const ANY_MEMORY: u64 = 1 << 40;

/// The exit status after Ctrl-C.
const INTERRUPTED: i32 = 130;

pub(super) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        let message = format!("invalid listen address `{text}`");
        let d = Diagnostic::new(&common::COMMAND_LINE, "--listen", message);
        Failure::usage(
            d.help("give an address and a port, such as 127.0.0.1:50052; port 0 is any free port"),
        )
    })
}

pub(super) fn listen(
    address: SocketAddr,
    version: Version,
    limits: Limits,
) -> Result<Server, Failure> {
    Server::bind(address, version, limits).map_err(|e| {
        let message = format!("cannot listen at {address}: {e}");
        let d = Diagnostic::new(&codes::LISTEN, "--listen", message);
        Failure::usage(d.help(
            "stop the program that listens there, or choose another port; 0 is any free port",
        ))
    })
}

/// Serves clients until `ends` returns true. Reports refused requests and clients of other versions on standard error.
/// Returns the number of clients that left after the greeting.
pub(super) fn serve(
    server: &Server,
    device: &Arc<dyn Device>,
    ends: &mut dyn FnMut(Count) -> bool,
) -> usize {
    let version = server.version();
    let left = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&left);
    let tell: Tell = Arc::new(move |name, event| match event {
        Event::Connected | Event::Closed => {}
        Event::LeftAfterGreeting => {
            counter.fetch_add(1, Ordering::SeqCst);
            output::diagnostic(&left_after_greeting(name, version));
        }
        Event::Refused(refusal) => output::diagnostic(&refusal.diagnostic(name, version)),
    });
    server.run(device, &tell, ends);
    left.load(Ordering::SeqCst)
}

/// Returns a flag that the first Ctrl-C sets; the second ends the program.
pub(super) fn interrupted() -> Arc<AtomicBool> {
    let pressed = Arc::new(AtomicBool::new(false));
    // The first handler must read the flag before the second sets it.
    let _ = flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&pressed))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&pressed)));
    pressed
}

/// Captures graphs until Ctrl-C. With `once`, returns when graphs were captured and all clients have disconnected.
pub(super) fn capture(server: &Server, once: bool) -> Captures {
    let captures = Captures::default();
    let pressed = interrupted();
    let device: Arc<dyn Device> = Arc::new(captures.clone());
    serve(server, &device, &mut |count| {
        let gone = once && count.open == 0 && captures.graphs() > 0;
        gone || pressed.load(Ordering::SeqCst)
    });
    captures
}

/// Writes one file per kind of graph.
///
/// # Errors
/// Returns TPC0758 if no graph was captured, and an error if a file cannot be written.
pub(super) fn write(captures: &Captures, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let texts = captures.texts();
    if texts.is_empty() {
        let message = "no client has computed a graph";
        let d = Diagnostic::new(&codes::NO_GRAPH, "client", message);
        return Err(Failure::findings(vec![
            d.help("run a llama.cpp program with --rpc ADDRESS and -ngl 99"),
        ]));
    }
    std::fs::create_dir_all(folder).map_err(|e| Failure::file(folder, &e))?;
    let mut out = Vec::new();
    for (number, text) in (1..).zip(texts) {
        let path = folder.join(format!("graph-{number:02}.jsonl"));
        output::replace(&path, text.as_bytes())?;
        out.push(path);
    }
    Ok(out)
}
