use serde::{Deserialize, Serialize};

use super::Backend;
use super::geometry::{Attention, Geometry, HeadRows};
use super::shares::Devices;
use crate::llama_cpp::limit_codes as codes;
use tpc_ir::Code;

/// A tensor split's devices, and the tensors on the host.
#[derive(Clone, Copy)]
pub struct SplitUse<'a> {
    /// The devices.
    pub devices: Devices<'a>,
    /// The devices' back ends, if known.
    pub backends: &'a [Option<Backend>],
    /// True if KV caches are on the host.
    pub caches_on_host: bool,
    /// Returns true for the name of a tensor on the host.
    pub on_host: &'a dyn Fn(&str) -> bool,
}

/// A condition under which a tensor split fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A tensor split of any model.
    AnySplit,
    /// At least this number of devices.
    Devices(usize),
    /// A split row that is a single quantisation block.
    RowsOfOneBlock,
    /// A norm with a row per head, split in smaller units than the heads.
    UnevenHeadRows,
    /// Token embeddings that are read from the split output matrix.
    EmbeddingsOfOutput,
    /// One KV head, with keys or values normalised per head.
    OneNormedKvHead,
    /// One KV head without a cache.
    OneKvHeadWithoutCache,
    /// Fewer KV heads than devices.
    FewKvHeads,
    /// ALiBi with heads on several devices.
    Slopes,
    /// Linear attention whose key heads and value heads do not match on a device.
    UnevenLinearHeads,
    /// KV caches on the host.
    CachesOnHost,
    /// KV caches on the host, with linear attention.
    CachesOnHostLinear,
    /// KV caches on the host, with short convolutions.
    CachesOnHostConvolution,
    /// KV caches on the host, with fused QKV on several devices.
    CachesOnHostFused,
    /// KV caches on the host, with rotated keys; each query head group is on one of several devices.
    CachesOnHostGrouped,
    /// KV caches on the host, with fewer query heads on a device than the model has KV heads.
    CachesOnHostFewQueries,
    /// KV caches on the host, with keys without RoPE on several devices.
    CachesOnHostUnrotated,
    /// Attention projections on the host, or other tensors that are split by the attention heads.
    AttentionOnHost,
    /// Attention output matrices on the host.
    AttentionOutputOnHost,
    /// A feed-forward layer with some matrices on the host and others on the devices.
    FeedForwardTorn,
    /// A bias on the host whose split matrix is on the devices.
    OutputBiasOnHost,
    /// Experts on the host.
    ExpertsOnHost,
}

