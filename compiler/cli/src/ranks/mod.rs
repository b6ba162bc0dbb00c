//! The processes of an MPI job. `mpirun` starts the same command in each of them.
//!
//! Rank 0 runs the command. The other ranks load and run their parts of its programs, and print nothing.

#[cfg(feature = "mpi")]
mod mpi;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tpc_diag::{Diagnostic, codes};
use tpc_engine::ExecutorKind;
use tpc_engine::ranks::{Hello, RankGroup, compare, end};
use tpc_gguf::GgufFile;
use tpc_ir::program::Program;
use tpc_runtime::ranks::{RankError, Transport};

use crate::output::Failure;

/// The connected processes.
struct Job {
    transport: Arc<dyn Transport>,
    host: String,
    /// The machines of all ranks, once they have compared their models.
    hosts: OnceLock<Vec<String>>,
    busy: Arc<Mutex<Weak<()>>>,
    /// Ends the connection after the last message.
    finish: Box<dyn Fn() + Send + Sync>,
}

static JOB: OnceLock<Job> = OnceLock::new();

/// Variables in which launchers state the number of processes, and the rank.
const LAUNCHERS: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"],
    ["PMI_SIZE", "PMI_RANK"],
    ["SLURM_NTASKS", "PMIX_RANK"],
];

/// Returns the number of processes and this process's rank, if a launcher of MPI has started several.
fn launched() -> Option<(usize, usize)> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let found = LAUNCHERS
        .iter()
        .find_map(|[size, rank]| Some((number(size)?, number(rank)?)));
    found.filter(|(size, _)| *size > 1)
}

/// True for a process that another process speaks for.
pub(crate) fn is_silent() -> bool {
    launched().is_some_and(|(_, rank)| rank > 0)
}

/// Returns true unless this process has printed the failure of a rank. Two threads may learn of it.
pub(crate) fn is_news(d: &Diagnostic) -> bool {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    d.code != tpc_runtime::ranks::FAILED || !PRINTED.swap(true, Ordering::Relaxed)
}

/// Connects the processes of the job, if a launcher has started several.
///
/// # Errors
/// Returns TPC0401 without MPI, and TPC0630 if a process does not start.
pub(crate) fn start() -> Result<(), Failure> {
    let Some((size, _)) = launched() else {
        return Ok(());
    };
    let job = connect(size)?;
    let _ = JOB.set(job);
    Ok(())
}

#[cfg(feature = "mpi")]
fn connect(_size: usize) -> Result<Job, Failure> {
    mpi::connect()
}

#[cfg(not(feature = "mpi"))]
fn connect(size: usize) -> Result<Job, Failure> {
    let message = format!("a launcher has started {size} processes, but this tpc has no MPI");
    let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "mpirun", message);
    Err(Failure::usage(d.help(
        "build tpc with `cargo install --path compiler/cli --features mpi`, or start one process",
    )))
}

/// Returns the number of processes, for a process that follows rank 0.
pub(crate) fn followed() -> Option<usize> {
    let job = JOB.get().filter(|job| job.transport.rank() > 0);
    job.map(|job| job.transport.ranks())
}

/// Returns the processes that run a plan of `devices` devices; `None` for one process.
///
/// # Errors
/// Returns TPC0401 for an executor that does not run in several processes, or for fewer devices than processes.
pub(crate) fn group(
    kind: ExecutorKind,
    devices: usize,
    threads_stated: bool,
) -> Result<Option<RankGroup>, Failure> {
    let Some(job) = JOB.get() else {
        return Ok(None);
    };
    let ranks = job.transport.ranks();
    let refused = |option: &str, message: String, help: String| {
        let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, option, message);
        Err(Failure::usage(d.help(help)))
    };
    if kind == ExecutorKind::Reference {
        let message = format!(
            "the {} executor does not run in several processes",
            kind.name()
        );
        return refused(
            "--executor",
            message,
            "use --executor cpu or cuda, or one process".to_owned(),
        );
    }
    if devices < ranks {
        let message = format!("{ranks} processes need a device each, but the plan has {devices}");
        let name = match kind {
            ExecutorKind::Cpu | ExecutorKind::Reference => "cpu",
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => "cuda:0",
        };
        let list = vec![name; ranks].join(",");
        return refused("--devices", message, format!("give --devices {list}"));
    }
    Ok(Some(RankGroup {
        transport: Arc::clone(&job.transport),
        hosts: job.hosts.get().cloned().unwrap_or_default(),
        threads_stated,
        machines: None,
        busy: Arc::clone(&job.busy),
    }))
}

fn failed(e: &RankError) -> Failure {
    let (entity, cause) = match e.rank {
        Some(rank) => (format!("rank {rank}"), e.cause.clone()),
        None => ("mpirun".to_owned(), e.cause.clone()),
    };
    let code = tpc_runtime::ranks::FAILED;
    Failure::findings(vec![
        Diagnostic::new(code, entity, cause).help("mend the cause, then start all ranks again"),
    ])
}

/// Gives each machine of a plan its process.
///
/// # Errors
/// Returns TPC0401 for another number of processes than machines, with the command to use.
pub(crate) fn seat(
    group: &mut Option<RankGroup>,
    machines: Option<&Vec<usize>>,
) -> Result<(), Failure> {
    let Some(machines) = machines else {
        return Ok(());
    };
    let wanted = machines.iter().max().map_or(1, |m| m + 1);
    let found = group.as_ref().map_or(1, |g| g.transport.ranks());
    if wanted != found {
        let processes = if found == 1 {
            "one process"
        } else {
            "processes"
        };
        let message = match found {
            1 => format!("the plan has {wanted} machines, but there is {processes}"),
            n => format!("the plan has {wanted} machines, but there are {n} {processes}"),
        };
        let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "mpirun", message);
        return Err(Failure::usage(d.help(format!(
            "start one process per machine: mpirun -np {wanted} --hostfile hosts --map-by ppr:1:node --bind-to none tpc …"
        ))));
    }
    if let Some(group) = group {
        group.machines = Some(machines.clone());
    }
    Ok(())
}

/// Compares versions, models and artefacts of all ranks, once per job.
///
/// # Errors
/// Returns TPC0630 with the rank that differs.
pub(crate) fn greet(
    group: &mut Option<RankGroup>,
    file: &GgufFile,
    artefact: Option<&Program>,
) -> Result<(), Failure> {
    let (Some(job), Some(group)) = (JOB.get(), group) else {
        return Ok(());
    };
    if job.hosts.get().is_none() {
        let hello = Hello::new(&job.host, file, artefact);
        let hosts = compare(&*job.transport, &hello).map_err(|e| failed(&e))?;
        let _ = job.hosts.set(hosts);
    }
    group.hosts = job.hosts.get().cloned().unwrap_or_default();
    Ok(())
}

/// Ends the job: tells the other ranks of a failure of this rank, or lets them end.
pub(crate) fn finish(failure: Option<&Failure>) {
    let Some(job) = JOB.get() else {
        return;
    };
    match failure {
        Some(failure) => {
            let first = failure.diagnostics.first();
            let cause = first.map_or_else(
                || "has ended".to_owned(),
                |d| format!("{}: {}", d.entity, d.message),
            );
            job.transport.fail(&cause);
            if job.transport.rank() > 0 {
                // Rank 0 reports the failure, and ends all ranks.
                std::thread::sleep(std::time::Duration::from_secs(2));
            }
        }
        None => {
            if let (0, Ok(Some(group))) = (
                job.transport.rank(),
                group(ExecutorKind::Cpu, usize::MAX, false),
            ) {
                end(&group);
            }
            (job.finish)();
        }
    }
}
