//! What lints look at.

use tpc_ir::text::Printed;
use tpc_ir::{Graph, Inst};

use crate::arch::Lowered;
use crate::capture::{Captured, Record};
use crate::diag::{Diagnostic, Excerpt};
use crate::gguf::{GgufFile, Header, MetaValue, TensorInfo};
use crate::pipeline::Compiled;
use crate::placement::Placement;
use crate::report::PlanReport;

/// A model file as lints see it.
#[derive(Clone, Copy)]
pub struct File<'a> {
    /// The file.
    pub file: &'a GgufFile,
    /// Its graph, where its architecture is known and its tensors make a model.
    pub model: Option<&'a Lowered>,
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
            let (layer, rest) = block(&t.name)?;
            (rest == suffix).then_some((layer, t))
        });
        of.collect()
    }
}

/// The layer of a tensor's name and the rest of it: 7 and `ffn_down.weight` of `blk.7.ffn_down.weight`.
pub(super) fn block(name: &str) -> Option<(u32, &str)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    Some((layer.parse().ok()?, rest))
}

/// A captured graph as lints see it.
#[derive(Clone, Copy)]
pub struct Port<'a> {
    /// Its records.
    pub records: &'a [Record],
    /// What they mean.
    pub captured: &'a Captured,
    /// The text of its graph.
    pub printed: &'a Printed,
}

impl Port<'_> {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.captured.graph
    }

    /// The last instruction that a record became.
    pub fn inst_of(&self, record: &Record) -> Option<Inst> {
        let lines = &self.captured.lines;
        let found = lines.iter().rposition(|&l| l == record.line);
        found.map(Inst::new)
    }

    /// A diagnostic with the place of a record, and the text of the graph there, labelled.
    pub fn at(&self, record: &Record, label: &str, d: Diagnostic) -> Diagnostic {
        let d = d.line(record.line);
        match self.inst_of(record) {
            Some(inst) => d.excerpt(Excerpt::of(self.printed, &[(inst, label.to_owned())])),
            None => d,
        }
    }

    /// The name of a record, or its line where it has none.
    pub fn name(&self, record: &Record) -> String {
        if record.name.is_empty() {
            format!("line {}", record.line)
        } else {
            record.name.clone()
        }
    }
}

/// A plan as lints see it.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// What was asked for.
    pub placement: &'a Placement,
    /// The plan.
    pub compiled: &'a Compiled,
    /// Its numbers.
    pub report: &'a PlanReport,
}
