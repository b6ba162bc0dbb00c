//! Regions: the layers of a graph, what comes before the first and what comes after the last.

use std::ops::Range;

use tpc_ir::{Graph, Inst};

/// The instructions of a graph by region, each in program order.
#[derive(Debug)]
pub(super) struct Regions {
    /// Per region, its instructions.
    pub(super) insts: Vec<Vec<Inst>>,
    /// Per instruction, its region.
    pub(super) of: Vec<usize>,
    /// Whether no layer but the last needs something of a later one.
    in_order: bool,
}

/// How many regions graphs have: the layers, and one before and after them. Where layers do not follow one another all is
/// one region.
pub(super) fn count(graphs: [&Graph; 2]) -> usize {
    let layers = graphs
        .iter()
        .flat_map(|g| g.insts().filter_map(|(_, i)| i.layer))
        .max();
    let count = layers.map_or(2, |l| l as usize + 3);
    let in_order = graphs.iter().all(|g| Regions::new(g, count).in_order);
    if in_order { count } else { 1 }
}

impl Regions {
    /// An instruction of no layer belongs to the first region or, if it needs something of a layer, to the last; one that
    /// only moves what it needs belongs where that is. No instruction needs one of a later region.
    pub(super) fn new(graph: &Graph, count: usize) -> Regions {
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
            let own = data.layer.map(|l| l as usize + 1);
            in_order &= own.is_none_or(|own| own >= needed || own + 1 >= last);
            let region = match own {
                Some(own) => own.max(needed).min(last),
                None if needed == 0 || data.op.is_movement() || data.op.is_collective() => needed,
                None => last,
            };
            of.push(region);
            insts[region].push(inst);
        }
        Regions {
            insts,
            of,
            in_order,
        }
    }

    /// The instructions of several regions in program order.
    pub(super) fn together(&self, regions: Range<usize>) -> Vec<Inst> {
        let mut out = self.insts[regions].concat();
        out.sort_unstable();
        out
    }
}
