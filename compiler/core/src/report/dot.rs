//! Draws graphs for Graphviz: one node per instruction, one edge per operand, one cluster per layer and place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tpc_diag::steers;
use tpc_ir::{Graph, Inst, InstData, Op, Output, Place, Unreduced, Value};

use super::describe::{name, op_name};
use super::sharding::{place_name, sharding_report};

/// The first and the last layer to draw.
pub type LayerRange = (u32, u32);

/// The cluster of a node: its layer, and the place of its results if they share one.
type Cluster = (Option<u32>, Option<Place>);

/// Formats a graph in the DOT language, all of it or only `layers` with the instructions that these read.
pub fn render_dot(graph: &Graph, layers: Option<LayerRange>) -> String {
    let drawn = |data: &InstData| match (layers, data.layer) {
        (None, _) => true,
        (Some((first, last)), Some(l)) => (first..=last).contains(&l),
        (Some(_), None) => false,
    };
    let mut out = String::new();
    let _ = writeln!(out, "digraph {} {{", quote(&graph.name));
    out.push_str(
        "  graph [fontname=\"Helvetica\", fontsize=11, compound=true, ranksep=0.3, nodesep=0.2];\n",
    );
    out.push_str(
        "  node [fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded\", height=0.3];\n",
    );
    out.push_str("  edge [fontname=\"Helvetica\", fontsize=9, arrowsize=0.6];\n");
    let mut clusters: BTreeMap<Cluster, Vec<Inst>> = BTreeMap::new();
    let mut outside: BTreeSet<Inst> = BTreeSet::new();
    for (inst, data) in graph.insts().filter(|(_, d)| drawn(d)) {
        let cluster = (data.layer, own_place(graph, data));
        clusters.entry(cluster).or_default().push(inst);
        let sources = data.operands.iter().map(|&v| graph.value(v).def.0);
        outside.extend(sources.filter(|&i| !drawn(graph.inst(i))));
    }
    for inst in &outside {
        node(&mut out, graph, *inst, 1, Some("style=\"rounded,dashed\""));
    }
    let mut open: Option<u32> = None;
    for ((layer, place), insts) in &clusters {
        if open != *layer {
            if open.is_some() {
                out.push_str("  }\n");
            }
            if let Some(l) = layer {
                let _ = writeln!(out, "  subgraph cluster_l{l} {{");
                let _ = writeln!(out, "    label=\"layer {l}\"; style=rounded;");
            }
            open = *layer;
        }
        let depth = 1 + usize::from(layer.is_some());
        let pad = "  ".repeat(depth);
        if let Some(p) = place {
            let id = layer.map_or_else(|| "ends".to_owned(), |l| format!("l{l}"));
            let _ = writeln!(out, "{pad}subgraph cluster_{id}_{p} {{");
            let label = quote(&place_name(graph, *p));
            let _ = writeln!(out, "{pad}  label={label}; style=\"rounded,dotted\";");
        }
        for &inst in insts {
            let look = look(&graph.inst(inst).op);
            node(
                &mut out,
                graph,
                inst,
                depth + usize::from(place.is_some()),
                look,
            );
        }
        if place.is_some() {
            let _ = writeln!(out, "{pad}}}");
        }
    }
    if open.is_some() {
        out.push_str("  }\n");
    }
    for inst in clusters.values().flatten() {
        edges(&mut out, graph, *inst);
    }
    outputs(&mut out, graph, &|v| {
        drawn(graph.inst(graph.value(v).def.0))
    });
    out.push_str("}\n");
    out
}

/// Returns the common place of all results; `None` for a collective.
fn own_place(graph: &Graph, data: &InstData) -> Option<Place> {
    let mut places = data.results.iter().map(|&v| graph.value(v).place);
    let first = places.next()?;
    places.all(|p| p == first).then_some(first)
}

fn node(out: &mut String, graph: &Graph, inst: Inst, depth: usize, look: Option<&str>) {
    let data = graph.inst(inst);
    let mut lines = vec![op_name(&data.op).to_owned()];
    if let Some(&v) = data.results.first() {
        lines.push(name(graph, v));
        let mut ty = graph.value(v).ty.to_string();
        if let Some(state) = state(graph, v) {
            let _ = write!(ty, ", {state}");
        }
        lines.push(ty);
    }
    let label: Vec<String> = lines.iter().map(|l| escape(l)).collect();
    let (pad, label) = ("  ".repeat(depth), label.join("\\n"));
    let _ = write!(out, "{pad}{inst} [label=\"{label}\"");
    if let Some(look) = look {
        let _ = write!(out, ", {look}");
    }
    out.push_str("];\n");
}

/// Describes the sharding of a value on a device group: `axis 1`, `mirrored`, `partial`.
fn state(graph: &Graph, v: Value) -> Option<String> {
    let data = graph.value(v);
    if graph.ranks(data.place) < 2 {
        return None;
    }
    if data.sharding.unreduced != Unreduced::None {
        return Some("partial".to_owned());
    }
    let split = sharding_report(graph, v);
    Some(match split.axis {
        Some(axis) => format!("axis {axis}"),
        None => split.kind.to_owned(),
    })
}

fn look(op: &Op) -> Option<&'static str> {
    Some(match op {
        op if op.is_collective() => {
            "shape=hexagon, style=filled, fillcolor=\"#2a3038\", fontcolor=white"
        }
        Op::Copy(_) => "shape=cds, style=filled, fillcolor=\"#f0d9a8\"",
        Op::Weight(_) => "shape=box, style=filled, fillcolor=\"#e3e8ee\"",
        Op::State(_) => "shape=cylinder, style=filled, fillcolor=\"#dcebe4\"",
        Op::Input(_) => "shape=invhouse, style=solid",
        _ => return None,
    })
}

fn edges(out: &mut String, graph: &Graph, inst: Inst) {
    let data = graph.inst(inst);
    for &v in &data.operands {
        let (from, result) = graph.value(v).def;
        let _ = write!(out, "  {from} -> {inst}");
        let mut attributes = Vec::new();
        if graph.inst(from).results.len() > 1 {
            attributes.push(format!("taillabel=\"{result}\""));
        }
        if data.op.is_transfer() {
            attributes.push("style=bold".to_owned());
        }
        if !attributes.is_empty() {
            let _ = write!(out, " [{}]", attributes.join(", "));
        }
        out.push_str(";\n");
    }
}

fn outputs(out: &mut String, graph: &Graph, drawn: &dyn Fn(Value) -> bool) {
    for (i, o) in graph.outputs.iter().enumerate() {
        let from = graph.value(o.value()).def.0;
        match o {
            Output::Named(name, v) if drawn(*v) => {
                let label = quote(name);
                let _ = writeln!(out, "  out{i} [label={label}, shape=house, style=solid];");
                let _ = writeln!(out, "  {from} -> out{i};");
            }
            Output::State { state, value } if drawn(*state) && drawn(*value) => {
                let state = graph.value(*state).def.0;
                let _ = writeln!(out, "  {from} -> {state} [style=dashed, constraint=false];");
            }
            Output::Named(..) | Output::State { .. } => {}
        }
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", escape(text))
}

/// Escapes text for a quoted label. DOT interprets `\"`, entities and other backslashes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            c if steers(c) => {
                let _ = write!(out, "\\\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        assert_eq!(quote("a\"b"), "\"a\\\"b\"");
        assert_eq!(quote("a\\"), "\"a\\\\\"");
        assert_eq!(quote("\u{202e}x"), "\"\\\\u{202e}x\"");
        assert_eq!(quote("<b>&lt;\n"), "\"<b>&amp;lt;\\\\u{a}\"");
    }
}
