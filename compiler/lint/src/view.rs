//! The things that lints look at: files, captures, plans and command lines.

use std::collections::BTreeSet;

use tpc_ir::text::PrintedGraph;
use tpc_ir::{DType, Graph, Inst, Op};

use tpc_core::advice::{Advice, Counsel};
use tpc_core::pipeline::{CompiledModel, is_on_host};
use tpc_core::placement::Placement;
use tpc_core::report::PlanReport;
use tpc_diag::{Diagnostic, Excerpt, Name};
use tpc_ggml::capture::{CapturedGraph, Record};
use tpc_ggml::engines::{Backend, Build, Devices, Geometry, Prediction, SplitUse};
use tpc_ggml::llama_cpp::{CommandLine, Setting};
use tpc_ggml::op::{Family, GgmlOp, OpKind};
use tpc_gguf::{GgufFile, Header, MetaValue, TensorInfo, TensorName};
use tpc_models::{Drafting, LowerOptions, LoweredModel};

/// A model file as lints see it.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// The file.
    pub file: &'a GgufFile,
    /// Its graph, where its architecture is known and its tensors make a model.
    pub model: Option<&'a LoweredModel>,
}

/// The graph of a file as its lints see it: of the model alone, with plain caches; `None` where there is none.
pub fn graph_of(file: &GgufFile) -> Option<LoweredModel> {
    let options = LowerOptions {
        cache_type_k: DType::F16,
        cache_type_v: DType::F16,
        // Learned positions suffice for it, however few there are.
        ctx_size: 1,
        drafting: Drafting::None,
    };
    tpc_models::lower(file.header(), &options).ok()
}

impl<'a> File<'a> {
    /// The header.
    pub fn header(&self) -> &'a Header {
        self.file.header()
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&'a MetaValue> {
        self.header().metadata().value(key)
    }

    /// `general.architecture`, or nothing.
    pub fn arch(&self) -> &'a str {
        let arch = self.header().metadata().get_str("general.architecture");
        arch.ok().flatten().unwrap_or_default()
    }

    /// The name of a key of the architecture.
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch())
    }

    /// A count, where the key is there and holds one.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.header().metadata().get_u64(key).ok().flatten()
    }

    /// A number, where the key is there and holds one.
    pub fn float(&self, key: &str) -> Option<f32> {
        self.header().metadata().get_f32(key).ok().flatten()
    }

    /// A text, where the key is there and holds one.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.header().metadata().get_str(key).ok().flatten()
    }

    /// The tensors of the blocks whose name ends so, such as `ffn_down.weight`, with their layers.
    pub fn of_blocks(&self, suffix: &str) -> Vec<(u32, &'a TensorInfo)> {
        let tensors = self.header().tensors().iter();
        let of = tensors.filter_map(|t| {
            let (layer, rest) = TensorName::parse(&t.name).block()?;
            (rest == suffix).then_some((layer, t))
        });
        of.collect()
    }
}

/// The name of a tensor or an op, which may have a layer.
pub(crate) fn layer_name(name: &str) -> Name {
    TensorName::parse(name).into()
}

/// A captured graph as lints see it.
#[derive(Clone, Copy)]
pub struct Capture<'a> {
    /// Its records.
    pub records: &'a [Record],
    /// The graph that they describe.
    pub captured: &'a CapturedGraph,
    /// The text of its graph.
    pub printed: &'a PrintedGraph,
}

