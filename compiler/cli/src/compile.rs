//! `tpc compile`: plans a model and writes an artefact that runs without planning.

use std::fs;
use std::path::{Path, PathBuf};

use tpc_artefact::{Artefact, ArtefactError, rule};
use tpc_core::format::bytes;
use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::DType;

use crate::args::{Defaults, PlacementArgs};
use crate::execution;
use crate::input::{self, HubArgs, Need};
use crate::kernels::{self, Target};
use crate::output::{self, Failure};
use tpc_engine::artefact::{CPU, CUDA, Content, manifest};
use tpc_engine::{self as engine, ExecutorKind, check_types};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file, any shard of one, or a name of `tpc models`; the header suffices. `-hf USER/NAME[:QUANT]` names a
    /// repository; a missing model is downloaded.
    model: PathBuf,
    #[command(flatten)]
    hub: HubArgs,
    /// Artefact to write.
    #[arg(short, long, value_name = "OUT.tpc")]
    output: PathBuf,
    /// Write a make rule that lists every input file as a prerequisite.
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// Target: cpu, cuda, or kinds of cards such as cuda:sm_90a,sm_120f [default: cuda for cards such as cuda:0 or 3090,
    /// else cpu].
    #[arg(long, value_name = "TARGET", value_parser = kernels::target)]
    target: Option<Target>,
    /// Print each kernel's registers, spills, shared memory, code size and instructions per weight.
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    placement: PlacementArgs,
}

impl Args {
    /// Replaces the name of a model by its file or address.
    pub(super) fn resolve(&mut self) -> Result<(), Failure> {
        self.hub.resolve(&mut self.model, Need::Data)
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (target, executor) = target(args);
    let cure = "`--target cuda` or devices such as cuda:0 compile for cards; `--devices cpu` or `cpu,cpu` \
                compiles for the CPU";
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
    let content = Content {
        executor: match target {
            Target::Cpu => CPU,
            Target::Cuda(_) => CUDA,
        },
        kernels: !modules.is_empty(),
        program: &program,
    };
    let manifest = manifest(&file, &compiled, &placement, content, topology.as_deref())?;
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

/// Builds the diagnostic of a compiled artefact that fails verification, which is a bug in tpc. The artefact is not
/// written.
fn refusal(e: &ArtefactError, name: &str) -> Diagnostic {
    match e {
        ArtefactError::Program { what, .. } => {
            let d = Diagnostic::new(&codes::UNVERIFIED_PLAN, name, what.clone());
            d.help(
                "this is a bug in tpc, and the artefact was not written: please report it; meanwhile `tpc run --executor reference` runs the model",
            )
        }
        e => e.diagnostic(name),
    }
}

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
            let message = format!("the output {name} is also an input");
            let d = Diagnostic::new(&codes::COMMAND_LINE, name, message);
            return Err(Failure::usage(d.help("give another output: -o OUT.tpc")));
        }
    }
    if args.depfile.as_ref() == Some(&args.output) {
        let message = "-o and --depfile name the same file";
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--depfile", message);
        return Err(Failure::usage(
            d.help("give two names, such as -o m.tpc --depfile m.d"),
        ));
    }
    Ok(())
}

fn dependencies(args: &Args, file: &GgufFile) -> Vec<String> {
    let shards = file.shards().iter().map(|s| s.path().display().to_string());
    let topology = args.placement.topology_path();
    shards
        .chain(topology.map(|p| p.display().to_string()))
        .collect()
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
            help.contains("a bug in tpc") && !help.contains("compile"),
            "{help}"
        );
        let other = refusal(&ArtefactError::Kernels("none".to_owned()), "z.tpc");
        assert_ne!(other.code.id, "TPC0390");
    }
}
