//! Sections of a graph: prologue, one section per layer, epilogue.
//!
//! `layers/` duplicates this code on purpose: the proof must not share the planner's errors.

use std::collections::BTreeSet;
use std::ops::Range;

use tpc_ir::{Graph, Inst, Output};

#[derive(Debug)]
pub(super) struct Sections {
    insts: Vec<Vec<Inst>>,
    pub(super) of: Vec<usize>,
    /// True if only the last layer may read values of a later one.
    in_order: bool,
}

#[derive(Debug)]
pub(super) struct Cut {
    /// Layer numbers, ascending, with possible gaps.
    layers: Vec<u32>,
    /// True if the layers run in order, so each has its own section. Otherwise one section has the whole graph.
    in_order: bool,
}

impl Cut {
    pub(super) fn new(graphs: [&Graph; 2]) -> Cut {
        let layers = graphs.iter().flat_map(|g| g.insts());
        let layers: BTreeSet<u32> = layers.filter_map(|(_, i)| i.layer).collect();
        let mut cut = Cut {
            layers: layers.into_iter().collect(),
            in_order: true,
        };
        cut.in_order = graphs.iter().all(|g| Sections::new(g, &cut).in_order);
        cut
    }

    pub(super) fn count(&self) -> usize {
        if self.in_order {
            self.layers.len() + 2
        } else {
            1
        }
    }

    fn section(&self, layer: u32) -> usize {
        self.layers.partition_point(|&l| l < layer) + 1
    }
}

impl Sections {
    /// Cuts a graph into sections, so that no section reads values of a later one.
    ///
    /// An instruction without a layer belongs to the first section or, if it reads values of a layer, to the last. A
    /// copy or collective belongs to the section of its operands.
    pub(super) fn new(graph: &Graph, cut: &Cut) -> Sections {
        let count = cut.count();
        let mut of: Vec<usize> = Vec::with_capacity(graph.insts().len());
        let mut insts = vec![Vec::new(); count];
        let last = count - 1;
        let mut in_order = true;
        for (inst, data) in graph.insts() {
            let needed = data
                .operands
                .iter()
                .filter_map(|&v| of.get(graph.value(v).def.0.index()))
                .max()
                .copied()
                .unwrap_or(0);
            let own = data.layer.map(|l| cut.section(l));
            in_order &= own.is_none_or(|own| own >= needed || own + 1 >= last);
            let section = match own {
                Some(own) => own.max(needed).min(last),
                None if needed == 0 || data.op.is_movement() || data.op.is_collective() => needed,
                None => last,
            };
            of.push(section);
            insts[section].push(inst);
        }
        Sections {
            insts,
            of,
            in_order,
        }
    }

    pub(super) fn insts_of(&self, sections: Range<usize>) -> Vec<Inst> {
        let mut out = self.insts[sections].concat();
        out.sort_unstable();
        out
    }

    /// Returns, per value, the last section that uses the value; `usize::MAX` for outputs.
    pub(super) fn last_use(&self, graph: &Graph) -> Vec<usize> {
        let mut out = vec![0; graph.values().len()];
        for (inst, data) in graph.insts() {
            for v in &data.operands {
                let last = &mut out[v.index()];
                *last = self.of[inst.index()].max(*last);
            }
        }
        for output in &graph.outputs {
            out[output.value().index()] = usize::MAX;
            if let Output::State { state, .. } = output {
                out[state.index()] = usize::MAX;
            }
        }
        out
    }
}
