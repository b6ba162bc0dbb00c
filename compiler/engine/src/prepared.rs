use std::sync::Arc;

use tpc_artefact::Artefact;
use tpc_core::foreign_types::ForeignTypes;
use tpc_core::pipeline::{CacheSizes, CompiledModel, ModelSize, SequenceCells, compile};
use tpc_core::placement::{DeviceKind, DeviceList, Placement};
use tpc_core::report::BitsReport;
use tpc_cuda::executor::PrebuiltCode;
use tpc_diag::{Diagnostic, codes};
use tpc_gguf::GgufFile;
use tpc_ir::op::InputKind;
use tpc_ir::program::{Program, Target};
use tpc_ir::{Graph, Op, Output, Symbol, Verified, Window, stage};
use tpc_passes::assemble;
use tpc_runtime::{ExecError, SessionConfig};

use crate::batch_shapes;
use crate::devices::cards;
use crate::error::Error;
use crate::executor::ExecutorKind;

pub(crate) enum Code {
    /// The graphs of a new plan, which the loader lays out for the session's batches. Plan and proof are dropped to
    /// save memory.
    Plan(Box<Verified<stage::Programs>>),
    /// The program of an artefact for fixed batch shapes, verified when the artefact was read.
    Program(Arc<Program>),
}

/// A model with its programs, ready to load.
pub struct PreparedModel {
    pub(crate) code: Code,
    /// Name of the model.
    pub name: String,
    /// Size of the model's file.
    pub size: ModelSize,
    /// Split mode of the plan.
    pub split_mode: String,
    /// Devices of the plan, as for `--devices`.
    pub devices: String,
    /// Types of the K and V caches.
    pub cache_types: [String; 2],
    /// The machine of each device; `None` for one machine.
    pub machines: Option<Vec<usize>>,
    pub(crate) kinds: Vec<DeviceKind>,
    /// The executor of the artefact; `None` for a plan.
    executor: Option<String>,
    pub(crate) prebuilt: PrebuiltCode,
    /// Vocabulary size.
    pub n_vocab: usize,
    /// Maximum number of drafted tokens per step.
    pub n_draft: usize,
    /// True if tokens also attend to later tokens. A batch then consists of whole sequences.
    pub bidirectional: bool,
    /// True if the model computes embeddings instead of logits.
    pub embeds: bool,
    /// Numbers of a token's result.
    pub result_width: usize,
    /// True if the model has recurrent states. Single tokens cannot be removed from them.
    pub recurrent: bool,
    window: Option<Window>,
    caches: CacheSizes,
    /// Maximum tokens per batch.
    pub ubatch: usize,
    /// Maximum tokens per batch with logits; `None` for a plan, whose maximum the loader sets.
    pub outputs: Option<usize>,
}

/// Checks that tpc has kernels for all tensor types of a file.
///
/// # Errors
/// Returns TPC0412 for an unsupported type.
pub fn check_types(file: &GgufFile) -> Result<(), Error> {
    match ForeignTypes::of_file(file.header()) {
        Some(foreign) => Err(Error::findings(vec![foreign.refusal()])),
        None => Ok(()),
    }
}

/// Plans a model and proves the plan.
///
/// # Errors
/// Returns the findings of planning, or an error if the proof fails.
pub fn plan(file: &GgufFile, placement: &Placement) -> Result<CompiledModel, Error> {
    let compiled = compile(file, placement).map_err(Error::from_diagnostics)?;
    match compiled.proof_error() {
        Some(d) => Err(Error::from_diagnostics(vec![d])),
        None => Ok(compiled),
    }
}

/// Returns the machine of each device of a plan.
fn machines_of_plan(placement: &Placement) -> Option<Vec<usize>> {
    let machines = &placement.topology.machines;
    let all = || (0..placement.devices.len()).map(|d| machines.of_device(d));
    let one = machines.is_one() || placement.servers.count() > 0;
    (!one).then(|| all().collect())
}

/// Returns the machine of each device of a device list such as `2*8xH100-SXM`.
fn machines_of_list(list: &str) -> Option<Vec<usize>> {
    let Ok(DeviceList::Cluster(cluster)) = DeviceList::parse(list) else {
        return None;
    };
    let sizes = cluster.groups.iter();
    let sizes = sizes.flat_map(|g| std::iter::repeat_n(g.devices, g.machines));
    let all = sizes.enumerate();
    let all = all.flat_map(|(machine, devices)| std::iter::repeat_n(machine, devices));
    Some(all.collect())
}

fn devices_of(words: &[String]) -> String {
    let at = words.iter().position(|w| w == "--devices");
    let list = at.and_then(|i| words.get(i + 1));
    list.cloned().unwrap_or_default()
}

