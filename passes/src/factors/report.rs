//! The classes of one layer in a form that a porter can read.

use std::collections::BTreeMap;
use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::{Graph, Op};

use super::{Analysis, Factors};

/// A line per factor of the instructions of `layer`: its size, what forbids splitting it, and every weight and state
/// axis that it runs through.
pub fn describe_layer(
    graph: &Graph,
    factors: &Factors,
    analysis: &Analysis,
    layer: Option<u32>,
) -> String {
    let mut order: Vec<Var> = Vec::new();
    let mut through: BTreeMap<Var, Vec<String>> = BTreeMap::new();
    for (_, inst) in graph.insts().filter(|(_, i)| i.layer == layer) {
        for &v in &inst.results {
            let stored = matches!(inst.op, Op::Weight(_) | Op::State(_));
            for (axis, &var) in factors.axes[v.index()].iter().enumerate() {
                let mut leaves = Vec::new();
                factors.space.leaves(var, &mut leaves);
                for leaf in leaves {
                    if !order.contains(&leaf) {
                        order.push(leaf);
                    }
                    if stored {
                        let at = format!("{}.{axis}", graph.value(v).name);
                        let list = through.entry(leaf).or_default();
                        if !list.contains(&at) {
                            list.push(at);
                        }
                    }
                }
            }
        }
    }
    let mut out = String::new();
    for leaf in order {
        // What never meets a group of devices is no concern of splits.
        let Some(facts) = analysis.leaves.get(&leaf) else {
            continue;
        };
        let size = factors.space.size(leaf);
        let why = if let Some(&inst) = facts.whole.first() {
            let data = graph.inst(inst);
            let name = data
                .results
                .first()
                .map_or("", |&v| graph.value(v).name.as_str());
            format!("whole: {} `{name}` needs it", data.op.name())
        } else if facts.twice.is_some() {
            "whole: it meets itself".to_owned()
        } else if size.as_const().is_none() {
            "whole: known only at run time".to_owned()
        } else {
            "may be split".to_owned()
        };
        let through = through
            .get(&leaf)
            .map_or_else(String::new, |t| format!(": {}", t.join(", ")));
        let _ = writeln!(out, "f{} size {size}, {why}{through}", leaf.index());
    }
    out
}
