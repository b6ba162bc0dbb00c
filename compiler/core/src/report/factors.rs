//! The output of `dump --stage factors`: factors of each distinct layer, to port or check an architecture.

use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::{Graph, RANK, Value};
use tpc_passes::factors::{FactorPosition, activations};
use tpc_passes::plan::{FactorFacts, LayerGroup, facts};

use super::describe;
use crate::format::span;
use crate::pipeline::CompiledModel;

const SHOWN: usize = 3;

/// Formats the factors of every group of equal layers.
pub fn render_factors(compiled: &CompiledModel) -> String {
    let graph = &compiled.planned.graph;
    let groups = &compiled.planned.layer_groups;
    let mut out = String::from(
        "A factor is a part of an axis that no op cuts. An axis is a product of factors, the major one first, or a sum\n\
         of such products, its segments. A split of a factor is a split of every axis that it runs through.\n",
    );
    let first_layer = groups.iter().position(|r| r.layer.is_some());
    for (i, group) in groups.iter().enumerate() {
        let alike = |r: &&LayerGroup| r.signature == group.signature && r.layer.is_some();
        let layers: Vec<u32> = groups
            .iter()
            .filter(alike)
            .filter_map(|r| r.layer)
            .collect();
        let title = match group.layer {
            None if first_layer.is_none() => "the graph, without recognised layers".to_owned(),
            None if Some(i) < first_layer => "before the first layer".to_owned(),
            None => "after the last layer".to_owned(),
            Some(l) if layers.first() != Some(&l) => continue,
            Some(l) if layers.len() == 1 => format!("layer {l}"),
            Some(l) => format!("layers {} are equal; layer {l}", span(&layers)),
        };
        let _ = writeln!(out, "\n{title}");
        layer(compiled, graph, group, &mut out);
    }
    out
}

fn layer(compiled: &CompiledModel, graph: &Graph, group: &LayerGroup, out: &mut String) {
    let planned = &compiled.planned;
    let tensors: Vec<Value> = group
        .insts
        .iter()
        .map(|&i| graph.inst(i))
        .filter(|d| d.op.is_stored())
        .map(|d| d.results[0])
        .collect();
    let _ = writeln!(out, "  tensors");
    let wide = tensors
        .iter()
        .map(|&v| describe::name(graph, v).chars().count())
        .max();
    let wide = wide.unwrap_or(0);
    for &v in &tensors {
        let ty = &graph.value(v).ty;
        let name = describe::name(graph, v);
        let axes: Vec<String> = (0..RANK)
            .filter(|&a| !ty.dims[a].is_one())
            .map(|a| {
                let factors =
                    describe::axis(&planned.factors, &planned.analysis.summands[v.index()], a);
                match factors.contains(['·', '+']) {
                    true => format!("axis {a}: {} = {factors}", ty.dims[a]),
                    false => format!("axis {a}: {factors}"),
                }
            })
            .collect();
        let _ = writeln!(
            out,
            "    {name:wide$}  {:6}  {}",
            ty.dtype.name(),
            axes.join(", ")
        );
    }
    let (mut open, mut closed, mut passing) = (Vec::new(), Vec::new(), Vec::new());
    for &leaf in &group.leaves {
        let Some(f) = facts(planned, leaf) else {
            continue;
        };
        match (&f.forbidden, f.through.is_empty()) {
            (None, _) => open.push(f),
            (Some(_), false) => closed.push(f),
            (Some(_), true) => passing.push(f),
        }
    }
    for (title, list) in [
        ("factors that may be split", open),
        ("factors that stay whole", closed),
        ("factors of no weight or state", passing),
    ] {
        if list.is_empty() {
            continue;
        }
        let _ = writeln!(out, "  {title}");
        for f in &list {
            factor(compiled, graph, f, &tensors, out);
        }
    }
}

fn factor(
    compiled: &CompiledModel,
    graph: &Graph,
    f: &FactorFacts,
    here: &[Value],
    out: &mut String,
) {
    let kind = f.kind.map_or_else(String::new, |k| format!(" ({k})"));
    let _ = write!(out, "    f{}: {}{kind}", f.leaf.index(), f.size);
    let _ = match &f.forbidden {
        None => writeln!(out, "; {}", describe::granule(&f.granules)),
        Some(why) => writeln!(out, "; {}", describe::forbidden(graph, f, why)),
    };
    let (near, far): (Vec<&FactorPosition>, Vec<&FactorPosition>) =
        f.through.iter().partition(|t| here.contains(&t.value));
    for t in near {
        let _ = writeln!(
            out,
            "        {} {}",
            describe::name(graph, t.value),
            describe::place(t)
        );
    }
    if !far.is_empty() {
        let axes = if far.len() == 1 { "axis" } else { "axes" };
        let _ = writeln!(
            out,
            "        {} {axes} of tensors of other layers",
            far.len()
        );
    }
    let _ = writeln!(out, "        {}", passes(compiled, graph, f.leaf));
}

fn passes(compiled: &CompiledModel, graph: &Graph, leaf: Var) -> String {
    let all = activations(graph, &compiled.planned.analysis, leaf);
    let mut names: Vec<String> = Vec::new();
    for &v in &all {
        let name = describe::name(graph, v);
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() > SHOWN {
            names[SHOWN] = "…".to_owned();
            break;
        }
    }
    let names = names.join(", ");
    match all.len() {
        0 => "no activation".to_owned(),
        1 => format!("1 activation: {names}"),
        n => format!("{n} activations: {names}"),
    }
}