impl Condition {
    /// Returns the code of the finding.
    pub const fn code(self) -> &'static Code {
        match self {
            Condition::AnySplit
            | Condition::Devices(_)
            | Condition::ExpertsOnHost
            | Condition::AttentionOutputOnHost
            | Condition::OneKvHeadWithoutCache => &codes::MEASURED_FAILURE,
            Condition::RowsOfOneBlock => &codes::ROWS_OF_ONE_BLOCK,
            Condition::OneNormedKvHead => &codes::ONE_NORMED_KV_HEAD,
            Condition::UnevenHeadRows => &codes::UNEVEN_HEAD_ROWS,
            Condition::EmbeddingsOfOutput => &codes::EMBEDDINGS_OF_OUTPUT,
            Condition::FewKvHeads => &codes::FEW_KV_HEADS,
            Condition::Slopes => &codes::SLOPES,
            Condition::UnevenLinearHeads => &codes::UNEVEN_LINEAR_HEADS,
            Condition::CachesOnHost
            | Condition::CachesOnHostLinear
            | Condition::CachesOnHostConvolution
            | Condition::CachesOnHostFused
            | Condition::CachesOnHostGrouped
            | Condition::CachesOnHostFewQueries
            | Condition::CachesOnHostUnrotated => &codes::CACHES_ON_HOST,
            Condition::AttentionOnHost => &codes::ATTENTION_ON_HOST,
            Condition::FeedForwardTorn => &codes::FEED_FORWARD_TORN,
            Condition::OutputBiasOnHost => &codes::OUTPUT_BIAS_ON_HOST,
        }
    }

    /// Returns the reason why the model fails on this placement, or `None` if the condition does not apply.
    pub fn holds(self, model: &Geometry, of: &SplitUse<'_>) -> Option<String> {
        let n = of.devices.count;
        let several = n > 1;
        let hosted = of.caches_on_host && model.has_caches() && several;
        match self {
            Condition::AnySplit => Some(format!("{} failed in a test run", model.arch)),
            Condition::Devices(least) => (n >= least)
                .then(|| format!("{} failed in a test run on {least} devices", model.arch)),
            Condition::ExpertsOnHost => hosted_experts(model, of).then(|| {
                format!(
                    "{} failed in a test run with experts on the host",
                    model.arch
                )
            }),
            Condition::AttentionOutputOnHost => {
                let mut outputs = model.follow_heads.iter().filter(|_| several);
                let (_, name) = outputs
                    .find(|(_, name)| name.ends_with("attn_output.weight") && (of.on_host)(name))?;
                Some(format!(
                    "{name} is on the host, and {} failed in such a test run",
                    model.arch
                ))
            }
            Condition::RowsOfOneBlock => rows_of_one_block(model, of).filter(|_| several),
            Condition::UnevenHeadRows => uneven_head_rows(model, of).filter(|_| several),
            Condition::EmbeddingsOfOutput => (model.reads_output && several).then(|| {
                "without token_embd.weight, llama.cpp reads embeddings from the split output.weight"
                    .to_owned()
            }),
            Condition::OneNormedKvHead => {
                let found = model
                    .attention
                    .iter()
                    .find(|a| a.kv_heads == 1 && a.normed && a.cached)?;
                Some(format!(
                    "attention has one KV head with normalised keys (layer {})",
                    found.layer
                ))
            }
            Condition::OneKvHeadWithoutCache => {
                let mut all = model.attention.iter();
                let found = all.any(|a| a.kv_heads == 1 && !a.cached) && several;
                found.then(|| "attention has one KV head without a cache".to_owned())
            }
            Condition::FewKvHeads => few_kv_heads(model, n),
            Condition::Slopes => {
                let mut all = model.attention.iter();
                let found = several && all.any(|a| a.slopes && is_shared(a, of));
                found.then(|| {
                    "every device numbers its heads from 0, so the ALiBi slopes are wrong"
                        .to_owned()
                })
            }
            Condition::UnevenLinearHeads => uneven_linear_heads(model, of).filter(|_| several),
            Condition::CachesOnHost => hosted.then(|| "the KV cache is on the host".to_owned()),
            Condition::CachesOnHostLinear => (hosted && !model.linear.is_empty())
                .then(|| "the states of linear attention are on the host".to_owned()),
            Condition::CachesOnHostConvolution => (hosted && model.has_short_convolutions)
                .then(|| "the states of short convolutions are on the host".to_owned()),
            Condition::CachesOnHostFused
            | Condition::CachesOnHostGrouped
            | Condition::CachesOnHostFewQueries
            | Condition::CachesOnHostUnrotated => match hosted {
                true => self.check_hosted(model, of),
                false => None,
            },
            Condition::AttentionOnHost => attention_on_host(model, of).filter(|_| several),
            Condition::FeedForwardTorn => {
                let mut layers = model.feed_forward.iter().filter(|_| several);
                layers.find_map(|f| f.host_conflict(of.on_host))
            }
            Condition::OutputBiasOnHost => {
                let mut biases = model.output_biases.iter().filter(|_| several);
                let (bias, weight) =
                    biases.find(|(bias, weight)| (of.on_host)(bias) && !(of.on_host)(weight))?;
                Some(format!("{bias} is on the host and {weight} is not"))
            }
        }
    }

    /// Checks the conditions for KV caches on the host and heads on several devices.
    fn check_hosted(self, model: &Geometry, of: &SplitUse<'_>) -> Option<String> {
        let fused = model.attention.iter().any(|a| a.cached && a.fused);
        let shared = |a: &&Attention| a.cached && is_shared(a, of);
        let mut layers = model.attention.iter().filter(shared);
        match self {
            Condition::CachesOnHostFused => fused.then(|| {
                "the KV cache is on the host, and queries, keys and values are fused".to_owned()
            }),
            Condition::CachesOnHostGrouped => layers
                .find(|a| a.rotated && a.heads > a.kv_heads)
                .map(|_| {
                    "the KV cache is on the host, and query heads share rotated keys".to_owned()
                }),
            Condition::CachesOnHostFewQueries => layers.find_map(|a| {
                let least = least_heads(a, of)?;
                (least < a.kv_heads).then(|| {
                    format!(
                        "the KV cache is on the host, and a device with {least} query head{} reads all {} KV heads",
                        if least == 1 { "" } else { "s" },
                        a.kv_heads
                    )
                })
            }),
            _ => layers.find(|a| !a.rotated).map(|_| {
                "the KV cache is on the host, and every device uses the first device's KV heads"
                    .to_owned()
            }),
        }
    }
}

