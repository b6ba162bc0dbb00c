//! The inputs of lints: files, captures, plans and command lines.

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
use tpc_models::{Drafting, GraphResult, LowerOptions, LoweredModel};

/// A model file.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// The file.
    pub file: &'a GgufFile,
    /// The model's graph; `None` if the architecture is unknown or the tensors do not form a model.
    pub model: Option<&'a LoweredModel>,
}

/// Returns a file's graph for lints, with f16 caches and without drafts; `None` if the file has no known graph.
pub fn graph_of(file: &GgufFile) -> Option<LoweredModel> {
    let options = LowerOptions {
        cache_type_k: DType::F16,
        cache_type_v: DType::F16,
        // The smallest context, so that learned positions suffice.
        ctx_size: 1,
        drafting: Drafting::None,
        result: GraphResult::Own,
    };
    tpc_models::lower(file.header(), &options).ok()
}

impl<'a> File<'a> {
    /// Returns the header.
    pub fn header(&self) -> &'a Header {
        self.file.header()
    }

    /// Returns the value of a key.
    pub fn value(&self, key: &str) -> Option<&'a MetaValue> {
        self.header().metadata().value(key)
    }

    /// Returns `general.architecture`, or an empty text.
    pub fn arch(&self) -> &'a str {
        let arch = self.header().metadata().get_str("general.architecture");
        arch.ok().flatten().unwrap_or_default()
    }

    /// Returns an architecture key's full name.
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch())
    }

    /// Returns a key's value if it is a count.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.header().metadata().get_u64(key).ok().flatten()
    }

    /// Returns a key's value if it is a number.
    pub fn float(&self, key: &str) -> Option<f32> {
        self.header().metadata().get_f32(key).ok().flatten()
    }

    /// Returns a key's value if it is a text.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.header().metadata().get_str(key).ok().flatten()
    }

    /// Returns the block tensors with this suffix, such as `ffn_down.weight`, by layer.
    pub fn of_blocks(&self, suffix: &str) -> Vec<(u32, &'a TensorInfo)> {
        let tensors = self.header().tensors().iter();
        let of = tensors.filter_map(|t| {
            let (layer, rest) = TensorName::parse(&t.name).block()?;
            (rest == suffix).then_some((layer, t))
        });
        of.collect()
    }
}

/// Returns a tensor's or op's name, which may include a layer.
pub(crate) fn layer_name(name: &str) -> Name {
    TensorName::parse(name).into()
}

/// A captured graph.
#[derive(Clone, Copy)]
pub struct Capture<'a> {
    /// The records.
    pub records: &'a [Record],
    /// The graph built from them.
    pub captured: &'a CapturedGraph,
    /// The printed graph.
    pub printed: &'a PrintedGraph,
}

