//! `tpc compile`: a model, planned for devices, as an artefact that runs without planning.

use std::fs;
use std::path::{Path, PathBuf};

use tpc_artefact::{
    Artefact, ArtefactError, CacheOptions, Digest, FORMAT, MAIN, Manifest, ModelRecord,
    OptionRecord, TargetRecord, WindowRecord, of_model, rule,
};
use tpc_core::format::bytes;
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::{DType, Program, Symbol};
use tpc_models::Drafting;

use crate::args::{Defaults, PlacementArgs};
use crate::execution;
use crate::input;
use crate::kernels::{self, Target};
use crate::output::{self, Failure};
use tpc_engine::artefact::{CPU, CUDA, stored_versions};
use tpc_engine::{self as engine, ExecutorKind, check_types};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file, or any shard of one; the header suffices.
    model: PathBuf,
    /// The artefact to write.
    #[arg(short, long, value_name = "OUT.tpc")]
    output: PathBuf,
    /// Write a rule for make that names every file that was read.
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// What runs it: cpu, cuda, or cards of some kinds, such as cuda:sm_90a,sm_120f [default: cuda for devices such as
    /// cuda:0, else cpu].
    #[arg(long, value_name = "TARGET", value_parser = kernels::target)]
    target: Option<Target>,
    /// Print what each kernel needs of a card.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    placement: PlacementArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (target, executor) = target(args);
    let cure = "`--target cuda` compiles for cards, and so do devices such as cuda:0 without --target; `--devices cpu` or \
                `cpu,cpu` is the processor";
    let placement = execution::placement_for(
        &args.placement,
        Defaults {
            cache: DType::F16,
            split_mode: SplitMode::Auto,
        },
        executor,
        cure,
    )?;
    if executor == ExecutorKind::Cuda {
        execution::on_cards(&placement)?;
    }
    let file = input::open_whole(&args.model)?;
    is_no_input(args, &file)?;
    check_types(&file)?;
    let topology = args.placement.topology_bytes()?;
    let compiled = execution::plan(&args.model, &file, &placement)?;
    let program = engine::program(&compiled, &placement, executor.target())?;
    let kernels = match &target {
        Target::Cpu => None,
        Target::Cuda(targets) => Some(kernels::compiled(&program, targets)?),
    };
    let modules = kernels.as_ref().map_or(Vec::new(), |k| k.modules.clone());
    let made = Made {
        target: &target,
        kernels: !modules.is_empty(),
        program: &program,
    };
    let manifest = manifest(&file, &compiled, &placement, made, topology.as_deref())?;
    let name = args.output.display().to_string();
    let refused = |e: ArtefactError| Failure::findings(vec![refusal(&e, &name)]);
    let artefact = Artefact::new(manifest, program).and_then(|a| a.with_kernels(modules));
    let artefact = artefact.map_err(refused)?;
    let written = artefact.to_bytes().map_err(refused)?;
    output::replace(&args.output, &written)?;
    if let Some(depfile) = &args.depfile {
        output::replace(depfile, rule(&name, &dependencies(args, &file)).as_bytes())?;
    }
    if let Some(kernels) = kernels.filter(|k| args.verbose && !k.modules.is_empty()) {
        output::result(&kernels.table())?;
    }
    let devices = match placement.devices.len() {
        1 => "1 device".to_owned(),
        n => format!("{n} devices"),
    };
    output::result(&format!(
        "{name}: {} for {devices}, {}\n",
        compiled.model.summary.name,
        bytes(written.len() as u64)
    ))
}

/// The refusal of what was just compiled. A program that does not verify is no fault of the file, which is not written.
fn refusal(e: &ArtefactError, name: &str) -> Diagnostic {
    match e {
        ArtefactError::Program { what, .. } => {
            let d = Diagnostic::new(&codes::UNVERIFIED_PLAN, name, what.clone());
            d.help(
                "this is a fault of tpc, and nothing is written; please report it; tpc run --executor reference runs the model",
            )
        }
        e => e.diagnostic(name),
    }
}

/// What it is compiled for: what is said, or what the devices are.
fn target(args: &Args) -> (Target, ExecutorKind) {
    let by_devices = || match execution::names_cards(&args.placement) {
        true => Target::cards(),
        false => Target::Cpu,
    };
    let target = args.target.clone().unwrap_or_else(by_devices);
    let executor = match target {
        Target::Cpu => ExecutorKind::Cpu,
        Target::Cuda(_) => ExecutorKind::Cuda,
    };
    (target, executor)
}

/// What is written beside the manifest.
#[derive(Clone, Copy)]
struct Made<'a> {
    target: &'a Target,
    /// Whether there are kernels.
    kernels: bool,
    program: &'a Program,
}