impl Capture<'_> {
    /// The graph.
    pub fn ir(&self) -> &Graph {
        &self.captured.graph
    }

    /// The owners of memory that some op reads; what a write goes to is not read by it.
    pub fn read(&self) -> BTreeSet<usize> {
        let ops = self.records.iter().filter(|r| !r.is_pure_view());
        let roots = ops.flat_map(|r| {
            let roots = r.src.iter().flatten().map(|&s| self.records[s].root);
            roots.filter(|&root| !r.writes() || root != r.root)
        });
        roots.collect()
    }

    /// The owners of memory that some op writes to.
    pub fn written_memory(&self) -> BTreeSet<usize> {
        let writes = self.records.iter().filter(|r| r.writes() && !r.is_empty());
        writes.map(|r| r.root).collect()
    }

    /// The owners of memory that attention takes as masks.
    pub fn masks(&self) -> BTreeSet<usize> {
        let mask = |r: &Record| {
            let operand = match r.op {
                GgmlOp::SoftMax(_) => 1,
                GgmlOp::FlashAttnExt(_) => 3,
                _ => return None,
            };
            let mask = &self.records[r.src.get(operand).copied().flatten()?];
            // Behind a cast, too.
            let owner = &self.records[mask.root];
            let cast = owner.op.family() == Family::Copy;
            let source = owner.src.first().copied().flatten().filter(|_| cast);
            Some(source.map_or(mask.root, |s| self.records[s].root))
        };
        self.records.iter().filter_map(mask).collect()
    }

    /// The origin of a record's first operand: the record behind its views and these ops.
    pub fn origin_of<'b>(&'b self, record: &'b Record, ops: &[OpKind]) -> Option<&'b Record> {
        let mut at = record;
        loop {
            let source = &self.records[at.src.first().copied().flatten()?];
            at = &self.records[source.root];
            if !at.op.kind().is_some_and(|op| ops.contains(&op)) {
                return Some(at);
            }
        }
    }

    /// The last instruction that a line of the capture became.
    fn inst_at(&self, line: usize) -> Option<Inst> {
        let found = self.captured.lines.iter().rposition(|&l| l == line);
        found.map(Inst::new)
    }

    /// The last instruction that a record became.
    pub fn inst_of(&self, record: &Record) -> Option<Inst> {
        self.inst_at(record.line)
    }

    /// Adds the graph's text to a diagnostic about a line of the capture, with a label.
    pub fn with_excerpt(&self, d: Diagnostic, label: &str) -> Diagnostic {
        match d.line.and_then(|line| self.inst_at(line.get() as usize)) {
            Some(inst) => {
                let labels = [(inst, label.to_owned())];
                d.excerpt(Excerpt::of("model", self.printed, &labels))
            }
            None => d,
        }
    }

    /// The same of a record.
    pub fn at(&self, record: &Record, label: &str, d: Diagnostic) -> Diagnostic {
        self.with_excerpt(d.line(record.line), label)
    }

    /// The name of a record, or its line where it has none.
    pub fn name(&self, record: &Record) -> Name {
        if record.name.is_empty() {
            Name::plain(format!("line {}", record.line))
        } else {
            TensorName::parse(&record.name).into()
        }
    }
}

/// A plan as lints see it.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The placement that the user asked for.
    pub placement: &'a Placement,
    /// The plan.
    pub compiled: &'a CompiledModel,
    /// Its numbers.
    pub report: &'a PlanReport,
    /// What to do where the model does not fit; `None` where it does, or nobody waits for the search.
    pub counsel: Option<&'a Counsel>,
    /// The search for a configuration that gives up nothing and is faster by more than estimates err; `None` where nobody
    /// waits for it.
    pub faster: Option<&'a dyn Fn() -> Option<Advice>>,
}

impl<'a> Plan<'a> {
    /// The names of the tensors that the model uses.
    pub fn tensors(&self) -> Vec<&'a str> {
        let insts = self.compiled.model.graph.insts();
        let names = insts.filter_map(|(_, i)| match &i.op {
            Op::Weight(w) => Some(w.tensor.as_str()),
            _ => None,
        });
        names.collect()
    }
}

/// A command line of llama.cpp for a model, as lints see it.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// The line.
    pub line: &'a CommandLine,
    /// The model's file.
    pub file: File<'a>,
    /// The placement that the line asks for, in tpc's terms.
    pub placement: &'a Placement,
    /// The release that the line is for.
    pub build: &'static Build,
    /// The back end of each device, where it is known.
    pub backends: &'a [Option<Backend>],
    /// The equivalent `tpc` command.
    pub equivalent: &'a str,
    /// Whether nothing says how many devices there are.
    pub assumed: bool,
}

impl Command<'_> {
    /// Whether tensors are to be split among several devices.
    pub fn splits_tensors(&self) -> bool {
        self.asks_for_tensors() && self.placement.devices.len() > 1
    }

    /// Whether the line asks for a split of tensors, be it on one device.
    pub fn asks_for_tensors(&self) -> bool {
        let mode = self.line.value(Setting::SplitMode);
        mode == Some(self.build.tensor_split.mode.as_str())
    }

    /// The reasons why a split of tensors fails, the one that ends the run first.
    pub fn failures(&self) -> Vec<Prediction> {
        let graph = self.file.model.map(|m| &m.graph);
        let geometry = Geometry::new(self.file.header(), graph);
        let placement = self.placement;
        let on_host = |name: &str| is_on_host(placement, name);
        let of = SplitUse {
            devices: Devices {
                count: placement.devices.len(),
                proportions: placement.tensor_split.as_deref().unwrap_or_default(),
            },
            backends: self.backends,
            caches_on_host: placement.kv_on_host,
            on_host: &on_host,
        };
        self.build.predict(&geometry, &of)
    }

    /// Whether the release would split the model's tensors as the line places them.
    pub fn would_split_tensors(&self) -> bool {
        self.failures().is_empty()
    }
}
