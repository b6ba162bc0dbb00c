//! The model dimensions that determine an engine's tensor split.

use super::FeedForward;
use tpc_gguf::{Header, TensorInfo, TensorName};
use tpc_ir::{DType, Graph, Op, Symbol, Value};

/// A model's geometry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Geometry {
    /// The architecture's name.
    pub arch: String,
    /// Attention layers.
    pub attention: Vec<Attention>,
    /// Layers of linear attention, or of another recurrence with a state per head.
    pub linear: Vec<LinearAttention>,
    /// True if layers keep convolution states (LFM 2).
    pub has_short_convolutions: bool,
    /// Matrices with split rows: each device computes a part of every sum.
    pub contracted: Vec<ContractedMatrix>,
    /// Tensors that determine the split of attention and linear attention, without norms and output matrices.
    pub projections: Vec<String>,
    /// Feed-forward layers.
    pub feed_forward: Vec<FeedForward>,
    /// Biases of matrices with split rows: (bias, matrix).
    pub output_biases: Vec<(String, String)>,
    /// Query and key norms and output matrices, which are split like the heads: (layer, name).
    pub follow_heads: Vec<(u32, String)>,
    /// Query and key norms with a row per head.
    pub head_rows: Vec<HeadRows>,
    /// True if token embeddings are read from the output matrix, because the file has no embedding matrix.
    pub reads_output: bool,
}

/// A norm with a row per head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadRows {
    /// The norm's name.
    pub tensor: String,
    /// The layer.
    pub layer: u32,
    /// The number of rows.
    pub rows: u64,
    /// True if the norm applies to keys.
    pub of_keys: bool,
}

/// An attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// The layer.
    pub layer: u32,
    /// The number of query heads.
    pub heads: u64,
    /// The number of KV heads.
    pub kv_heads: u64,
    /// Elements per key.
    pub key: u64,
    /// Elements per value.
    pub value: u64,
    /// True if a norm of one row applies to each head's keys or values.
    pub normed: bool,
    /// True if keys have RoPE.
    pub rotated: bool,
    /// True if queries, keys and values are fused.
    pub fused: bool,
    /// True if queries have a gate of the same size.
    pub gated: bool,
    /// True if keys and values are cached.
    pub cached: bool,
    /// True if heads have ALiBi slopes.
    pub slopes: bool,
    /// True if the layer has a sliding window.
    pub windowed: bool,
    /// Elements per block of the output matrix.
    pub block: u64,
}

/// A linear attention layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearAttention {
    /// The layer.
    pub layer: u32,
    /// The number of key groups.
    pub groups: u64,
    /// The number of value heads.
    pub values: u64,
    /// Elements per head.
    pub size: u64,
    /// Elements per block of the output matrix.
    pub block: u64,
}

/// A matrix with split rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractedMatrix {
    /// The matrix's name.
    pub tensor: String,
    /// Elements per row.
    pub columns: u64,
    /// The element type.
    pub dtype: DType,
}

const CONTRACTED: [&str; 4] = [
    "attn_output.weight",
    "ssm_out.weight",
    "ffn_down.weight",
    "ffn_down_exps.weight",
];

const PROJECTIONS: [&str; 19] = [
    "attn_q.weight",
    "attn_k.weight",
    "attn_v.weight",
    "attn_qkv.weight",
    "attn_q.bias",
    "attn_k.bias",
    "attn_v.bias",
    "attn_qkv.bias",
    "attn_sinks.weight",
    "attn_gate.weight",
    "attn_q_b.weight",
    "attn_output_a.weight",
    "ssm_norm.weight",
    "ssm_conv1d.weight",
    "ssm_alpha.weight",
    "ssm_beta.weight",
    "ssm_ba.weight",
    "ssm_dt.bias",
    "ssm_a",
];

/// The maximum number of ops between attention and a projection.
const STEPS: usize = 64;

impl Geometry {
    /// Reads the geometry from a header and the model's graph. Without a graph, metadata keys and tensor names give
    /// the heads and norms.
    pub fn new(header: &Header, graph: Option<&Graph>) -> Geometry {
        let facts = Facts { header };
        let attention = match graph {
            Some(graph) => facts.attention_of(graph),
            None => facts.attention_of_keys(),
        };
        Geometry {
            arch: facts.arch().to_owned(),
            attention,
            linear: facts.linear(),
            has_short_convolutions: facts.any("shortconv.conv.weight"),
            contracted: facts.find_contracted(),
            projections: facts.projections(),
            feed_forward: FeedForward::of(header),
            output_biases: facts.output_biases(),
            follow_heads: facts.follow_heads(),
            head_rows: facts.head_rows(),
            reads_output: facts.reads_output(),
        }
    }

