use std::collections::BTreeMap;

use tpc_gguf::TensorName;

use crate::capture::Record;
use crate::op::GgmlOp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heads {
    Attention {
        q: u64,
        kv: u64,
        k_dim: u64,
        v_dim: u64,
    },
    Recurrent {
        k: u64,
        v: u64,
        k_dim: u64,
        v_dim: u64,
    },
}

/// Returns the layer in the name of an expert weight.
pub fn expert_layer(name: &str) -> Option<u64> {
    let (layer, rest) = TensorName::parse(name).block()?;
    rest.contains("_exps").then_some(u64::from(layer))
}

pub(super) struct Layers {
    heads: BTreeMap<usize, Heads>,
}

impl Layers {
    /// Returns the layers of records. A name gives the layer of a weight or cache; an op has the last layer that it
    /// depends on.
    pub(super) fn from_records(records: &[Record]) -> Layers {
        let mut of: Vec<Option<usize>> = Vec::with_capacity(records.len());
        for t in records {
            let name = TensorName::parse(&t.name);
            let own = name.block().or(name.cache());
            let layer = match t.is_leaf() {
                true => own.map(|(n, _)| n as usize),
                false => t.src.iter().flatten().filter_map(|&s| of[s]).max(),
            };
            of.push(layer);
        }
        let mut heads = BTreeMap::new();
        for (i, t) in records.iter().enumerate() {
            let ne = |k: usize| t.src.get(k).copied().flatten().map(|s| records[s].ne());
            // Queries come from the layer's own projection; caches may belong to another layer.
            let from = |k: usize| t.src.get(k).copied().flatten().and_then(|s| of[s]);
            let (found, layer) = match t.op {
                GgmlOp::FlashAttnExt(_) => match (ne(0), ne(1), ne(2)) {
                    (Some(q), Some(k), Some(v)) => (
                        Heads::Attention {
                            q: q[2],
                            kv: k[2],
                            k_dim: k[0],
                            v_dim: v[0],
                        },
                        from(0),
                    ),
                    _ => continue,
                },
                GgmlOp::GatedDeltaNet(_) => match (ne(1), ne(2)) {
                    (Some(k), Some(v)) => (
                        Heads::Recurrent {
                            k: k[1],
                            v: v[1],
                            k_dim: k[0],
                            v_dim: v[0],
                        },
                        of[i],
                    ),
                    _ => continue,
                },
                _ => continue,
            };
            if let Some(layer) = layer {
                heads.entry(layer).or_insert(found);
            }
        }
        Layers { heads }
    }

    pub(super) fn heads(&self, layer: usize) -> Option<Heads> {
        self.heads.get(&layer).copied()
    }
}
