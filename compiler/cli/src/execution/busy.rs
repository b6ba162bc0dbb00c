use tpc_diag::Diagnostic;
use tpc_engine::AnySession;

use crate::codes;

/// The share of time without a core from which a run is reported.
const MUCH: f64 = 0.1;

/// Returns a note if the session's threads waited for cores that other programs used.
pub(crate) fn busy(session: &AnySession<'_>) -> Option<Diagnostic> {
    let share = session.executor().starved();
    if share < MUCH {
        return None;
    }
    let percent = 100.0 * share;
    let message = format!("the threads had no core for {percent:.0} % of the time");
    let d = Diagnostic::new(&codes::BUSY, "--threads", message);
    Some(d.help("end other programs, or give fewer threads, such as -t 1"))
}
