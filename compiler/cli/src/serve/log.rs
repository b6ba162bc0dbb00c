use std::io;

use tracing::Level;

/// Starts the log on standard error: a line of text or a JSON object per event.
pub(super) fn start(json: bool) {
    let log = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(Level::INFO)
        .with_target(false);
    // A second start in one process keeps the first log.
    let _ = match json {
        true => log.json().flatten_event(true).try_init(),
        false => log.with_ansi(false).try_init(),
    };
}
