use tpc_ir::op::{Glu, GluKind, NormKind, RopeMode};

use super::attention::{
    Alibi, AttentionForm, Direction, HeadSizes, OutGate, QkNorm, QkNormOrder, QkvForm, ScaleOn,
    ScaleRule, TemperatureForm, ValueNorm, ValueSource, Window, WindowKind,
};
use super::drafts::DraftForm;
use super::embedding::{EmbeddingForm, EmbeddingScale};
use super::experts::Experts;
use super::ffn::{Activation, DenseWidth, FfnForm, SwigluLimits};
use super::head::{HeadForm, LogitScale, ModelResult, ScoreForm};
use super::loops::LoopForm;
use super::models::Models;
use super::norms::{BlockNorms, NormForm, Residual, ResidualScale, ResidualSum};
use super::presence::{KeyUse, Presence};
use super::recurrent::{RecurrentForm, Sublayers};
use super::rope::{
    RopeBase, RopeFactors, RopeForm, RopeLayers, RotatedPart, Sections, WindowedRope, YarnFactor,
};

/// The description of an architecture.
#[derive(Clone, Debug, PartialEq)]
pub struct Arch {
    /// Value of `general.architecture`, and prefix of the metadata keys.
    pub name: &'static str,
    /// Input of the first layer.
    pub embedding: EmbeddingForm,
    /// Normalisation of the residual stream and the output.
    pub norm: NormForm,
    /// Norms of a layer.
    pub norms: BlockNorms,
    /// Connection of sublayers with the residual stream.
    pub residual: Residual,
    /// The sum of a sublayer's input and output.
    pub residual_sum: ResidualSum,
    /// Factor on a sublayer's output.
    pub residual_scale: ResidualScale,
    /// `mudd.tap_count`: in layers with `mudd.tap_indices` of at least 0, attention reads a mixture of the inputs of
    /// these layers, and the residual stream is another mixture. `mudd_down` and `mudd_up` give the weights.
    pub taps: KeyUse,
    /// `layer_output_scale`, a factor on a layer's output.
    pub layer_scale: Presence,
    /// `rescale_every_n_layers`: the output of the last of every so many layers is halved (0: off).
    pub rescale: KeyUse,
    /// `layer_output_scale`: every layer's output also adds the first layer's input times this factor.
    pub embedding_skip: Presence,
    /// Number of runs of the layers.
    pub loops: LoopForm,
    /// Layer tensors for images, which text does not use.
    pub of_images: &'static [&'static str],
    /// `adapters.count` low-rank adapters. A token of `adapters.token_ids_activate` switches its adapter on for itself
    /// and later tokens of the sequence, and has the embedding of the token in `adapters.token_ids_substitute`.
    /// Adapter 0 serves tokens before any switch.
    pub adapters: KeyUse,
    /// A layer's sublayers.
    pub sublayers: Sublayers,
    /// Attention.
    pub attention: AttentionForm,
    /// Recurrent layers.
    pub recurrent: Option<RecurrentForm>,
    /// Feed-forward sublayer.
    pub ffn: FfnForm,
    /// Projection to logits.
    pub head: HeadForm,
    /// Draft blocks, if described.
    pub drafts: Option<DraftForm>,
}

impl Arch {
    /// Llama's choices, which most architectures share: RMS norms before both sublayers, separate projections, rotation
    /// of half-head pairs, SwiGLU, no experts.
    pub const CLASSIC: Arch = Arch {
        name: "",
        embedding: EmbeddingForm {
            table: Presence::Required,
            scale: EmbeddingScale::One,
            norm: Presence::Absent,
            plain_norm: false,
            per_layer: KeyUse::Ignored,
            per_layer_tokens: Presence::Required,
            ngrams: KeyUse::Ignored,
            positions: Presence::Absent,
            types: Presence::Absent,
        },
        norm: NormForm {
            kind: NormKind::Rms,
            rms: KeyUse::Ignored,
            groups: KeyUse::Ignored,
            weight: Presence::Required,
            bias: Presence::Absent,
        },
        norms: BlockNorms::PRE,
        residual: Residual::Sequential,
        residual_sum: ResidualSum::Plain,
        residual_scale: ResidualScale::One,
        taps: KeyUse::Ignored,
        layer_scale: Presence::Absent,
        rescale: KeyUse::Ignored,
        embedding_skip: Presence::Absent,
        loops: LoopForm::Once,
        of_images: &[],
        adapters: KeyUse::Ignored,
        sublayers: Sublayers::Both,
        attention: AttentionForm {
            direction: Direction::Causal,
            qkv: QkvForm::Separate,
            qkv_bias: Presence::Optional,
            clamp: KeyUse::Ignored,
            value_source: ValueSource::Projected,
            value_norm: ValueNorm::None,
            shared_kv: KeyUse::Ignored,
            kv_sources: KeyUse::Ignored,
            log_scale: Presence::Absent,
            temperature: TemperatureForm::None,
            out_bias: Presence::Absent,
            value_scale: KeyUse::Ignored,
            head_sizes: HeadSizes::Same,
            qk_norm: QkNorm::None,
            qk_norm_order: QkNormOrder::NormFirst,
            rope: Some(Arch::CLASSIC_ROPE),
            alibi: Alibi::None,
            scale: ScaleRule::Head,
            scale_on: ScaleOn::Logits,
            softcap: KeyUse::Ignored,
            window: Window::None,
            window_kind: WindowKind::Sliding,
            window_in: Models::All,
            window_default: None,
            sinks: Presence::Absent,
            token_values: Presence::Absent,
            own_value: Presence::Absent,
            out_norm: ValueNorm::None,
            out_gate: OutGate::None,
            gate_bias: Presence::Absent,
            latent: None,
            latent_queries: KeyUse::Read,
            latent_key_norm: Presence::Absent,
            compressed: None,
            indexer: None,
        },
        recurrent: None,
        ffn: FfnForm {
            activation: Activation::Gated(Glu::new(GluKind::Swiglu)),
            limits: SwigluLimits::Ignored,
            width: DenseWidth::Given,
            act_scales: Presence::Absent,
            bias: Presence::Absent,
            gate_biased: true,
            narrow: None,
            by_name: KeyUse::Ignored,
            channel_mix: None,
            experts: Experts::None,
        },
        head: HeadForm {
            result: ModelResult::Logits,
            scores: ScoreForm::Tanh,
            norm: Some("output_norm"),
            output: Presence::Optional,
            bias: Presence::Absent,
            logit_scale: LogitScale::None,
            softcap: KeyUse::Ignored,
            sigmoid: KeyUse::Ignored,
            hidden: None,
        },
        drafts: None,
    };

    /// Rotation of [`Self::CLASSIC`].
    pub const CLASSIC_ROPE: RopeForm = RopeForm {
        mode: RopeMode::Neox,
        sections: Sections::Ignored,
        base: RopeBase::Given,
        part: RotatedPart::Given,
        layers: RopeLayers::All,
        factors: RopeFactors::None,
        windowed: WindowedRope::Same,
        yarn: YarnFactor::OnElements,
        beta_fast: 32.0,
    };
}
