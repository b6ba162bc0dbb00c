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
}

/// How many regions graphs of so many layers have: the layers, and one before and after them.
pub(super) fn count(graphs: [&Graph; 2]) -> usize {
    let layers = graphs
        .iter()
        .flat_map(|g| g.insts().filter_map(|(_, i)| i.layer))
        .max();
    layers.map_or(2, |l| l as usize + 3)
}

impl Regions {
    /// An instruction of no layer belongs to the first region or, if it needs something of a layer, to the last. No
    /// instruction needs one of a later region.
    pub(super) fn new(graph: &Graph, count: usize) -> Regions {
        let mut of: Vec<usize> = Vec::with_capacity(graph.insts().len());
        let mut insts = vec![Vec::new(); count];
        for (inst, data) in graph.insts() {
            let needed = data
                .operands
                .iter()
                .filter_map(|&v| of.get(graph.value(v).def.0.index()))
                .max()
                .copied()
                .unwrap_or(0);
            let region = match data.layer {
                Some(l) => (l as usize + 1).max(needed),
                None if needed == 0 => 0,
                None => count - 1,
            };
            of.push(region);
            insts[region].push(inst);
        }
        Regions { insts, of }
    }

    /// The instructions of several regions in program order.
    pub(super) fn together(&self, regions: Range<usize>) -> Vec<Inst> {
        let mut out = self.insts[regions].concat();
        out.sort_unstable();
        out
    }
}
