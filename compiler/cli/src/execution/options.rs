//! The options of the executor.

use clap::ValueEnum;
use tpc_cuda::Edges;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::devices::cores;
use tpc_engine::{self as engine, ExecutorKind, ExecutorOptions};

use super::names_cards;
use crate::args::PlacementArgs;
use crate::output::Failure;

/// The largest accepted number of threads.
const MAX_THREADS: usize = 1024;

/// The executor of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExecutorName {
    /// CPU kernels on threads of the processor.
    Cpu,
    /// CUDA kernels on graphics cards.
    Cuda,
    /// CUDA kernels on emulated devices, to find faults of plans: slow. It needs a C++ compiler.
    EmulatedCuda,
    /// The emulated CUDA kernels, with checks of every access to memory: bounds, devices, races.
    CheckedCuda,
    /// The exact reference in f64: slow.
    Reference,
}

/// The options of the executor.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecutionArgs {
    /// The executor of the programs [default: cuda for devices such as cuda:0, else cpu; of eval: reference].
    #[arg(long, value_enum)]
    executor: Option<ExecutorName>,
    /// Total threads over all devices, at least one per device; or the threads of each, such as `1,1` [default: the cores that
    /// this process may use].
    #[arg(long, short = 't', value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    threads: Option<Threads>,
    /// On CUDA devices, let a kernel start before the previous kernel has ended (programmatic dependent launch). It needs compute
    /// capability 9.0 or newer.
    #[arg(
        long,
        value_enum,
        value_name = "on|off",
        default_value = "on",
        hide_possible_values = true
    )]
    pdl: Pdl,
    /// Print details: how cards exchange data; in `tpc rpc`, which programs are made, and how long graphs take.
    #[arg(long, short)]
    verbose: bool,
}

/// The use of programmatic dependent launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pdl {
    /// Kernels start early on devices that support it.
    On,
    /// A kernel starts when the previous kernels have ended.
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
    /// Returns the total number of threads for `devices` devices: the same number per device, and at least one.
    ///
    /// # Errors
    /// Returns TPC0400 if the list of threads does not have one entry per device.
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

    /// Returns the options of the executor, with threads for `devices` devices.
    ///
    /// # Errors
    /// Returns TPC0400 if the list of threads does not have one entry per device.
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

    /// True if `--executor` is given.
    pub(crate) const fn says_executor(&self) -> bool {
        self.executor.is_some()
    }

    /// Returns the dependencies between CUDA kernel launches.
    const fn edges(&self) -> Edges {
        match self.pdl {
            Pdl::On => Edges::Programmatic,
            Pdl::Off => Edges::Full,
        }
    }

    /// True if the loader prints its decisions.
    pub(crate) const fn verbose(&self) -> bool {
        self.verbose
    }

    /// Returns the executor: the value of `--executor`, else CUDA if all devices are cards, else the command's `default`.
    pub(crate) fn executor(&self, devices: &PlacementArgs, default: ExecutorKind) -> ExecutorKind {
        match self.executor {
            Some(executor) => executor.into(),
            None if names_cards(devices) => ExecutorKind::Cuda,
            None => default,
        }
    }
}

/// The value of `--threads`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Threads {
    /// The total, or the threads of each device if the option is a list.
    each: usize,
    /// The length of the list, if the option is a list.
    all: Option<usize>,
}

/// Parses a total number of threads, or a list of equal numbers, one per device.
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
