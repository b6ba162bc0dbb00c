use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tpc_diag::{Diagnostic, codes};
use tpc_mpi::{StartError, World, abort};
use tpc_runtime::ranks::RankError;

use super::{Job, failed};
use crate::output::{self, Failure};

/// The variable with the seconds in which a rank must start and answer.
const SECONDS: &str = "TPC_RANK_SECONDS";
/// The default of [`SECONDS`].
const USUAL: f64 = 5.0;

fn limit() -> Result<Duration, Failure> {
    let Ok(text) = std::env::var(SECONDS) else {
        return Ok(Duration::from_secs_f64(USUAL));
    };
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|s| (1.0..=3600.0).contains(s));
    let seconds = seconds.ok_or_else(|| {
        let message = format!("`{text}` is not a number of seconds");
        let d = Diagnostic::new(&codes::COMMAND_LINE, SECONDS, message);
        Failure::usage(d.help("give a number from 1 to 3600, such as 30"))
    })?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Reports a failed rank, and ends all. `lost` is true if the rank gives no sign of life.
fn report(rank: usize, e: &RankError, lost: bool) {
    let own = e.rank == Some(rank);
    // A rank that can speak reports its own failure to rank 0, which prints it.
    let speaks = match rank {
        0 => !own,
        _ => lost && !own,
    };
    if speaks {
        let news = failed(e).diagnostics;
        let news = news.iter().filter(|d| super::is_news(d));
        news.for_each(output::diagnostic);
    }
    if !own {
        abort(1);
    }
}

pub(super) fn connect() -> Result<Job, Failure> {
    let limit = limit()?;
    let world = World::start(limit, report).map_err(|e| {
        let cause = match e {
            StartError::Late(limit) => format!(
                "a rank has not started within {:.1} s; {SECONDS} sets the limit",
                limit.as_secs_f64()
            ),
            StartError::Mpi(cause) => cause,
        };
        let failure = failed(&RankError { rank: None, cause });
        if super::is_silent() {
            // If rank 0 lives, it reports this first, and the launcher ends this process.
            std::thread::sleep(Duration::from_millis(400));
            failure.diagnostics.iter().for_each(output::diagnostic);
        }
        failure
    })?;
    let ended = Arc::clone(&world);
    Ok(Job {
        host: world.host().to_owned(),
        transport: world,
        hosts: OnceLock::new(),
        busy: Arc::default(),
        finish: Box::new(move || ended.finish()),
    })
}
