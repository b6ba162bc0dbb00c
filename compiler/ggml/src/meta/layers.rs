//! The layers of a graph, by the names of its tensors, and the heads of each.

use std::collections::BTreeMap;

use tpc_gguf::TensorName;

use crate::capture::Record;
use crate::op::GgmlOp;

/// The heads of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heads {
    /// The heads of attention.
    Attention {
        /// Number of query heads.
        q: u64,
        /// Number of key heads, and of value heads.
        kv: u64,
        /// Size of a key.
        k_dim: u64,
        /// Size of a value.
        v_dim: u64,
    },
    /// The heads of a delta rule.
    Recurrent {
        /// Number of key heads.
        k: u64,
        /// Number of value heads.
        v: u64,
        /// Size of a key.
        k_dim: u64,
        /// Size of a value.
        v_dim: u64,
    },
}

/// Returns the layer of a weight of experts, by its name, or `None` for any other weight.
pub fn expert_layer(name: &str) -> Option<u64> {
    let (layer, rest) = TensorName::parse(name).block()?;
    rest.contains("_exps").then_some(u64::from(layer))
}

/// The heads of each layer.
pub(super) struct Layers {
    heads: BTreeMap<usize, Heads>,
}

impl Layers {
    /// Returns the layers of these records. The name of a weight or cache has its layer; an op belongs to the last
    /// layer that it depends on.
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
            // Queries come from the layer's own projection; caches may be another layer's.
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

    /// Returns the heads of a layer.
    pub(super) fn heads(&self, layer: usize) -> Option<Heads> {
        self.heads.get(&layer).copied()
    }
}