    /// True if a layer has a cache.
    pub fn has_caches(&self) -> bool {
        self.attention.iter().any(|a| a.cached)
    }
}

struct Facts<'h> {
    header: &'h Header,
}

impl<'h> Facts<'h> {
    fn arch(&self) -> &'h str {
        let arch = self.header.metadata().get_str("general.architecture");
        arch.ok().flatten().unwrap_or_default()
    }

    fn count(&self, key: &str) -> Option<u64> {
        let key = format!("{}.{key}", self.arch());
        self.header.metadata().get_u64(&key).ok().flatten()
    }

    fn of_blocks(&self, suffix: &str) -> impl Iterator<Item = (u32, &'h TensorInfo)> {
        let tensors = self.header.tensors().iter();
        tensors.filter_map(move |t| {
            let (layer, rest) = TensorName::parse(&t.name).block()?;
            (rest == suffix).then_some((layer, t))
        })
    }

    fn any(&self, suffix: &str) -> bool {
        self.of_blocks(suffix).next().is_some()
    }

    fn block(&self, layer: u32, suffixes: &[&str]) -> u64 {
        let of = |suffix: &&str| {
            let mut all = self.of_blocks(suffix);
            all.find(|(l, _)| *l == layer).map(|(_, t)| t.dtype)
        };
        let found = suffixes.iter().find_map(of);
        found.map_or(1, DType::block_len)
    }

    fn find_contracted(&self) -> Vec<ContractedMatrix> {
        let all = CONTRACTED.iter().flat_map(|suffix| self.of_blocks(suffix));
        let all = all.map(|(_, t)| ContractedMatrix {
            tensor: t.name.clone(),
            columns: t.ne[0],
            dtype: t.dtype,
        });
        all.collect()
    }

    fn projections(&self) -> Vec<String> {
        let tensors = self.header.tensors().iter();
        let projects = |t: &&TensorInfo| {
            let block = TensorName::parse(&t.name).block();
            block.is_some_and(|(_, rest)| PROJECTIONS.contains(&rest))
        };
        tensors.filter(projects).map(|t| t.name.clone()).collect()
    }

    fn output_biases(&self) -> Vec<(String, String)> {
        let biases = ["attn_output.bias", "ffn_down.bias"];
        let all = biases.into_iter().flat_map(|suffix| self.of_blocks(suffix));
        let all = all.map(|(_, t)| (t.name.clone(), t.name.replace(".bias", ".weight")));
        all.collect()
    }

    fn follow_heads(&self) -> Vec<(u32, String)> {
        let names = [
            "attn_q_norm.weight",
            "attn_k_norm.weight",
            "attn_output.weight",
            "ssm_out.weight",
        ];
        let all = names.into_iter().flat_map(|suffix| self.of_blocks(suffix));
        all.map(|(layer, t)| (layer, t.name.clone())).collect()
    }

    fn head_rows(&self) -> Vec<HeadRows> {
        let norms = [("attn_q_norm.weight", false), ("attn_k_norm.weight", true)];
        let all = norms.into_iter().flat_map(|(suffix, of_keys)| {
            let rows = self.of_blocks(suffix).filter(|(_, t)| t.ne[1] > 1);
            rows.map(move |(layer, t)| HeadRows {
                tensor: t.name.clone(),
                layer,
                rows: t.ne[1],
                of_keys,
            })
        });
        all.collect()
    }

    fn reads_output(&self) -> bool {
        let has = |name: &str| self.header.tensors().iter().any(|t| t.name == name);
        has("output.weight") && !has("token_embd.weight")
    }

    fn linear(&self) -> Vec<LinearAttention> {
        let (Some(groups), Some(values), Some(size)) = (
            self.count("ssm.group_count"),
            self.count("ssm.time_step_rank"),
            self.count("ssm.state_size"),
        ) else {
            return Vec::new();
        };
        let layers = self.of_blocks("ssm_out.weight");
        let layers = layers.map(|(layer, t)| LinearAttention {
            layer,
            groups,
            values,
            size,
            block: t.dtype.block_len(),
        });
        layers.collect()
    }

    /// Returns the attention layers of a model without a graph, from tensor names.
    fn attention_of_keys(&self) -> Vec<Attention> {
        let embd = self.count("embedding_length").unwrap_or(0);
        let heads = self.count("attention.head_count").unwrap_or(0);
        let kv_heads = self.count("attention.head_count_kv").unwrap_or(heads);
        if heads == 0 || kv_heads == 0 {
            return Vec::new();
        }
        let key = self
            .count("attention.key_length")
            .unwrap_or(embd / heads.max(1));
        let value = self.count("attention.value_length").unwrap_or(key);
        let fused = self.any("attn_qkv.weight");
        let of = |(layer, t): (u32, &TensorInfo)| Attention {
            layer,
            heads,
            kv_heads,
            key,
            value,
            normed: (self.of_blocks("attn_k_norm.weight"))
                .any(|(l, t)| l == layer && t.ne[0] == key && t.ne[1] <= 1),
            rotated: true,
            fused,
            gated: false,
            cached: true,
            slopes: false,
            windowed: false,
            block: t.dtype.block_len(),
        };
        self.of_blocks("attn_output.weight").map(of).collect()
    }

    fn attention_of(&self, graph: &Graph) -> Vec<Attention> {
        let all = graph.insts().filter_map(|(_, inst)| {
            let Op::FlashAttn(op) = &inst.op else {
                return None;
            };
            let [q, k, v] = [0, 1, 2].map(|i| inst.operands.get(i).copied());
            let (q, k, v) = (q?, k?, v?);
            let size = |v: Value, axis: usize| graph.value(v).ty.dims[axis].as_const();
            let (keys, values, queries) = (
                ProjectionPath::trace(graph, k),
                ProjectionPath::trace(graph, v),
                ProjectionPath::trace(graph, q),
            );
            let layer = inst.layer.unwrap_or(0);
            let key = size(q, 0)?;
            let cells = &graph.value(k).ty.dims[1];
            Some(Attention {
                layer,
                heads: size(q, 2)?,
                kv_heads: size(k, 2)?,
                key,
                value: size(v, 0)?,
                normed: keys.is_split(graph) && keys.norm == Some(key)
                    || values.is_split(graph) && values.norm == size(v, 0),
                rotated: keys.rotated,
                fused: keys.weight.is_some() && keys.weight == queries.weight,
                gated: self.is_gated(layer, size(q, 2)? * key),
                cached: keys.cached,
                slopes: op.max_bias > 0.0,
                windowed: cells.mentions(Symbol::NKvSwa) || cells.mentions(Symbol::NCtxSwa),
                block: self.block(layer, &["attn_output.weight", "ssm_out.weight"]),
            })
        });
        all.collect()
    }

    /// True if the query projection is twice as wide as the queries.
    fn is_gated(&self, layer: u32, width: u64) -> bool {
        let mut q = self.of_blocks("attn_q.weight");
        q.any(|(l, t)| l == layer && t.ne[1] == 2 * width)
    }
}

