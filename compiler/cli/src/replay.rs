//! `tpc replay`: runs a launch of a dump alone.

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use tpc_core::format::bytes;
use tpc_core::placement::{DeviceKind, parse_devices};
use tpc_cuda::dump::{self, DumpError, LaunchDump, MAX_FILE_BYTES, Role};
use tpc_cuda::replay::{Replayed, ReplayedResult};
use tpc_diag::{Diagnostic, visible};
use tpc_engine::ExecutorKind;
use tpc_engine::devices::cards;
use tpc_engine::replay::ReplayDevice;

use crate::execution;
use crate::input;
use crate::output::{self, Failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// A graphics card: needs NVRTC.
    Cuda,
    /// An emulated device: needs a C++ compiler.
    EmulatedCuda,
    /// An emulated device that checks every memory access.
    CheckedCuda,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A dump that `--dump-on-fault` wrote.
    #[arg(value_name = "DUMP")]
    dump: PathBuf,
    /// Device of the launch [default: cuda with `--devices`, else checked-cuda].
    #[arg(long, value_enum)]
    executor: Option<Executor>,
    /// Card of the launch, such as `cuda:0`.
    #[arg(long, value_name = "SPEC")]
    devices: Option<String>,
    /// Run the kernel of the dump even if it differs from the kernel of this tpc. The kernel is code: use only files
    /// that you trust.
    #[arg(long)]
    trust_kernel: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (kind, card) = (kind(args), card(args)?);
    let device = ReplayDevice {
        kind,
        card,
        limit: execution::limit(kind)?,
        planted: execution::planted(kind)?,
    };
    let name = args.dump.display().to_string();
    let read = input::read_file(&args.dump, MAX_FILE_BYTES)?;
    let dump = dump::parse(read).map_err(|e| refused(&name, &e))?;
    if !args.trust_kernel {
        dump.check_source().map_err(|e| refused(&name, &e))?;
    }
    output::result(&description(&dump))?;
    let begun = Instant::now();
    let replayed = device.replay(&dump)?;
    let seconds = begun.elapsed().as_secs_f64();
    let on = kind.name();
    output::result(&format!(
        "the launch ended without a fault on {on}, in {seconds:.1} s with compilation\n{}",
        results(&dump, &replayed)
    ))
}

fn kind(args: &Args) -> ExecutorKind {
    match args.executor {
        Some(Executor::Cuda) => ExecutorKind::Cuda,
        Some(Executor::EmulatedCuda) => ExecutorKind::EmulatedCuda,
        Some(Executor::CheckedCuda) => ExecutorKind::CheckedCuda,
        None if args.devices.is_some() => ExecutorKind::Cuda,
        None => ExecutorKind::CheckedCuda,
    }
}

/// Returns the number of the card.
fn card(args: &Args) -> Result<u32, Failure> {
    let Some(list) = &args.devices else {
        return Ok(0);
    };
    let devices = parse_devices(list).map_err(Failure::usage)?;
    let kinds: Vec<DeviceKind> = devices.iter().map(|d| d.kind).collect();
    cards::no_processor(&kinds)?;
    match cards::numbers(&kinds).as_slice() {
        [card] => Ok(*card),
        several => {
            let message = format!("a launch runs on 1 device, not {}", several.len());
            let code = &tpc_diag::codes::COMMAND_LINE;
            let d = Diagnostic::new(code, "--devices", message);
            Err(Failure::usage(d.help("give one card, such as cuda:0")))
        }
    }
}

fn refused(name: &str, e: &DumpError) -> Failure {
    let code = e.code();
    Failure::usage(Diagnostic::new(code, name, e.to_string()).help(code.cure))
}

/// Describes a launch and its tensors.
fn description(dump: &LaunchDump) -> String {
    let header = &dump.header;
    let (kernel, device) = (&header.kernel, &header.device);
    let [x, y, z] = kernel.grid;
    let (major, minor) = device.capability;
    let mut out = format!("{}\n", visible(&header.launch.to_string()));
    out.push_str(&format!(
        "from {}, on {} ({}, compute capability {major}.{minor})\n",
        visible(&header.producer),
        visible(&device.name),
        visible(&device.target)
    ));
    out.push_str(&format!("it failed: {}\n", visible(&header.fault)));
    out.push_str(&format!(
        "grid {x}×{y}×{z}, {} threads per block, {} of shared memory\n",
        kernel.threads,
        bytes(kernel.shared_bytes.into())
    ));
    for t in &header.tensors {
        let word = match t.role {
            Role::Operand => "operand",
            Role::Result => "result",
            Role::Size => "size",
            Role::Counters | Role::Scratch => continue,
        };
        let size = bytes(t.bytes);
        let (title, sizes) = (visible(t.title()), t.sizes());
        out.push_str(&format!("  {word:<8} {title}: {} {sizes}, {size}", t.dtype));
        let region = t.region.and_then(|r| header.regions.get(r as usize));
        if let Some(cut) = region.filter(|r| r.saved < r.bytes) {
            let missing = bytes(cut.bytes - cut.saved);
            out.push_str(&format!(" (truncated: {missing} are zeros)"));
        }
        out.push('\n');
    }
    out
}

fn results(dump: &LaunchDump, replayed: &Replayed) -> String {
    let line = |r: &ReplayedResult| {
        let title = (dump.header.tensors.get(r.tensor)).map_or("", |t| t.title());
        let title = visible(title);
        let numbers = match r.range {
            Some((low, high)) => format!("from {low} to {high}, {} NaN, ", r.nan),
            None if r.nan > 0 => format!("{} NaN, ", r.nan),
            None => String::new(),
        };
        format!("  {title}: {numbers}SHA-256 {}\n", r.sha256)
    };
    replayed.results.iter().map(line).collect()
}