/// Returns the maximum number of sequences of a program.
pub fn sequences(program: &Program) -> usize {
    let shape = program.shapes.last();
    shape.map_or(1, |s| count(s.most.get(Symbol::NSeqMax)))
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn has_input(graph: &Graph, kind: &InputKind) -> bool {
    let is_it = |op: &Op| matches!(op, Op::Input(i) if i.kind == *kind);
    graph.insts().any(|(_, i)| is_it(&i.op))
}

const LOGITS: &str = "logits";
const EMBEDDINGS: &str = "embeddings";

/// Returns the numbers per token of an output.
fn result(graph: &Graph, name: &str) -> Option<u64> {
    graph.outputs.iter().find_map(|o| match o {
        Output::Named(found, v) if found == name => graph.value(*v).ty.dims[0].as_const(),
        _ => None,
    })
}

fn result_width(graph: &Graph) -> u64 {
    let logits = result(graph, LOGITS);
    logits.or_else(|| result(graph, EMBEDDINGS)).unwrap_or(0)
}

/// Returns the rows of the table of token embeddings, which devices may split.
fn table_rows(graph: &Graph) -> Option<u64> {
    let rows = graph.insts().filter_map(|(_, data)| match &data.op {
        Op::Weight(w) if w.tensor == "token_embd.weight" => {
            let whole = graph.value(*data.results.first()?).ty.dims[1].as_const();
            let parts = w.parts.as_ref().and_then(|parts| parts.get(1));
            let ends = parts.into_iter().flatten().map(|part| part.end());
            ends.max().or(whole)
        }
        _ => None,
    });
    rows.max()
}

fn is_bidirectional(graph: &Graph) -> bool {
    graph
        .insts()
        .any(|(_, i)| matches!(&i.op, Op::Input(i) if i.kind.is_batch_mask()))
}

fn is_recurrent(graph: &Graph) -> bool {
    has_input(graph, &InputKind::StateCells)
}

fn prebuilt_code(artefact: &Artefact) -> PrebuiltCode {
    let mut out = PrebuiltCode::default();
    for module in artefact.kernels() {
        let record = &module.record;
        let code = Arc::clone(&module.code);
        out.add(*record.source.bytes(), &record.target, code);
    }
    out
}

impl PreparedModel {
    /// Returns the number of devices.
    pub const fn n_devices(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the program of an artefact; `None` for a plan.
    pub fn artefact_program(&self) -> Option<&Program> {
        match &self.code {
            Code::Plan(_) => None,
            Code::Program(program) => Some(program),
        }
    }

    /// Compares the bits of the plan's logits with those of one device, and of a token with those in other batches.
    pub fn bits(&self, executor: ExecutorKind) -> BitsReport {
        let programs: &Graph = match &self.code {
            Code::Plan(programs) => programs,
            Code::Program(program) => &program.graph,
        };
        BitsReport::of_programs(programs, executor.target().company())
    }

    /// Returns the cells per sequence for `sequences` sequences. `ctx_size` limits the cells of a plan. An artefact has
    /// fixed cells.
    pub(crate) fn cells(&self, ctx_size: usize, sequences: usize) -> SequenceCells {
        let caches = self.caches_for(ctx_size);
        caches.divide(self.window, self.ubatch as u64, sequences as u64)
    }

    pub(crate) fn session_config(&self, ctx_size: usize, sequences: usize) -> SessionConfig {
        let caches = self.caches_for(ctx_size);
        let states = match &self.code {
            Code::Plan(_) => sequences,
            Code::Program(program) => self::sequences(program),
        };
        let cells = self.cells(ctx_size, sequences);
        batch_shapes::config(
            [caches.n_ctx, caches.n_ctx_swa].map(count),
            self.window,
            states,
        )
        .with_parts(count(cells.parts), count(cells.swa))
    }

    fn caches_for(&self, ctx_size: usize) -> CacheSizes {
        let used = |planned: u64| match self.code {
            Code::Plan(_) => planned.min(ctx_size as u64),
            Code::Program(_) => planned,
        };
        CacheSizes {
            n_ctx: used(self.caches.n_ctx),
            n_ctx_swa: used(self.caches.n_ctx_swa),
        }
    }

    /// Checks that an artefact is for this executor, because executors store weights differently.
    ///
    /// # Errors
    /// Returns TPC0401 for another executor.
    pub(crate) fn check_executor(&self, executor: ExecutorKind) -> Result<(), Error> {
        let (Some(made), Some(asked)) = (&self.executor, executor.in_artefacts()) else {
            return Ok(());
        };
        if made == asked {
            return Ok(());
        }
        let message = format!(
            "the artefact is for {made}; the {} executor stores weights differently",
            executor.name()
        );
        let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--executor", message);
        Err(Error::usage(d.help(format!(
            "leave out the option, or compile the model with --target {asked}"
        ))))
    }

    /// Plans a model and prepares it.
    ///
    /// # Errors
    /// Returns the findings of [`plan`].
    pub fn of_file(file: &GgufFile, placement: &Placement) -> Result<PreparedModel, Error> {
        Ok(PreparedModel::of_plan(plan(file, placement)?, placement))
    }

    /// Prepares a plan.
    pub fn of_plan(compiled: CompiledModel, placement: &Placement) -> PreparedModel {
        let summary = &compiled.model.summary;
        PreparedModel {
            name: summary.name.clone(),
            size: compiled.size,
            split_mode: compiled.mode.name().to_owned(),
            devices: placement.device_words(),
            cache_types: [placement.cache_type_k, placement.cache_type_v].map(|t| t.to_string()),
            machines: machines_of_plan(placement),
            kinds: placement.devices.iter().map(|d| d.kind).collect(),
            executor: None,
            prebuilt: PrebuiltCode::default(),
            n_vocab: count(summary.n_vocab),
            n_draft: count(summary.n_draft),
            bidirectional: is_bidirectional(&compiled.model.graph),
            embeds: result(&compiled.model.graph, EMBEDDINGS).is_some(),
            result_width: count(result_width(&compiled.model.graph)),
            recurrent: is_recurrent(&compiled.model.graph),
            window: summary.window,
            caches: compiled.caches,
            ubatch: count(placement.ubatch_size),
            outputs: None,
            code: Code::Plan(Box::new(compiled.programs)),
        }
    }

    /// Prepares an artefact for `devices`, or else for its manifest's devices.
    pub fn of_artefact(artefact: &Artefact, devices: Option<&str>) -> PreparedModel {
        let (manifest, program) = (artefact.manifest(), artefact.program());
        let planned = devices_of(&manifest.options.words);
        let most = program.shapes.last().map(|s| s.most).unwrap_or_default();
        let drafts =
            |o: &&Output| matches!(o, Output::Named(name, _) if name.starts_with("draft_logits"));
        let vocabulary = result(&program.graph, LOGITS).or_else(|| table_rows(&program.graph));
        PreparedModel {
            name: manifest.model.name.clone(),
            size: ModelSize {
                params: manifest.model.params,
                bytes: manifest.model.bytes,
            },
            split_mode: manifest.options.split_mode.clone(),
            cache_types: [
                &manifest.options.caches.type_k,
                &manifest.options.caches.type_v,
            ]
            .map(String::clone),
            machines: machines_of_list(&planned),
            kinds: cards::kinds(devices.unwrap_or(&planned), manifest.devices.len()),
            devices: planned,
            executor: Some(manifest.target.executor.clone()),
            prebuilt: prebuilt_code(artefact),
            n_vocab: count(vocabulary.unwrap_or(0)),
            n_draft: program.graph.outputs.iter().filter(drafts).count(),
            bidirectional: is_bidirectional(&program.graph),
            embeds: result(&program.graph, EMBEDDINGS).is_some(),
            result_width: count(result_width(&program.graph)),
            recurrent: is_recurrent(&program.graph),
            window: manifest.model.window.map(Window::from),
            caches: CacheSizes {
                n_ctx: most.get(Symbol::NCtx),
                n_ctx_swa: most.get(Symbol::NCtxSwa),
            },
            ubatch: count(most.get(Symbol::NTokens)),
            outputs: Some(count(most.get(Symbol::NOutputs))),
            code: Code::Program(Arc::new(program.clone())),
        }
    }
}

/// Lays out a program for batches of `tokens` tokens, at most `outputs` with logits, without verifying it.
pub(crate) fn lay_out(
    programs: &Verified<stage::Programs>,
    config: &SessionConfig,
    [tokens, outputs]: [usize; 2],
    target: &dyn Target,
) -> Result<Program, Error> {
    let config = &config.in_units(programs.cell_unit);
    let shapes = batch_shapes::shapes(config, tokens.min(config.n_ctx), outputs);
    assemble(programs, &shapes, target).map_err(|e| {
        Error::from(ExecError::Size {
            what: e.to_string(),
        })
    })
}

/// Minimum number of tokens with logits per batch of an artefact. Artefacts for more sequences allow one per sequence.
const OUTPUTS: usize = 16;

/// Lays out a program for every batch within the placement's limits.
///
/// # Errors
/// Returns an error if a size overflows.
pub fn program(
    compiled: &CompiledModel,
    placement: &Placement,
    target: &dyn Target,
) -> Result<Program, Error> {
    let (tokens, sequences) = (count(placement.ubatch_size), count(placement.parallel));
    let most = compiled.memory_batch();
    let cells = [Symbol::NCtx, Symbol::NCtxSwa].map(|s| count(most.get(s)));
    let config = batch_shapes::config(cells, compiled.model.summary.window, sequences);
    // The whole text is one batch, and every token's result counts.
    let outputs = match is_bidirectional(&compiled.model.graph) {
        true => tokens,
        false => OUTPUTS.max(sequences).min(tokens),
    };
    lay_out(&compiled.programs, &config, [tokens, outputs], target)
}
