//! The options of the executor.

use clap::ValueEnum;
use tpc_cuda::Edges;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::devices::cores;
use tpc_engine::{self as engine, ExecutorKind, ExecutorOptions};

use super::names_cards;
use crate::args::PlacementArgs;
use crate::output::Failure;

/// The most threads that may be asked for.
const MAX_THREADS: usize = 1024;

/// What executes the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExecutorName {
    /// Kernels on threads of the processor.
    Cpu,
    /// Kernels of CUDA on graphics cards.
    Cuda,
    /// Kernels of CUDA on devices that the processor emulates, to find faults of plans: slow. It needs a C++ compiler.
    EmulatedCuda,
    /// The same, which also checks every access to memory: bounds, devices, races.
    CheckedCuda,
    /// Slow and exact, in f64.
    Reference,
}

/// The options of the executor.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecutionArgs {
    /// The executor of the programs [default: cuda for devices such as cuda:0, else cpu; of eval: reference].
    #[arg(long, value_enum)]
    executor: Option<ExecutorName>,
    /// Threads of all devices together, at least one of each; or of each, such as `1,1` [default: the cores that this process
    /// may use].
    #[arg(long, short = 't', value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    threads: Option<Threads>,
    /// On CUDA devices, whether a kernel may start before the one before it has ended (programmatic dependent launch): `on` where the
    /// device knows that, which is from compute capability 9.0 on.
    #[arg(
        long,
        value_enum,
        value_name = "on|off",
        default_value = "on",
        hide_possible_values = true
    )]
    pdl: Pdl,
    /// Say more of what runs: how cards exchange; in `tpc rpc`, which programs are made, and how long graphs take.
    #[arg(long, short)]
    verbose: bool,
}

/// Whether kernels may start early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pdl {
    /// They do, on devices that know it.
    On,
    /// They start when those before them have ended.
    Off,
}

impl From<ExecutorName> for ExecutorKind {
    fn from(name: ExecutorName) -> ExecutorKind {
        match name {
            ExecutorName::Cpu => ExecutorKind::Cpu,
            ExecutorName::Cuda => ExecutorKind::Cuda,
            ExecutorName::EmulatedCuda => ExecutorKind::EmulatedCuda,
            ExecutorName::CheckedCuda => ExecutorKind::CheckedCuda,
            ExecutorName::Reference => ExecutorKind::Reference,
        }
    }
}

impl ExecutionArgs {
    /// Threads of so many devices together: as many of each, and one at least.
    ///
    /// # Errors
    /// TPC0400 for a list of another length.
    fn threads(&self, devices: usize) -> Result<usize, Failure> {
        let devices = devices.max(1);
        let all = match self.threads {
            None => cores::usable(),
            Some(Threads { each, all: None }) => each,
            Some(Threads {
                each,
                all: Some(listed),
            }) if listed == devices => each * listed,
            Some(Threads {
                all: Some(listed), ..
            }) => {
                let message =
                    format!("-t lists the threads of {listed} devices, and there are {devices}");
                let d = Diagnostic::new(&codes::COMMAND_LINE, "--threads", message);
                return Err(Failure::usage(d.help(
                    "one number is that of all devices together; --devices says how many there are",
                )));
            }
        };
        Ok(engine::threads(all, devices))
    }

    /// The options of the executor, with threads for so many devices.
    ///
    /// # Errors
    /// TPC0400 for a list of threads of another length.
    pub(crate) fn executor_options(
        &self,
        kind: ExecutorKind,
        devices: usize,
    ) -> Result<ExecutorOptions, Failure> {
        Ok(ExecutorOptions {
            kind,
            threads: self.threads(devices)?,
            edges: self.edges(),
            profile: false,
        })
    }

    /// Whether the executor is said.
    pub(crate) const fn says_executor(&self) -> bool {
        self.executor.is_some()
    }

    /// How kernels of CUDA follow each other.
    const fn edges(&self) -> Edges {
        match self.pdl {
            Pdl::On => Edges::Programmatic,
            Pdl::Off => Edges::Full,
        }
    }

    /// Whether what was decided while loading is said.
    pub(crate) const fn verbose(&self) -> bool {
        self.verbose
    }

    /// What executes the programs: as said, cards where all devices are such, or else the command's `default`.
    pub(crate) fn executor(&self, devices: &PlacementArgs, default: ExecutorKind) -> ExecutorKind {
        match self.executor {
            Some(executor) => executor.into(),
            None if names_cards(devices) => ExecutorKind::Cuda,
            None => default,
        }
    }
}

/// Numbers of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Threads {
    /// Of all devices together, or of each where they are listed.
    each: usize,
    /// The devices that are listed.
    all: Option<usize>,
}

/// Reads a number of threads: of all devices, or a list of equal numbers, one per device.
fn threads(text: &str) -> Result<Threads, Diagnostic> {
    let refused = |message: String, help: &str| {
        Diagnostic::new(&codes::COMMAND_LINE, "--threads", message).help(help)
    };
    let each: Option<Vec<usize>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    let each = each.filter(|n| n.iter().all(|n| (1..=MAX_THREADS).contains(n)));
    let each = each.ok_or_else(|| {
        refused(
            format!("--threads must be a number from 1 to {MAX_THREADS}, not `{text}`"),
            "such as 8; 4,4 gives each of two devices four",
        )
    })?;
    if each.iter().any(|n| *n != each[0]) {
        return Err(refused(
            format!("devices with different numbers of threads, `{text}`, are not supported yet"),
            "give all devices the same number",
        ));
    }
    let all: usize = each.iter().sum();
    match all <= MAX_THREADS {
        true => Ok(Threads {
            each: each[0],
            all: Some(each.len()).filter(|n| *n > 1),
        }),
        false => Err(refused(
            format!("`{text}` are {all} threads"),
            "at most 1024 in all",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_devices_are_counted_together() {
        let args = |text: &str| ExecutionArgs {
            executor: None,
            threads: threads(text).ok(),
            pdl: Pdl::On,
            verbose: false,
        };
        let of = |text: &str, devices| args(text).threads(devices).ok();
        assert_eq!(
            (of("3", 1), of("3", 2), of("1", 2)),
            (Some(3), Some(2), Some(2))
        );
        assert_eq!(
            (of("2, 2", 2), of("2,2", 1), of("2,2,2", 2)),
            (Some(4), None, None)
        );
        for wrong in ["", "0", "-1", "x", "1,2", "1,", "1025", "1024,1024"] {
            let d = threads(wrong).expect_err(wrong);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{wrong}");
        }
    }
}
