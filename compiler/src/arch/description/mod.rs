//! The language in which an architecture describes itself: a table of choices, read by the building blocks.
//!
//! A description is a constant and holds no code. [`Arch::CLASSIC`] is the most common set of choices; an architecture
//! states what it does otherwise. What a file may or may not carry is a [`Presence`]; what a metadata key decides is
//! read by `blocks/hparams.rs`.

mod attention;
mod embedding;
mod experts;
mod ffn;
mod head;
mod norms;
mod rope;

use tpc_ir::op::{Glu, GluKind, NormKind, RopeMode};

pub use attention::{AttentionForm, QkNorm, QkvForm, ScaleOn, ScaleRule, Window};
pub use embedding::{EmbeddingForm, EmbeddingScale};
pub use experts::{ExpertForm, Experts, Gating};
pub use ffn::{Activation, FfnForm};
pub use head::HeadForm;
pub use norms::{BlockNorms, NormForm, Residual};
pub use rope::{RopeFactors, RopeForm, WindowedRope};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
    /// It is ignored.
    Ignored,
    /// It is obeyed if present and not 0.
    Obeyed,
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