/// The path from an attention operand back to its projection.
#[derive(Clone, Debug, Default)]
struct ProjectionPath {
    /// The width of a norm over all heads, in elements.
    norm: Option<u64>,
    rotated: bool,
    cached: bool,
    weight: Option<Value>,
}

impl ProjectionPath {
    /// True if the engine splits projections of this name.
    fn is_split(&self, graph: &Graph) -> bool {
        let Some(Op::Weight(w)) = self.weight.map(|v| graph.def_op(v)) else {
            return false;
        };
        let block = TensorName::parse(&w.tensor).block();
        let names = ["attn_k.weight", "attn_v.weight", "attn_qkv.weight"];
        block.is_some_and(|(_, rest)| names.contains(&rest))
    }

    fn trace(graph: &Graph, from: Value) -> ProjectionPath {
        let mut way = ProjectionPath::default();
        let mut at = from;
        for _ in 0..STEPS {
            let inst = graph.inst(graph.value(at).def.0);
            let operand = match &inst.op {
                Op::SetRows(_) => {
                    way.cached = true;
                    1
                }
                Op::State(_) => {
                    way.cached = true;
                    return way;
                }
                Op::Rope(_) => {
                    way.rotated = true;
                    0
                }
                Op::Norm(_) => {
                    way.norm = graph.value(at).ty.dims[0].as_const();
                    0
                }
                Op::MulMat(_) | Op::MulMatId(_) => {
                    let weights = inst.operands.iter();
                    let mut weights =
                        weights.filter(|v| matches!(graph.def_op(**v), Op::Weight(_)));
                    way.weight = weights.next().copied();
                    return way;
                }
                _ => 0,
            };
            let Some(next) = inst.operands.get(operand) else {
                return way;
            };
            at = *next;
        }
        way
    }
}