/// True if the heads of the tensor's layer are on several devices. A gated layer gathers the heads before the output
/// matrix.
fn shares_heads(model: &Geometry, of: &SplitUse<'_>, layer: u32, name: &str) -> bool {
    if name.ends_with("ssm_out.weight") {
        let linear = model.linear.iter().find(|l| l.layer == layer);
        return linear.is_some_and(|l| {
            let [keys, _] = of.devices.linear(l, 0);
            keys.iter().filter(|&&k| k > 0).count() > 1
        });
    }
    let attention = model.attention.iter().find(|a| a.layer == layer);
    let is_output = name.ends_with("attn_output.weight");
    attention.is_some_and(|a| is_shared(a, of) && !(is_output && a.gated))
}

/// True if a layer's heads are on several devices for at least one rotation of the rounding.
fn is_shared(a: &Attention, of: &SplitUse<'_>) -> bool {
    (0..of.devices.count).any(|turn| {
        let heads = of.devices.heads(a, turn);
        heads.iter().filter(|&&h| h > 0).count() > 1
    })
}

fn least_heads(a: &Attention, of: &SplitUse<'_>) -> Option<u64> {
    let turns = (0..of.devices.count).flat_map(|turn| of.devices.heads(a, turn));
    turns.filter(|&h| h > 0).min()
}

fn rows_of_one_block(model: &Geometry, of: &SplitUse<'_>) -> Option<String> {
    let single = |c: &&super::geometry::ContractedMatrix| {
        let block = c.dtype.block_len();
        block > 1 && c.columns == block && !(of.on_host)(&c.tensor)
    };
    let found = model.contracted.iter().find(single)?;
    Some(format!(
        "{} has rows of {} elements, one block of {}, which cannot be split",
        found.tensor,
        found.columns,
        found.dtype.name()
    ))
}

fn uneven_head_rows(model: &Geometry, of: &SplitUse<'_>) -> Option<String> {
    let uneven = |rows: &&HeadRows| {
        let mut layers = model.attention.iter();
        let Some(a) = layers.find(|a| a.layer == rows.layer) else {
            return false;
        };
        let group = if rows.of_keys {
            a.heads / a.kv_heads.max(1)
        } else {
            1
        };
        (0..of.devices.count).any(|turn| {
            let heads = of.devices.heads(a, turn);
            let rows = of.devices.parts(rows.rows, 1, turn);
            heads.iter().zip(&rows).any(|(h, r)| *h != r * group)
        })
    };
    let found = model.head_rows.iter().find(uneven)?;
    Some(format!(
        "{} has {} rows, one per head, which are split differently from the heads",
        found.tensor, found.rows
    ))
}

fn few_kv_heads(model: &Geometry, devices: usize) -> Option<String> {
    let few = |a: &&Attention| (a.kv_heads as usize) < devices;
    let found = model.attention.iter().find(few)?;
    Some(format!(
        "attention has {} KV head{} for {devices} devices",
        found.kv_heads,
        if found.kv_heads == 1 { "" } else { "s" }
    ))
}

fn uneven_linear_heads(model: &Geometry, of: &SplitUse<'_>) -> Option<String> {
    let layer = model.linear.first()?;
    let ratio = layer.values / layer.groups.max(1);
    let uneven = |turn: &usize| {
        let [keys, values] = of.devices.linear(layer, *turn);
        keys.iter().zip(&values).any(|(k, v)| k * ratio != *v)
    };
    (0..of.devices.count).find(uneven).map(|_| {
        format!(
            "the {} key heads and {} value heads of linear attention do not match on {} devices",
            layer.groups, layer.values, of.devices.count
        )
    })
}

fn attention_on_host(model: &Geometry, of: &SplitUse<'_>) -> Option<String> {
    let hosted = |name: &&String| (of.on_host)(name);
    let following = model.follow_heads.iter();
    let following = following.filter(|(layer, name)| shares_heads(model, of, *layer, name));
    let following = following.map(|(_, name)| name);
    let mut names = model.projections.iter().chain(following).filter(hosted);
    let first = names.next()?;
    let more = match names.count() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!(
        "{first}{more} on the host, but the layer's cache is split by heads"
    ))
}

fn hosted_experts(model: &Geometry, of: &SplitUse<'_>) -> bool {
    let mut experts = model.contracted.iter();
    experts.any(|c| c.tensor.contains("_exps") && (of.on_host)(&c.tensor))
}
