//! The language in which an architecture describes itself: a table of choices, read by the building blocks.
//!
//! A description is a constant and holds no code. [`Arch::CLASSIC`] is the most common set of choices; an architecture
//! states what it does otherwise. What a file may or may not carry is a [`Presence`]; what a metadata key decides is
//! read by `blocks/hparams.rs`.

mod attention;
mod drafts;
mod embedding;
mod experts;
mod ffn;
mod head;
mod models;
mod norms;
mod recurrent;
mod rope;

use tpc_ir::op::{Glu, GluKind, NormKind, RopeMode};

pub use attention::{
    Alibi, AttentionForm, HeadSizes, LatentForm, OutGate, QkNorm, QkNormOrder, QkvForm, ScaleOn,
    ScaleRule, TemperatureForm, ValueNorm, Values, Window, WindowKind,
};
pub use drafts::{DraftForm, Hidden};
pub use embedding::{EmbeddingForm, EmbeddingScale};
pub use experts::{
    ExpertForm, ExpertLayers, Experts, Gating, SharedForm, SharedWidth, Weighed, Weights,
};
pub use ffn::{Activation, FfnForm};
pub use head::{HeadForm, LogitScale};
pub use models::Models;
pub use norms::{BlockNorms, NormForm, Residual, ResidualScale};
pub use recurrent::{
    DeltaNetForm, GateForm, Halves, KeyHeads, RecurrentForm, RecurrentLayers, RecurrentMixer,
};
pub use rope::{RopeFactors, RopeForm, RotatedLayers, Sections, WindowedRope, YarnFactor};

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

/// Whether a metadata key has a meaning in an architecture; many files carry keys that have none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyUse {
    /// It is ignored.
    Ignored,
    /// It is obeyed if present and not 0.
    Obeyed,
    /// It is obeyed if not 0, and where it is absent it is this.
    OrElse(f32),
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
    /// Factor on what joins the residual stream.
    pub residual_scale: ResidualScale,
    /// `layer_output_scale`, a factor on what leaves a block.
    pub layer_scale: Presence,
    /// Which halves a block has.
    pub halves: Halves,
    /// The attention half of a block.
    pub attention: AttentionForm,
    /// Layers that mix tokens in another way.
    pub recurrent: Option<RecurrentForm>,
    /// The feed-forward half of a block.
    pub ffn: FfnForm,
    /// What leaves the last block.
    pub head: HeadForm,
    /// Blocks that guess further tokens ahead, where it is known how they do.
    pub drafts: Option<DraftForm>,
}

impl Arch {
    /// The choices of Llama, which most architectures share: RMS norms before both halves, separate projections
    /// without bias, rotary embedding of halves, SwiGLU, no experts.
    pub const CLASSIC: Arch = Arch {
        name: "",
        embedding: EmbeddingForm {
            scale: EmbeddingScale::One,
            norm: Presence::Absent,
            per_layer: KeyUse::Ignored,
            positions: Presence::Absent,
        },
        norm: NormForm {
            kind: NormKind::Rms,
            bias: Presence::Absent,
        },
        norms: BlockNorms::PRE,
        residual: Residual::Sequential,
        residual_scale: ResidualScale::One,
        layer_scale: Presence::Absent,
        halves: Halves::Both,
        attention: AttentionForm {
            qkv: QkvForm::Separate,
            qkv_bias: Presence::Optional,
            clamp: KeyUse::Ignored,
            values: Values::Projected,
            value_norm: ValueNorm::None,
            shared_kv: KeyUse::Ignored,
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
            out_gate: OutGate::None,
            latent: None,
        },
        recurrent: None,
        ffn: FfnForm {
            activation: Activation::Gated(Glu::new(GluKind::Swiglu)),
            act_scales: Presence::Absent,
            bias: Presence::Absent,
            experts: Experts::Never,
        },
        head: HeadForm {
            norm: "output_norm",
            output: Presence::Optional,
            bias: Presence::Absent,
            logit_scale: LogitScale::None,
            softcap: KeyUse::Ignored,
        },
        drafts: None,
    };

    /// [`Self::CLASSIC`]'s rotation.
    pub const CLASSIC_ROPE: RopeForm = RopeForm {
        mode: RopeMode::Neox,
        sections: Sections::Ignored,
        layers: RotatedLayers::All,
        factors: RopeFactors::None,
        windowed: WindowedRope::Same,
        yarn: YarnFactor::OnElements,
    };
}
