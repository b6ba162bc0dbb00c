use clap::ValueEnum;
use tpc_cuda::Edges;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::devices::cores;
use tpc_engine::{self as engine, ExecutorKind, ExecutorOptions, Isa};

use super::names_cards;
use crate::args::PlacementArgs;
use crate::output::Failure;
use crate::ranks;

const MAX_THREADS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExecutorName {
    /// CPU kernels on threads.
    Cpu,
    /// CUDA kernels on graphics cards.
    Cuda,
    /// CUDA kernels on emulated devices, to find errors of plans: slow, needs a C++ compiler.
    EmulatedCuda,
    /// Emulated CUDA kernels that check every memory access: bounds, devices, races.
    CheckedCuda,
    /// The exact reference in f64: slow.
    Reference,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct ExecutionArgs {
    /// Executor of the programs [default: cuda for cards such as cuda:0 or 3090, else cpu; eval: reference].
    #[arg(long, value_enum)]
    executor: Option<ExecutorName>,
    /// Total threads of all devices, or threads of each device, such as `1,1` [default: the cores that this process may
    /// use].
    #[arg(long, short = 't', value_name = "N", value_parser = threads, allow_hyphen_values = true)]
    threads: Option<Threads>,
    /// Instruction set of the CPU's kernels, such as `avx2` or `portable`; all give the same bits [default: the fastest
    /// that this CPU has].
    #[arg(long, value_name = "NAME", value_parser = isa)]
    isa: Option<Isa>,
    /// Let a CUDA kernel start before the previous one ends (programmatic dependent launch); needs compute capability
    /// 9.0 or newer.
    #[arg(
        long,
        value_enum,
        value_name = "on|off",
        default_value = "on",
        hide_possible_values = true
    )]
    pdl: Pdl,
    /// Check before loading that all weights are finite.
    #[arg(long)]
    check_tensors: bool,
    /// Print details: data exchange between cards; for `tpc rpc`, also new programs and the time of each graph.
    #[arg(long, short)]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Pdl {
    /// Kernels start early on devices that support it.
    On,
    /// Kernels start when earlier kernels have ended.
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
    /// Returns the total number of threads: equal per device, and at least one each.
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
                    format!("-t lists threads for {listed} devices, but the plan has {devices}");
                let d = Diagnostic::new(&codes::COMMAND_LINE, "--threads", message);
                return Err(Failure::usage(d.help(
                    "one number sets the total; --devices sets the number of devices",
                )));
            }
        };
        Ok(engine::threads(all, devices))
    }

    pub(crate) fn executor_options(
        &self,
        kind: ExecutorKind,
        devices: usize,
    ) -> Result<ExecutorOptions, Failure> {
        Ok(ExecutorOptions {
            kind,
            threads: self.threads(devices)?,
            isa: self.isa.unwrap_or_else(Isa::best),
            edges: self.edges(),
            ranks: ranks::group(kind, devices, self.threads.is_some())?,
            ..ExecutorOptions::new(kind, devices)
        })
    }

    pub(crate) const fn says_executor(&self) -> bool {
        self.executor.is_some()
    }

    const fn edges(&self) -> Edges {
        match self.pdl {
            Pdl::On => Edges::Programmatic,
            Pdl::Off => Edges::Full,
        }
    }

    pub(super) const fn check_tensors(&self) -> bool {
        self.check_tensors
    }

    pub(crate) const fn verbose(&self) -> bool {
        self.verbose
    }

    /// Returns the executor of `--executor`; else CUDA if all devices are cards; else `default`.
    pub(crate) fn executor(&self, devices: &PlacementArgs, default: ExecutorKind) -> ExecutorKind {
        match self.executor {
            Some(executor) => executor.into(),
            None if names_cards(devices) => ExecutorKind::Cuda,
            None => default,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Threads {
    /// The threads of each device if the option is a list, else the total.
    each: usize,
    all: Option<usize>,
}

/// Parses the name of an instruction set that this CPU has.
fn isa(text: &str) -> Result<Isa, Diagnostic> {
    Isa::from_name(text).ok_or_else(|| {
        let message = format!("instruction set `{text}` is not available on this CPU");
        let names: Vec<String> = Isa::available().iter().map(Isa::to_string).collect();
        let help = format!("available, fastest first: {}", names.join(", "));
        Diagnostic::new(&codes::COMMAND_LINE, "--isa", message).help(help)
    })
}

/// Parses a total, or a list of equal numbers.
fn threads(text: &str) -> Result<Threads, Diagnostic> {
    let refused = |message: String, help: &str| {
        Diagnostic::new(&codes::COMMAND_LINE, "--threads", message).help(help)
    };
    let each: Option<Vec<usize>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    let each = each.filter(|n| n.iter().all(|n| (1..=MAX_THREADS).contains(n)));
    let each = each.ok_or_else(|| {
        refused(
            format!("--threads must be a number from 1 to {MAX_THREADS}, not `{text}`"),
            "give a total such as 8, or a list such as 4,4 for two devices",
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
            format!("`{text}` gives {all} threads in total"),
            "give at most 1024 in total",
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
            isa: None,
            check_tensors: false,
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
