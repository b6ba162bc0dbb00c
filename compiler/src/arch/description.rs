//! The language in which an architecture describes itself: a table of choices, read by the building blocks.
//!
//! A description is a constant and holds no code. [`Arch::CLASSIC`] is the most common set of choices; an architecture
//! states what it does otherwise. What a file may or may not carry is a [`Presence`]; what a metadata key decides is
//! read by `blocks/hparams.rs`.

use tpc_ir::op::{Glu, GluKind, NormKind, RopeMode, UnaryKind};

/// Whether the tensors of an architecture include a given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Never used; a file that has it has a tensor too many.
    Absent,
    /// Used when the file has it.
    Optional,
    /// Without it the model cannot run.
    Required,
}

/// How an architecture turns tokens into logits.
#[derive(Clone, Debug, PartialEq)]
pub struct Arch {
    /// The value of `general.architecture`, and the prefix of its metadata keys.
    pub name: &'static str,
    /// What enters the first block.
    pub embedding: EmbeddingForm,
    /// The normalisation of the residual stream and the output.
    pub norm: NormForm,
    /// Where a block normalises.
    pub norms: BlockNorms,
    /// How a block's two halves join the residual stream.
    pub residual: Residual,
    /// The attention half of a block.
    pub attention: AttentionForm,
    /// The feed-forward half of a block.
    pub ffn: FfnForm,
    /// What leaves the last block.
    pub head: HeadForm,
}

/// What enters the first block.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingForm {
    /// Factor on the token embedding.
    pub scale: EmbeddingScale,
    /// `position_embd`, a learned vector per position, added to the token embedding.
    pub positions: Presence,
}

/// Factor on the token embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingScale {
    /// None.
    One,
    /// `√embedding_length`
    RootOfWidth,
}

/// A normalisation with learned weights.
#[derive(Clone, Debug, PartialEq)]
pub struct NormForm {
    /// The statistic; it also decides which key holds epsilon.
    pub kind: NormKind,
    /// A bias after the weight.
    pub bias: Presence,
}

/// Where a block normalises: the tensor's stem (`attn_norm`) at each place that it does.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNorms {
    /// The input of attention.
    pub pre_attention: Option<&'static str>,
    /// The output of attention, before it joins the residual stream.
    pub post_attention: Option<&'static str>,
    /// The input of the feed-forward half. Without one it reads the residual stream, or with [`Residual::Parallel`]
    /// what attention reads.
    pub pre_ffn: Option<&'static str>,
    /// The output of the feed-forward half, before it joins the residual stream.
    pub post_ffn: Option<&'static str>,
}

impl BlockNorms {
    /// Both halves normalise their input.
    pub const PRE: BlockNorms = BlockNorms {
        pre_attention: Some("attn_norm"),
        post_attention: None,
        pre_ffn: Some("ffn_norm"),
        post_ffn: None,
    };
    /// Both halves normalise their output.
    pub const POST: BlockNorms = BlockNorms {
        pre_attention: None,
        post_attention: Some("post_attention_norm"),
        pre_ffn: None,
        post_ffn: Some("post_ffw_norm"),
    };
    /// Both halves normalise input and output.
    pub const SANDWICH: BlockNorms = BlockNorms {
        post_attention: BlockNorms::POST.post_attention,
        post_ffn: BlockNorms::POST.post_ffn,
        ..BlockNorms::PRE
    };
    /// One normalised input for both halves, side by side.
    pub const SHARED: BlockNorms = BlockNorms {
        pre_ffn: None,
        ..BlockNorms::PRE
    };
}

/// How a block's two halves join the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// The feed-forward half reads the sum of the block's input and attention.
    Sequential,
    /// Both halves read the block's input, and their outputs are added to it together.
    Parallel,
}

/// The attention half of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionForm {
    /// How the files usually hold the projections to queries, keys and values.
    pub qkv: QkvForm,
    /// Biases of those projections.
    pub qkv_bias: Presence,
    /// Bias of the output projection.
    pub out_bias: Presence,
    /// Normalisation of queries and keys, before the rotation.
    pub qk_norm: QkNorm,
    /// Rotary position embedding.
    pub rope: Option<RopeForm>,
    /// Factor on the dot products where no key gives one.
    pub scale: ScaleRule,
    /// Where that factor is applied.
    pub scale_on: ScaleOn,
    /// Whether `attn_logit_softcapping` bounds the logits.
    pub softcap: KeyUse,
    /// Which layers attend to a sliding window only.
    pub window: Window,
    /// `attn_sinks`, a logit per head that takes weight but adds nothing.
    pub sinks: Presence,
}

/// How projections to queries, keys and values are held. Either form is read; this one is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkvForm {
    /// `attn_q`, `attn_k`, `attn_v`
    Separate,
    /// `attn_qkv`, whose rows are those of the three one after another.
    Fused,
}

/// Normalisation of queries and keys by `attn_q_norm` and `attn_k_norm`, of the kind of the block's other norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// Each head by itself; all heads share one weight `[head size]`.
    Head,
    /// Each head by itself with its own weight, `[head size, heads]`; only if the file has them.
    OptionalHeads,
    /// All heads together, before they are told apart; weight `[head size · heads]`.
    All,
}

