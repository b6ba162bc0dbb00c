//! The model, the executor and the devices of a command.
//!
//! Commands that run a model call [`SubjectArgs::open`], plan, and call [`load`].

mod busy;
mod faults;
mod limits;
mod options;
mod subject;

use std::path::Path;

use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{DeviceKind, DeviceList, Placement, SplitMode};
use tpc_diag::{Diagnostic, codes};
use tpc_engine::artefact::TargetDevices;
use tpc_engine::devices::cards;
use tpc_engine::{self as engine, AnySession, ExecutorKind, Loader};
use tpc_gguf::GgufFile;
use tpc_ir::DType;

use crate::args::{Defaults, PlacementArgs};
use crate::memory;
use crate::output::{Console, Failure};
use crate::progress::Progress;
use crate::ranks;
use crate::values::DeviceLists;
pub(super) use busy::busy;
pub(super) use faults::{FaultArgs, limit, planted, suggest_dump};
pub(super) use limits::beyond_training;
pub(super) use options::ExecutionArgs;
pub(super) use subject::{Opened, SubjectArgs};

/// Returns the options' devices, or `None` if no option describes a machine.
pub(super) fn devices(args: &PlacementArgs) -> Result<Option<TargetDevices>, Failure> {
    if !args.names_a_machine() {
        return Ok(None);
    }
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Auto,
    };
    let placement = args.placement(defaults)?;
    let (devices, topology) = (placement.devices, placement.topology);
    Ok(Some(TargetDevices {
        text: match args.devices() {
            Some(Ok(lists)) => lists.text,
            _ => String::new(),
        },
        kinds: devices.iter().map(|d| d.kind).collect(),
        memory: (0..devices.len())
            .map(|i| topology.device(i).usable_memory().map(|m| m as u64))
            .collect(),
    }))
}

/// Returns the placement of the options. The default is one CPU device, or `cuda:0` for the CUDA executor. Emulated
/// devices may have any card's name.
pub(super) fn placement(
    args: &PlacementArgs,
    defaults: Defaults,
    executor: ExecutorKind,
) -> Result<Placement, Failure> {
    let cure = "use `--executor cuda` for cards, `--executor emulated-cuda` to emulate cards (slow), or \
                `--devices cpu` or `cpu,cpu` for the CPU";
    placement_for(args, defaults, executor, cure)
}

/// Returns the placement like [`placement`]. Suggests `cure` if a device is a card and the executor does not run on
/// cards.
pub(super) fn placement_for(
    args: &PlacementArgs,
    defaults: Defaults,
    executor: ExecutorKind,
    cure: &str,
) -> Result<Placement, Failure> {
    let placement = match args.names_a_machine() {
        true => args.placement(defaults)?,
        false => {
            let one = match executor {
                ExecutorKind::Cuda => "cuda:0",
                _ => "cpu",
            };
            let one = DeviceList::parse(one).map_err(Failure::usage)?;
            args.placement_on(&one, defaults)?
        }
    };
    let card = (placement.devices.iter())
        .find(|d| matches!(d.kind, DeviceKind::Cuda(_)) || d.card.is_some());
    match card {
        Some(card) if !executor.takes_cards() => {
            let message = format!(
                "{} is a card, but the {} executor runs on the CPU",
                card.name,
                executor.name()
            );
            let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--devices", message);
            Err(Failure::usage(d.help(cure)))
        }
        _ => Ok(Placement {
            storage: executor.target(),
            ..placement
        }),
    }
}

/// True if all devices are cards, by number or by model.
pub(super) fn names_cards(args: &PlacementArgs) -> bool {
    match args.devices() {
        Some(Ok(DeviceLists { lists, .. })) => lists.iter().all(cards::are_cards),
        _ => false,
    }
}

/// Checks that all devices are cards.
///
/// # Errors
/// Returns TPC0401 if a device is not a card.
pub(super) fn on_cards(placement: &Placement) -> Result<(), Failure> {
    let kinds: Vec<DeviceKind> = placement.devices.iter().map(|d| d.kind).collect();
    Ok(cards::no_processor(&kinds)?)
}

pub(super) fn plan(
    name: &Path,
    file: &GgufFile,
    placement: &Placement,
) -> Result<CompiledModel, Failure> {
    let _progress = Progress::start(format!("planning {}", name.display()));
    Ok(engine::plan(file, placement)?)
}

pub(super) fn load<'a>(
    mut loader: Loader<'a>,
    args: &ExecutionArgs,
) -> Result<AnySession<'a>, Failure> {
    let group = &mut loader.executor.ranks;
    ranks::seat(group, loader.model.machines.as_ref())?;
    ranks::greet(group, loader.file, loader.model.artefact_program())?;
    if args.check_tensors() {
        check_tensors(loader.name, loader.file)?;
    }
    let n = loader.file.header().tensors().len();
    let progress = Progress::with_steps(format!("loading {}", loader.name.display()), n);
    let session = loader.load(&Console {
        progress: Some(&progress),
        verbose: args.verbose(),
    });
    drop(progress);
    memory::give_back();
    Ok(session?)
}

/// The options that several processes need to run a model together.
pub(crate) type RankOptions<'a> = (&'a SubjectArgs, &'a PlacementArgs, &'a ExecutionArgs);

/// Loads and runs this process's part of the programs of rank 0, in a job of `ranks` processes.
pub(super) fn follow(
    ranks: usize,
    (subject, placement, execution): RankOptions<'_>,
) -> Result<(), Failure> {
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Auto,
    };
    // Rank 0 sends the kind of the executor, and the devices are in its program.
    let kind = execution.executor(placement, ExecutorKind::Cpu);
    let opened = subject.open(placement, || self::placement(placement, defaults, kind))?;
    let mut options = execution.executor_options(kind, ranks)?;
    ranks::greet(&mut options.ranks, &opened.file, opened.artefact_program())?;
    match &options.ranks {
        Some(group) => Ok(engine::serve_rank(
            group,
            &opened.file,
            &options,
            &Console::default(),
        )?),
        None => Ok(()),
    }
}

/// Checks that all weights are finite.
///
/// # Errors
/// Returns TPC0439 with the damaged tensors.
fn check_tensors(name: &Path, file: &GgufFile) -> Result<(), Failure> {
    let _progress = Progress::start(format!("checking {}", name.display()));
    match engine::damage(file) {
        Some(d) => Err(Failure::from_diagnostics(vec![d])),
        None => Ok(()),
    }
}

/// Adds the damaged tensors to a failure of logits that are not finite.
pub(super) fn explain_logits(mut failure: Failure, file: &GgufFile) -> Failure {
    let is_logits = |d: &Diagnostic| d.code.id == tpc_text::LOGITS.id;
    if failure.diagnostics.iter().any(is_logits)
        && let Some(d) = engine::damage(file)
    {
        failure.diagnostics.insert(0, d);
    }
    failure
}