/// The output must not be one of the files that are read.
fn is_no_input(args: &Args, file: &GgufFile) -> Result<(), Failure> {
    let real = |p: &Path| fs::canonicalize(p).ok();
    for output in [Some(&args.output), args.depfile.as_ref()]
        .into_iter()
        .flatten()
    {
        let Some(output) = real(output) else { continue };
        let read = dependencies(args, file);
        if read
            .iter()
            .any(|p| real(Path::new(p)).as_ref() == Some(&output))
        {
            let name = output.display().to_string();
            let message = format!("{name} is read, and would be overwritten");
            let d = Diagnostic::new(&codes::COMMAND_LINE, name, message);
            return Err(Failure::usage(d.help("give another name to -o: OUT.tpc")));
        }
    }
    if args.depfile.as_ref() == Some(&args.output) {
        let message = "the artefact and its rule have one name";
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--depfile", message);
        return Err(Failure::usage(d.help("such as -o m.tpc --depfile m.d")));
    }
    Ok(())
}

/// Every file that was read, as its user names it.
fn dependencies(args: &Args, file: &GgufFile) -> Vec<String> {
    let shards = file.shards().iter().map(|s| s.path().display().to_string());
    let topology = args.placement.topology_path();
    shards
        .chain(topology.map(|p| p.display().to_string()))
        .collect()
}

/// What the artefact says of itself. Nothing in it depends on where or when it was compiled.
fn manifest(
    file: &GgufFile,
    compiled: &CompiledModel,
    placement: &Placement,
    made: Made<'_>,
    topology: Option<&[u8]>,
) -> Result<Manifest, Failure> {
    let program = made.program;
    let summary = &compiled.model.summary;
    let missing = || {
        let d = Diagnostic::new(
            &codes::NO_TENSOR_DATA,
            "model",
            "its header is not on this machine",
        );
        Failure::usage(d.help("download the file, and give its path"))
    };
    let names = file.shards().iter().filter_map(|s| s.path().file_name());
    let mut words = placement.machine_words();
    words.extend(placement.option_words(compiled.mode, compiled.main_device()));
    if placement.ctx_size.is_none() {
        words.extend(["-c".to_owned(), compiled.caches.n_ctx.to_string()]);
    }
    Ok(Manifest {
        format: FORMAT,
        producer: concat!("tpc ", env!("CARGO_PKG_VERSION")).to_owned(),
        sections: Manifest::section_versions(made.kernels),
        target: TargetRecord {
            executor: match made.target {
                Target::Cpu => CPU,
                Target::Cuda(_) => CUDA,
            }
            .to_owned(),
            stored: stored_versions(),
            host: Vec::new(),
        },
        devices: program
            .graph
            .devices
            .iter()
            .map(|d| d.name.clone())
            .collect(),
        model: ModelRecord {
            name: summary.name.clone(),
            architecture: summary.arch.to_owned(),
            params: compiled.size.params,
            bytes: compiled.size.bytes,
            hash: of_model(file).ok_or_else(missing)?,
            files: names.map(|n| n.to_string_lossy().into_owned()).collect(),
            window: summary.window.map(WindowRecord::from),
        },
        options: OptionRecord {
            split_mode: compiled.mode.name().to_owned(),
            caches: CacheOptions {
                context: compiled.caches.n_ctx,
                type_k: placement.cache_type_k.name().to_owned(),
                type_v: placement.cache_type_v.name().to_owned(),
            },
            // A batch has no more tokens than the context has cells, whatever the option says.
            ubatch: (program.shapes.last())
                .map_or(placement.ubatch_size, |s| s.most.get(Symbol::NTokens)),
            parallel: placement.parallel,
            drafting: match placement.drafting {
                Drafting::None => "none",
                Drafting::Mtp => "draft-mtp",
            }
            .to_owned(),
            words,
        },
        topology: topology.map(Digest::of),
        programs: vec![MAIN.to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_just_compiled_is_not_to_be_compiled_again() {
        let e = ArtefactError::Program {
            entry: "program/main.tprog".to_owned(),
            what: "TPC0271: a step overlaps another".to_owned(),
        };
        let d = refusal(&e, "z.tpc");
        let help = d.help.expect("a cure").to_string();
        assert_eq!(d.code.id, "TPC0390");
        assert!(
            help.contains("a fault of tpc") && !help.contains("compile"),
            "{help}"
        );
        let other = refusal(&ArtefactError::Kernels("none".to_owned()), "z.tpc");
        assert_ne!(other.code.id, "TPC0390");
    }
}