/// Rotary position embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeForm {
    /// Pairing.
    pub mode: RopeMode,
    /// Tensors of factors by which frequencies are divided, always optional.
    pub factors: RopeFactors,
    /// The rotation in layers with a sliding window.
    pub windowed: WindowedRope,
}

/// Factors by which frequencies are divided, as files usually hold them; where some are used, either form is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeFactors {
    /// Never used.
    None,
    /// `rope_freqs`
    One,
    /// `rope_factors_long` for contexts longer than the original one, `rope_factors_short` for others.
    ByContext,
}

/// The rotation in layers with a sliding window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowedRope {
    /// The same as in the others.
    Same,
    /// The same base without scaling.
    Unscaled,
    /// Without scaling, and the base of `rope.freq_base_swa` or else this.
    Local(f32),
}

/// Factor on the dot products where `attention.scale` is absent or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleRule {
    /// `1 / √head size`
    Head,
    /// As [`Self::Head`], except that models of this many layers have `1 / √(embedding_length / heads)`.
    WidthAtLayers(u32),
}

/// Where the factor on the dot products is applied. The product is the same, its rounding is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleOn {
    /// On the logits, by the attention op.
    Logits,
    /// On the rotated queries.
    Queries,
}

/// Whether a metadata key has a meaning in an architecture; many files carry keys that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It is ignored.
    Ignored,
    /// It is obeyed if present and not 0.
    Obeyed,
}

/// Which layers attend to a sliding window of `attention.sliding_window` tokens, where that key is present and not 0.
/// `attention.sliding_window_pattern` overrides the period, or lists the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// None; the key is ignored.
    None,
    /// All.
    All,
    /// All but the last of every so many.
    AllButEvery(u32),
}

/// The feed-forward half of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct FfnForm {
    /// The activation.
    pub activation: Activation,
    /// Biases, of dense layers.
    pub bias: Presence,
    /// Whether layers have experts.
    pub experts: Experts,
}

/// The activation of a feed-forward network.
#[derive(Clone, Debug, PartialEq)]
pub enum Activation {
    /// `ffn_gate` and `ffn_up`
    Gated(Glu),
    /// `ffn_up` whose rows are those of the gate and then of up; a file with `ffn_gate` is read as [`Self::Gated`].
    GatedFused(Glu),
    /// `ffn_up` alone.
    Plain(UnaryKind),
}

/// Whether layers have experts.
#[derive(Clone, Debug, PartialEq)]
pub enum Experts {
    /// No layer has.
    Never,
    /// Every layer of a file with `expert_count` has.
    IfCounted(ExpertForm),
    /// Every layer has.
    Always(ExpertForm),
}

impl Experts {
    /// The form of the experts, where there may be some.
    pub const fn form(&self) -> Option<&ExpertForm> {
        match self {
            Experts::Never => None,
            Experts::IfCounted(form) | Experts::Always(form) => Some(form),
        }
    }
}

/// A mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertForm {
    /// What makes weights of the router's logits.
    pub gating: Gating,
    /// Bias of the router.
    pub router_bias: Presence,
    /// Biases of the experts.
    pub bias: Presence,
}

/// What makes weights of the router's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// Softmax over all experts; the weights of those selected are divided by their sum.
    SoftmaxNormalised,
    /// Softmax over the experts selected by their logits.
    SoftmaxOfSelected,
}

/// What leaves the last block.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadForm {
    /// `output`, the projection to logits. A file without an optional one projects by its token embedding.
    pub output: Presence,
    /// Bias of the logits.
    pub bias: Presence,
    /// Whether `logit_scale` multiplies the logits.
    pub logit_scale: KeyUse,
    /// Whether `final_logit_softcapping` bounds the logits.
    pub softcap: KeyUse,
}

impl Arch {
    /// The choices of Llama, which most architectures share: RMS norms before both halves, separate projections
    /// without bias, rotary embedding of halves, SwiGLU, no experts.
    pub const CLASSIC: Arch = Arch {
        name: "",
        embedding: EmbeddingForm {
            scale: EmbeddingScale::One,
            positions: Presence::Absent,
        },
        norm: NormForm {
            kind: NormKind::Rms,
            bias: Presence::Absent,
        },
        norms: BlockNorms::PRE,
        residual: Residual::Sequential,
        attention: AttentionForm {
            qkv: QkvForm::Separate,
            qkv_bias: Presence::Optional,
            out_bias: Presence::Absent,
            qk_norm: QkNorm::None,
            rope: Some(Arch::CLASSIC_ROPE),
            scale: ScaleRule::Head,
            scale_on: ScaleOn::Logits,
            softcap: KeyUse::Ignored,
            window: Window::None,
            sinks: Presence::Absent,
        },
        ffn: FfnForm {
            activation: Activation::Gated(Glu::new(GluKind::Swiglu)),
            bias: Presence::Absent,
            experts: Experts::Never,
        },
        head: HeadForm {
            output: Presence::Optional,
            bias: Presence::Absent,
            logit_scale: KeyUse::Ignored,
            softcap: KeyUse::Ignored,
        },
    };

    /// [`Self::CLASSIC`]'s rotation.
    pub const CLASSIC_ROPE: RopeForm = RopeForm {
        mode: RopeMode::Neox,
        factors: RopeFactors::None,
        windowed: WindowedRope::Same,
    };
}