impl Capture<'_> {
    /// Returns the graph.
    pub fn ir(&self) -> &Graph {
        &self.captured.graph
    }

    /// Returns the owners of memory that ops read. Reads of an op's own write target do not count.
    pub fn read(&self) -> BTreeSet<usize> {
        let ops = self.records.iter().filter(|r| !r.is_pure_view());
        let roots = ops.flat_map(|r| {
            let roots = r.src.iter().flatten().map(|&s| self.records[s].root);
            roots.filter(|&root| !r.writes() || root != r.root)
        });
        roots.collect()
    }

    /// Returns the owners of memory that ops write.
    pub fn written_memory(&self) -> BTreeSet<usize> {
        let writes = self.records.iter().filter(|r| r.writes() && !r.is_empty());
        writes.map(|r| r.root).collect()
    }

    /// Returns the owners of memory that attention uses as masks.
    pub fn masks(&self) -> BTreeSet<usize> {
        let mask = |r: &Record| {
            let operand = match r.op {
                GgmlOp::SoftMax(_) => 1,
                GgmlOp::FlashAttnExt(_) => 3,
                _ => return None,
            };
            let mask = &self.records[r.src.get(operand).copied().flatten()?];
            // The mask may be a cast of the original.
            let owner = &self.records[mask.root];
            let cast = owner.op.family() == Family::Copy;
            let source = owner.src.first().copied().flatten().filter(|_| cast);
            Some(source.map_or(mask.root, |s| self.records[s].root))
        };
        self.records.iter().filter_map(mask).collect()
    }

    /// Returns the origin of a record's first operand, through views and the ops in `ops`.
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

    fn inst_at(&self, line: usize) -> Option<Inst> {
        let found = self.captured.lines.iter().rposition(|&l| l == line);
        found.map(Inst::new)
    }

    /// Returns the last instruction built from a record.
    pub fn inst_of(&self, record: &Record) -> Option<Inst> {
        self.inst_at(record.line)
    }

    /// Adds the labelled graph excerpt to a diagnostic.
    pub fn with_excerpt(&self, d: Diagnostic, label: &str) -> Diagnostic {
        match d.line.and_then(|line| self.inst_at(line.get() as usize)) {
            Some(inst) => {
                let labels = [(inst, label.to_owned())];
                d.excerpt(Excerpt::of("model", self.printed, &labels))
            }
            None => d,
        }
    }

    /// Sets a diagnostic's line to the record's, and adds the labelled excerpt.
    pub fn at(&self, record: &Record, label: &str, d: Diagnostic) -> Diagnostic {
        self.with_excerpt(d.line(record.line), label)
    }

    /// Returns a record's name, or its line if it is unnamed.
    pub fn name(&self, record: &Record) -> Name {
        if record.name.is_empty() {
            Name::plain(format!("line {}", record.line))
        } else {
            TensorName::parse(&record.name).into()
        }
    }
}

/// A plan.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The requested placement.
    pub placement: &'a Placement,
    /// The plan.
    pub compiled: &'a CompiledModel,
    /// The plan's figures.
    pub report: &'a PlanReport,
    /// Configurations that fit. `None` if the plan fits or advice was not requested.
    pub counsel: Option<&'a Counsel>,
    /// Searches for a lossless configuration (same context, precision and sequences) that is faster by more than the
    /// error of the estimates. `None` if advice was not requested.
    pub faster: Option<&'a dyn Fn() -> Option<Advice>>,
}

impl<'a> Plan<'a> {
    /// Returns the names of the tensors that the model uses.
    pub fn tensors(&self) -> Vec<&'a str> {
        let insts = self.compiled.model.graph.insts();
        let names = insts.filter_map(|(_, i)| match &i.op {
            Op::Weight(w) => Some(w.tensor.as_str()),
            _ => None,
        });
        names.collect()
    }
}

/// A llama.cpp command line with its model.
#[derive(Clone, Copy)]
pub struct Command<'a> {
    /// The command line.
    pub line: &'a CommandLine,
    /// The model file.
    pub file: File<'a>,
    /// The requested placement.
    pub placement: &'a Placement,
    /// The llama.cpp release.
    pub build: &'static Build,
    /// The devices' back ends, if known.
    pub backends: &'a [Option<Backend>],
    /// The equivalent `tpc` command.
    pub equivalent: &'a str,
    /// True if the number of devices was assumed.
    pub assumed: bool,
}

impl Command<'_> {
    /// True if tensors are split among several devices.
    pub fn splits_tensors(&self) -> bool {
        self.asks_for_tensors() && self.placement.devices.len() > 1
    }

    /// True if the line requests a tensor split, even on one device.
    pub fn asks_for_tensors(&self) -> bool {
        let mode = self.line.value(Setting::SplitMode);
        mode == Some(self.build.tensor_split.mode.as_str())
    }

    /// Returns the reasons why a tensor split fails. The first one ends the run.
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

    /// True if the release can split the model's tensors with this placement.
    pub fn would_split_tensors(&self) -> bool {
        self.failures().is_empty()
    }
}
