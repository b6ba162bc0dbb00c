use std::collections::BTreeMap;

use tpc_ir::{Graph, InstData, Op, Value};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerHeads {
    /// Elements per key head of a recurrence; `None` for attention.
    pub(super) recurrent: Option<u64>,
    /// Key and value heads of the recurrence.
    pub(super) recurrent_heads: [u64; 2],
    pub(super) has_window: bool,
    pub(super) heads: u64,
    pub(super) group: u64,
    /// Elements per key and value head.
    pub(super) head_size: [u64; 2],
    /// The layer whose cache this layer reads.
    pub(super) cache_of: u32,
}

impl LayerHeads {
    /// Returns the kind of layer. The rounding rotates among layers of one kind.
    const fn kind(&self) -> (bool, bool) {
        (self.recurrent.is_some(), self.has_window)
    }
}

/// The head sizes of all layers, and the row sizes of weights.
#[derive(Clone, Debug, Default)]
pub struct HeadSizes {
    layers: BTreeMap<u32, LayerHeads>,
    /// Elements per block and per row of each weight, by name.
    rows: BTreeMap<String, [u64; 2]>,
}

impl HeadSizes {
    /// Reads the sizes from a graph.
    pub fn of_graph(graph: &Graph) -> HeadSizes {
        let mut out = HeadSizes::default();
        let dims = |v: Value, a: usize| graph.value(v).ty.dims[a].as_const().unwrap_or(1);
        for (_, data) in graph.insts() {
            if let Op::Weight(w) = &data.op {
                let v = data.results[0];
                let block = graph.value(v).ty.dtype.block_len();
                out.rows.insert(w.tensor.clone(), [block, dims(v, 0)]);
            }
            let Some(layer) = data.layer else { continue };
            let sizes = out.layers.entry(layer).or_insert(LayerHeads {
                cache_of: layer,
                ..LayerHeads::default()
            });
            match &data.op {
                Op::FlashAttn(_) => attention(graph, data, sizes),
                Op::GatedDeltaNet(_) => {
                    let [k, v] = [data.operands[1], data.operands[2]];
                    sizes.recurrent = Some(dims(k, 0));
                    sizes.recurrent_heads = [dims(k, 1), dims(v, 1)];
                }
                Op::SsmConv(_) | Op::SsmScan(_) if sizes.recurrent.is_none() => {
                    sizes.recurrent = Some(1);
                }
                _ => {}
            }
        }
        out
    }

    pub(super) fn layer(&self, layer: u32) -> LayerHeads {
        self.layers.get(&layer).copied().unwrap_or_default()
    }

    /// Returns the number of earlier layers of this layer's kind.
    pub(super) fn turn(&self, layer: u32) -> usize {
        let kind = self.layer(layer).kind();
        let before = self.layers.range(..layer);
        before.filter(|(_, g)| g.kind() == kind).count()
    }

    /// Returns the elements per block and per row of the first of `tensors` that the layer has, or `[1, 0]`.
    pub(super) fn rows(&self, layer: u32, tensors: &[&str]) -> [u64; 2] {
        let name = |t: &&str| self.rows.get(&format!("blk.{layer}.{t}")).copied();
        tensors.iter().find_map(name).unwrap_or([1, 0])
    }
}

fn attention(graph: &Graph, data: &InstData, sizes: &mut LayerHeads) {
    let dims = |v: Value, a: usize| graph.value(v).ty.dims[a].as_const().unwrap_or(1);
    let [q, k, v] = [0, 1, 2].map(|i| data.operands[i]);
    sizes.heads = dims(q, 2);
    sizes.group = (dims(q, 2) / dims(k, 2).max(1)).max(1);
    sizes.head_size = [dims(k, 0), dims(v, 0)];
    let mut cache = k;
    loop {
        let def = graph.inst(graph.value(cache).def.0);
        match (&def.op, def.operands.first()) {
            (Op::State(_), _) => {
                let cells = &graph.value(cache).ty;
                sizes.has_window = (cells.dims.iter()).any(|d| d.mentions(tpc_ir::Symbol::NCtxSwa));
                break;
            }
            (Op::SetRows(_), Some(&next)) => {
                sizes.cache_of = def.layer.unwrap_or(sizes.cache_of);
                cache = next;
            }
            (Op::Reshape(_) | Op::Permute(_) | Op::Slice(_), Some(&next)) => cache = next,
            _ => break,
        }
    }
}
