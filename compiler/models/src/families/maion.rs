//! Maion Coder.

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, ExpertLatent, ExpertLayers, Experts, FfnForm,
    HeadForm, Presence, QkNorm, RopeForm, RopeLayers, Window,
};

/// `maion-coder`: layers with a window rotate, and experts work on a latent vector.
pub(crate) const MAION_CODER: Arch = Arch {
    name: "maion-coder",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            layers: RopeLayers::OnlyWindowed,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::Interleaved,
            latent: Some(ExpertLatent {
                length: "moe_latent_size",
                required: true,
                down: "ffn_latent_down",
                norm: None,
                each_norm: None,
                sum_norm: None,
                up: "ffn_latent_up",
            }),
            ..ExpertForm::CLASSIC
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
