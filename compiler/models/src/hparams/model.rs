use tpc_ir::op::{GluKind, NormKind, Rope, Temperature};

use super::adapters::AdapterHParams;
use super::compressed::CompressedHParams;
use super::experts::ExpertHParams;
use super::factors::{self, bound, factor};
use super::heads::HeadElements;
use super::hyper::HyperHParams;
use super::indexer::IndexerHParams;
use super::keys::Keys;
use super::latent::LatentHParams;
use super::layers::{LayerHParams, LayerTable, Model};
use super::limits::MAX_LAYERS;
use super::loops::Loops;
use super::ngrams::NgramHParams;
use super::recurrent::RecurrentHParams;
use super::taps::TapHParams;
use super::windows::WindowSpan;
use super::{drafts, encoders, rope};
use crate::description::{
    Activation, Arch, AttentionForm, DraftNorm, HeadSizes, KeyUse, NormForm, PostEps, Presence,
    Residual, ValueSource,
};
use crate::error::ArchError;
use crate::options::Drafting;
use crate::size::Size;
use tpc_gguf::{Header, Metadata};

/// Hyper-parameters of a model, by the part of the network that reads them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HParams {
    pub(crate) name: Option<String>,
    pub(crate) n_embd: u64,
    pub(crate) n_vocab: u64,
    /// Numbers of a projected embedding.
    pub(crate) n_out: Size,
    pub(crate) embedding: EmbeddingHParams,
    pub(crate) norm: NormHParams,
    /// Output norm of draft blocks.
    pub(crate) draft_norm: NormHParams,
    pub(crate) positions: PositionHParams,
    pub(crate) attention: AttentionHParams,
    pub(crate) ffn: FfnHParams,
    pub(crate) adapters: Option<AdapterHParams>,
    pub(crate) recurrent: Option<RecurrentHParams>,
    pub(crate) residual: ResidualHParams,
    pub(crate) logits: LogitHParams,
    /// Layers that logits depend on, in execution order.
    pub(crate) layers: Vec<LayerHParams>,
    pub(crate) loops: Loops,
    pub(crate) drafts: Vec<LayerHParams>,
    /// Number of layers and draft blocks in the file.
    pub(crate) n_layer_all: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EmbeddingHParams {
    pub(crate) scale: Option<f32>,
    /// Width of one layer's embeddings, and of all layers' embeddings.
    pub(crate) per_layer: Option<[Size; 2]>,
    /// Number of token types.
    pub(crate) types: Option<Size>,
    pub(crate) ngrams: Option<NgramHParams>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NormHParams {
    pub(crate) kind: NormKind,
    pub(crate) eps: f32,
    /// Epsilon of the norms of sublayers' outputs.
    pub(crate) post_eps: f32,
    /// Number of parts of the residual stream that are normalised separately.
    pub(crate) groups: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PositionHParams {
    pub(crate) n_ctx_train: u64,
    pub(crate) n_ctx_orig: u64,
    /// Rotation in layers with full attention and in layers with a window.
    pub(crate) rope: Option<[Rope; 2]>,
}

/// Hyper-parameters of attention, except head sizes, which differ between layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttentionHParams {
    /// Sizes of latent attention in layers with full attention and in layers with a window.
    pub(crate) latent: Option<[LatentHParams; 2]>,
    pub(crate) compressed: Option<CompressedHParams>,
    pub(crate) indexer: Option<IndexerHParams>,
    pub(crate) window: Option<WindowSpan>,
    /// ALiBi's bias; 0 without ALiBi.
    pub(crate) max_alibi_bias: f32,
    /// Bound of the logits; 0 without a bound.
    pub(crate) softcap: f32,
    pub(crate) temperature: Option<Temperature>,
    /// Bound of elements of queries, keys and values.
    pub(crate) qkv_clamp: Option<f32>,
    pub(crate) value_scale: Option<f32>,
    /// Experts that compute values, in layers with feed-forward experts.
    pub(crate) value_experts: Option<ExpertHParams>,
    /// Epsilon of the token's own value.
    pub(crate) own_value_eps: f32,
}

/// Hyper-parameters of feed-forward sublayers, except widths, which differ between layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FfnHParams {
    pub(crate) experts: Option<ExpertHParams>,
    /// Bounds of SiTU on gate and up.
    pub(crate) situ: Option<(f32, Option<f32>)>,
    /// The gated function that the file names.
    pub(crate) named: Option<GluKind>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResidualHParams {
    pub(crate) join: Join,
    /// Number of layers after which a layer's output is halved.
    pub(crate) halved_every: Option<u64>,
    /// True if the norms of sublayers' inputs normalise their outputs.
    pub(crate) swin: bool,
    pub(crate) taps: Option<TapHParams>,
    pub(crate) scale: Option<f32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogitHParams {
    pub(crate) scale: Option<f32>,
    pub(crate) softcap: Option<f32>,
    /// `[a, b, c]` of the logits `a σ((x + b) / c)`.
    pub(crate) sigmoid: Option<[f32; 3]>,
}

/// Connection of sublayers with the residual stream, with metadata values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Join {
    Sequential,
    FromNorms,
    Normalised,
    AttentionResiduals {
        /// Number of layers between kept streams.
        period: u64,
    },
    Hyper(HyperHParams),
    Parallel,
    ByFfnNorm,
}

impl HParams {
    /// Reads a model's hyper-parameters. `tensors` give the vocabulary's size if the metadata do not.
    pub(crate) fn read(
        arch: &Arch,
        metadata: &Metadata,
        tensors: Option<&Header>,
        drafting: Drafting,
    ) -> Result<HParams, ArchError> {
        let keys = Keys::new(metadata, arch.name);
        let n_layer = block_count(&keys)?;
        let n_embd = keys.require_count("embedding_length")?;
        let ctx = context_lengths(&keys)?;
        let model = Model {
            keys,
            arch,
            n_layer,
            n_embd,
        };
        let table = LayerTable::read(model)?;
        let n_main = drafts::main_layers(&keys, n_layer)?;
        let loops = Loops::read(&keys, arch.loops, n_main)?;
        let layers = in_loops(&table, model, n_main, loops)?;
        let norm = norm(&keys, &arch.norm)?;
        let drafts = drafts::lowered_blocks(&keys, arch, drafting, n_main..n_layer)?;
        let drafts = drafts.map(|il| table.draft(model, il));
        let drafts: Vec<LayerHParams> = drafts.collect::<Result<_, _>>()?;
        let form = &arch.attention;
        let heads = (table.heads.map(|h| h.dk), table.first_reach());
        let rope = rope::read(&keys, form, heads, ctx)?;
        // Errors are reported in this order.
        let name = metadata.get_str("general.name")?.map(str::to_owned);
        let per_layer = per_layer(&keys, arch.embedding.per_layer, n_layer)?;
        let ngrams = ngrams(&keys, arch.embedding.ngrams, n_main)?;
        let n_vocab = vocabulary(&keys, metadata, tensors)?;
        let norm = NormHParams::read(&keys, arch, norm, n_embd)?;
        let attention = AttentionHParams::read(model, &table, rope.as_ref(), n_main, ctx)?;
        let recurrent = arch.recurrent.map(|form| {
            RecurrentHParams::read(&keys, form.mixer, embd(n_embd), table.first_heads())
        });
        let recurrent = recurrent.transpose()?;
        let situ = situ(&keys, &arch.ffn.activation)?;
        let named = encoders::gated_function(&keys, arch.ffn.by_name)?;
        let types = encoders::token_types(metadata, arch.embedding.types)?;
        encoders::check_direction(&keys, form.direction)?;
        let residual = ResidualHParams::read(&keys, arch, n_layer)?;
        Ok(HParams {
            name,
            n_embd,
            n_vocab,
            n_out: encoders::result_size(&keys, n_embd)?,
            embedding: EmbeddingHParams {
                scale: factors::embedding_scale(&keys, arch.embedding.scale, n_embd)?,
                per_layer,
                types,
                ngrams,
            },
            norm,
            draft_norm: norm.of_drafts(&keys, arch, !drafts.is_empty())?,
            positions: PositionHParams {
                n_ctx_train: ctx[0],
                n_ctx_orig: ctx[1],
                rope,
            },
            attention,
            ffn: FfnHParams {
                experts: table.experts,
                situ,
                named,
            },
            adapters: AdapterHParams::read(&keys, arch.adapters, n_vocab)?,
            recurrent,
            residual,
            logits: LogitHParams::read(&keys, arch, n_embd)?,
            layers,
            loops,
            drafts,
            n_layer_all: n_layer,
        })
    }

    pub(crate) const fn embd(&self) -> Size {
        embd(self.n_embd)
    }
}

/// Returns the lengths of the context in training: of the model, and before its extension.
fn context_lengths(keys: &Keys<'_>) -> Result<[u64; 2], ArchError> {
    let trained = keys.require_count("context_length")?;
    let original = keys.count("rope.scaling.original_context_length")?;
    Ok([trained, original.unwrap_or(trained)])
}

impl NormHParams {
    /// Returns the norm of draft blocks.
    fn of_drafts(
        self,
        keys: &Keys<'_>,
        arch: &Arch,
        has_drafts: bool,
    ) -> Result<NormHParams, ArchError> {
        Ok(match arch.drafts.map(|form| form.norm) {
            Some(DraftNorm::Layer) if has_drafts => NormHParams {
                kind: NormKind::Layer,
                eps: epsilon(keys, NormKind::Layer)?,
                ..self
            },
            Some(DraftNorm::Layer | DraftNorm::Model) | None => self,
        })
    }

    fn read(
        keys: &Keys<'_>,
        arch: &Arch,
        kind: NormKind,
        n_embd: u64,
    ) -> Result<NormHParams, ArchError> {
        const GROUPS: &str = "attention.group_norm_groups";
        let eps = epsilon(keys, kind)?;
        let groups = match arch.norm.groups {
            KeyUse::Ignored => 1,
            KeyUse::Read | KeyUse::ReadOr(_) => keys.count(GROUPS)?.unwrap_or(1),
        };
        keys.require_divisor(GROUPS, groups, "embedding_length", n_embd)?;
        Ok(NormHParams {
            kind,
            eps,
            post_eps: match arch.norms.post_eps {
                PostEps::Model => eps,
                PostEps::Fixed(eps) => eps,
                PostEps::Key => keys.require_epsilon("post_norm_epsilon")?,
            },
            groups,
        })
    }
}

impl ResidualHParams {
    fn read(keys: &Keys<'_>, arch: &Arch, n_layer: usize) -> Result<ResidualHParams, ArchError> {
        Ok(ResidualHParams {
            join: join(keys, arch.residual)?,
            halved_every: match arch.rescale {
                KeyUse::Ignored => None,
                KeyUse::Read | KeyUse::ReadOr(_) => keys.count("rescale_every_n_layers")?,
            },
            swin: match arch.norms.swin {
                KeyUse::Ignored => false,
                KeyUse::Read | KeyUse::ReadOr(_) => keys.flag("swin_norm")?.unwrap_or(false),
            },
            taps: TapHParams::read(keys, arch.taps, n_layer)?,
            scale: factors::residual_scale(keys, arch.residual_scale, n_layer)?,
        })
    }
}

impl LogitHParams {
    fn read(keys: &Keys<'_>, arch: &Arch, n_embd: u64) -> Result<LogitHParams, ArchError> {
        Ok(LogitHParams {
            scale: factors::logit_scale(keys, arch.head.logit_scale, n_embd)?,
            softcap: factor(keys, arch.head.softcap, "final_logit_softcapping")?,
            sigmoid: sigmoid(keys, arch.head.sigmoid)?,
        })
    }
}

impl AttentionHParams {
    fn read(
        model: Model<'_>,
        table: &LayerTable,
        rope: Option<&[Rope; 2]>,
        n_main: usize,
        [n_ctx_train, n_ctx_orig]: [u64; 2],
    ) -> Result<AttentionHParams, ArchError> {
        let (keys, form) = (&model.keys, &model.arch.attention);
        // Errors are reported in this order.
        Ok(AttentionHParams {
            latent: latent(keys, form, rope)?,
            compressed: read_compressed(keys, form, table.heads[0], model.n_layer)?,
            indexer: indexer(keys, form, rope, n_main, n_ctx_train)?,
            max_alibi_bias: factors::alibi(keys, form.alibi, model.n_layer)?,
            softcap: factor(keys, form.softcap, "attn_logit_softcapping")?.unwrap_or(0.0),
            qkv_clamp: bound(keys, form.clamp, "attention.clamp_kqv")?,
            temperature: factors::temperature(keys, form.temperature, n_ctx_orig)?,
            value_scale: factor(keys, form.value_scale, "attention.value_scale")?
                .filter(|&scale| scale != 1.0),
            window: table.window,
            value_experts: value_experts(keys, form, table.experts)?,
            own_value_eps: match form.own_value {
                Presence::Absent => 0.0,
                Presence::Optional | Presence::Required => {
                    keys.epsilon("attention.xsa_epsilon")?.unwrap_or(0.0)
                }
            },
        })
    }
}

/// Returns the experts that compute values. They have the gating of the feed-forward experts.
fn value_experts(
    keys: &Keys<'_>,
    form: &AttentionForm,
    experts: Option<ExpertHParams>,
) -> Result<Option<ExpertHParams>, ArchError> {
    const COUNT: &str = "attention.value_expert_count";
    const USED: &str = "attention.value_expert_used_count";
    let experts = match form.value_source {
        ValueSource::RoutedBesideExperts => experts,
        ValueSource::Projected | ValueSource::ProjectedOrKeys => None,
    };
    let (Some(experts), Some(count)) = (experts, keys.count(COUNT)?) else {
        return Ok(None);
    };
    let used = keys.require_count(USED)?;
    if used > count {
        return Err(keys.out_of_range(USED, used, format!("at most {count}")));
    }
    Ok(Some(ExpertHParams {
        count,
        used,
        latent: None,
        groups: None,
        by_token: 0,
        of_groups: None,
        ..experts
    }))
}

fn in_loops(
    table: &LayerTable,
    model: Model<'_>,
    n_main: usize,
    loops: Loops,
) -> Result<Vec<LayerHParams>, ArchError> {
    let layers = (0..loops.runs(n_main)).map(|n| {
        let layer = table.layer(model, loops.block(n, n_main))?;
        Ok(LayerHParams {
            index: u32::try_from(n).expect("invariant: at most MAX_LAYERS"),
            ..layer
        })
    });
    layers.collect()
}

const fn embd(n: u64) -> Size {
    Size::new(n, "embedding_length")
}

fn block_count(keys: &Keys<'_>) -> Result<usize, ArchError> {
    const KEY: &str = "block_count";
    let n = keys.require_count(KEY)?;
    if n > MAX_LAYERS {
        return Err(keys.out_of_range(KEY, n, format!("at most {MAX_LAYERS}")));
    }
    Ok(usize::try_from(n).expect("invariant: at most MAX_LAYERS"))
}

fn norm(keys: &Keys<'_>, form: &NormForm) -> Result<NormKind, ArchError> {
    let rms = match form.rms {
        KeyUse::Ignored => None,
        KeyUse::Read | KeyUse::ReadOr(_) => keys.above_0("attention.layer_norm_rms_epsilon")?,
    };
    Ok(if rms.is_some() {
        NormKind::Rms
    } else {
        form.kind
    })
}

fn epsilon(keys: &Keys<'_>, norm: NormKind) -> Result<f32, ArchError> {
    keys.require_epsilon(match norm {
        NormKind::Layer => "attention.layer_norm_epsilon",
        NormKind::Rms | NormKind::L2 => "attention.layer_norm_rms_epsilon",
    })
}

fn per_layer(
    keys: &Keys<'_>,
    used: KeyUse,
    n_layer: usize,
) -> Result<Option<[Size; 2]>, ArchError> {
    const KEY: &str = "embedding_length_per_layer_input";
    let n = match used {
        KeyUse::Ignored => None,
        KeyUse::Read | KeyUse::ReadOr(_) => keys.count(KEY)?,
    };
    let Some(n) = n else {
        return Ok(None);
    };
    let all = "embedding_length_per_layer_input × block_count";
    let all = Size::product(n, n_layer as u64, all)?;
    Ok(Some([Size::try_new(n, KEY)?, all]))
}

fn ngrams(
    keys: &Keys<'_>,
    used: KeyUse,
    n_layer: usize,
) -> Result<Option<NgramHParams>, ArchError> {
    match used {
        KeyUse::Ignored => Ok(None),
        KeyUse::Read | KeyUse::ReadOr(_) => NgramHParams::read(keys, n_layer),
    }
}

fn latent(
    keys: &Keys<'_>,
    form: &AttentionForm,
    rope: Option<&[Rope; 2]>,
) -> Result<Option<[LatentHParams; 2]>, ArchError> {
    let Some(latent) = form.latent else {
        return Ok(None);
    };
    let (rotated, yarn) = match (&form.rope, rope) {
        (Some(form), Some(ropes)) => (
            ropes.each_ref().map(|r| r.n_dims),
            rope::logit_factor(keys, form, &ropes[0])?,
        ),
        _ => ([0; 2], 1.0),
    };
    let full = LatentHParams::read(keys, latent, form.latent_queries, rotated[0], yarn)?;
    let windowed = match form.head_sizes {
        HeadSizes::Same | HeadSizes::WindowedRotation => full.clone(),
        HeadSizes::WindowedOwn => full.in_window_layers(keys, rotated[1], yarn)?,
    };
    Ok(Some([full, windowed]))
}

fn read_compressed(
    keys: &Keys<'_>,
    attention: &AttentionForm,
    heads: HeadElements,
    n_layer: usize,
) -> Result<Option<CompressedHParams>, ArchError> {
    let form = attention.compressed;
    form.map(|form| CompressedHParams::read(keys, form, heads, n_layer))
        .transpose()
}

fn indexer(
    keys: &Keys<'_>,
    attention: &AttentionForm,
    rope: Option<&[Rope; 2]>,
    n_layer: usize,
    n_ctx_train: u64,
) -> Result<Option<IndexerHParams>, ArchError> {
    let Some(form) = attention.indexer else {
        return Ok(None);
    };
    let rotated = rope.map_or(0, |[full, _]| full.n_dims);
    if form.presence == Presence::Optional && keys.count("attention.indexer.top_k")?.is_none() {
        return Ok(None);
    }
    IndexerHParams::read(keys, form, n_layer, n_ctx_train, rotated).map(Some)
}

fn sigmoid(keys: &Keys<'_>, used: KeyUse) -> Result<Option<[f32; 3]>, ArchError> {
    const KEY: &str = "final_logit_sigmoid_capping";
    let given = match used {
        KeyUse::Ignored => None,
        KeyUse::Read | KeyUse::ReadOr(_) => keys.floats::<3>(KEY)?,
    };
    let given = given.filter(|&[a, _, c]| a != 0.0 && c != 0.0);
    match given {
        Some([_, b, c]) if !(1.0 / c).is_finite() || !(b / c).is_finite() => {
            Err(keys.out_of_range(KEY, c, "a last number that keeps the others finite"))
        }
        given => Ok(given),
    }
}

fn situ(keys: &Keys<'_>, activation: &Activation) -> Result<Option<(f32, Option<f32>)>, ArchError> {
    match activation {
        Activation::Situ => Ok(Some((
            keys.require_above_0("activation.situ_beta")?,
            keys.above_0("activation.situ_linear_beta")?,
        ))),
        Activation::Gated(_)
        | Activation::GatedFused(_)
        | Activation::Xielu
        | Activation::Plain(_) => Ok(None),
    }
}

fn join(keys: &Keys<'_>, form: Residual) -> Result<Join, ArchError> {
    Ok(match form {
        Residual::Sequential => Join::Sequential,
        Residual::FromNorms => Join::FromNorms,
        Residual::Normalised => Join::Normalised,
        Residual::AttentionResiduals => match keys.count("attn_res.block_size")? {
            Some(period) => Join::AttentionResiduals { period },
            None => Join::Sequential,
        },
        Residual::Hyper(form) => Join::Hyper(HyperHParams::read(keys, form)?),
        Residual::Parallel => Join::Parallel,
        Residual::ByFfnNorm => Join::ByFfnNorm,
        Residual::ByKey if keys.require_flag("use_parallel_residual")? => Join::Parallel,
        Residual::ByKey => Join::Sequential,
    })
}

/// Returns the vocabulary's size: the length of the token list, else the key, else the embedding's rows.
fn vocabulary(
    keys: &Keys<'_>,
    metadata: &Metadata,
    tensors: Option<&Header>,
) -> Result<u64, ArchError> {
    if let Some(tokens) = metadata.get_array_str("tokenizer.ggml.tokens")?
        && !tokens.is_empty()
    {
        return Ok(tokens.len() as u64);
    }
    let embedding = || tensors?.tensor("token_embd.weight").map(|t| t.ne[1]);
    match keys.count("vocab_size")? {
        Some(n) => Ok(n),
        None => match embedding() {
            Some(n) => Ok(n),
            None => keys.require_count("vocab_size"),
        },
    }
}
