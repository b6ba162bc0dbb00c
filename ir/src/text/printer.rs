use std::fmt::{self, Write};

use super::spans::{Span, Spans};
use crate::entity::{Class, Device, Group, Value};
use crate::graph::{CellUnit, Graph, InstData, Output};
use crate::op::quoted;
use crate::place::Place;
use crate::sharding::{Sharding, Unreduced};

/// The text of a graph and the positions of its entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedGraph {
    /// The text.
    pub text: String,
    /// The spans.
    pub spans: Spans,
}

/// Prints a graph, valid or not, for [`parse`](super::parse()).
pub fn print(graph: &Graph) -> PrintedGraph {
    let mut p = Printer::default();
    p.graph(graph);
    PrintedGraph {
        text: p.text,
        spans: p.spans,
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self).text)
    }
}

#[derive(Default)]
pub(crate) struct Printer {
    pub(crate) text: String,
    pub(crate) spans: Spans,
}

impl Printer {
    pub(crate) fn graph(&mut self, graph: &Graph) {
        self.header(graph);
        let mut layer = None;
        for (i, (_, inst)) in graph.insts().enumerate() {
            if i == 0 || inst.layer != layer {
                self.text.push('\n');
            }
            match inst.layer {
                same if same == layer => {}
                Some(n) => self.put(format_args!("layer {n}\n")),
                None => self.text.push_str("layer none\n"),
            }
            layer = inst.layer;
            self.inst(graph, inst);
        }
        self.outputs(&graph.outputs);
    }

    pub(crate) fn put(&mut self, args: fmt::Arguments<'_>) {
        self.text
            .write_fmt(args)
            .expect("invariant: writing to a String does not fail");
    }

    pub(crate) fn end_line(&mut self, start: usize) -> Span {
        let span = Span::new(start, self.text.len());
        self.text.push('\n');
        span
    }

    fn header(&mut self, graph: &Graph) {
        self.text.push_str("tpir 1\n");
        let start = self.text.len();
        self.put(format_args!("graph {}", quoted(&graph.name)));
        self.spans.graph = self.end_line(start);
        if graph.cell_unit != CellUnit::default() {
            self.put(format_args!("cells {}\n", graph.cell_unit.0));
        }
        for (i, device) in graph.devices.iter().enumerate() {
            let start = self.text.len();
            let name = quoted(&device.name);
            self.put(format_args!("device {} {name}", Device::new(i)));
            let span = self.end_line(start);
            self.spans.devices.push(span);
        }
        for (i, group) in graph.groups.iter().enumerate() {
            let start = self.text.len();
            self.put(format_args!("group {} = [", Group::new(i)));
            self.list(group.devices.iter());
            self.text.push(']');
            let span = self.end_line(start);
            self.spans.groups.push(span);
        }
        for (i, class) in graph.classes.iter().enumerate() {
            let start = self.text.len();
            let (name, size) = (quoted(&class.name), class.size);
            self.put(format_args!(
                "class {} {name} size {size} ranges [",
                Class::new(i)
            ));
            self.list(
                class
                    .ranges
                    .iter()
                    .map(|r| format!("{}:{}", r.start, r.len)),
            );
            self.text.push(']');
            let span = self.end_line(start);
            self.spans.classes.push(span);
        }
    }

    pub(crate) fn list(&mut self, items: impl Iterator<Item = impl fmt::Display>) {
        for (i, item) in items.enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            self.put(format_args!("{comma}{item}"));
        }
    }

    fn inst(&mut self, graph: &Graph, inst: &InstData) {
        let start = self.text.len();
        for (i, &value) in inst.results.iter().enumerate() {
            if i > 0 {
                self.text.push_str(", ");
            }
            self.result(graph, value);
        }
        self.put(format_args!(" = {}", inst.op.name()));
        if !inst.operands.is_empty() {
            self.text.push(' ');
            self.list(inst.operands.iter());
        }
        let attrs = inst.op.attrs();
        if !attrs.is_empty() {
            self.text.push_str(" {");
            self.list(
                attrs
                    .iter()
                    .map(|(name, value)| format!("{name} = {value}")),
            );
            self.text.push('}');
        }
        let span = self.end_line(start);
        self.spans.insts.push(span);
    }

    fn result(&mut self, graph: &Graph, value: Value) {
        let start = self.text.len();
        let data = graph.value(value);
        self.put(format_args!("{value}"));
        if !data.name.is_empty() {
            self.put(format_args!(" {}", quoted(&data.name)));
        }
        self.put(format_args!(": {} @", data.ty));
        match data.place {
            Place::Host => self.text.push_str("host"),
            Place::Device(d) => self.put(format_args!("{d}")),
            Place::Group(g) => self.put(format_args!("{g}")),
        }
        self.sharding(&data.sharding);
        self.spans.values.push(Span::new(start, self.text.len()));
    }

    fn sharding(&mut self, sharding: &Sharding) {
        let cover = |p: &mut Self, before: &str, after: &str| {
            if sharding.granule != 1 {
                p.put(format_args!("{before}{}{after}", sharding.granule));
            }
        };
        let mut separator = " split(";
        for (axis, tree) in sharding.axes.iter().enumerate() {
            let Some(tree) = tree else { continue };
            self.put(format_args!("{separator}{axis}: {tree}"));
            separator = ", ";
            if axis == 0 {
                cover(self, " granule ", "");
            }
        }
        if sharding.is_split() {
            self.text.push(')');
        }
        if sharding.axes[0].is_none() {
            cover(self, " granule(", ")");
        }
        match sharding.unreduced {
            Unreduced::None => {}
            Unreduced::Partial => self.text.push_str(" partial"),
            Unreduced::OwnerMasked(class) => self.put(format_args!(" owner_masked({class})")),
        }
    }

    fn outputs(&mut self, outputs: &[Output]) {
        if !outputs.is_empty() {
            self.text.push('\n');
        }
        for output in outputs {
            let start = self.text.len();
            match output {
                Output::Named(name, value) => {
                    self.put(format_args!("output {} = {value}", quoted(name)));
                }
                Output::State { state, value } => {
                    self.put(format_args!("output state {state} = {value}"));
                }
            }
            let span = self.end_line(start);
            self.spans.outputs.push(span);
        }
    }
}
