use crate::description::{Arch, AttentionForm, Presence, QkvForm, RopeBase, RopeForm};

/// `cogvlm`: the text part. Images have their own matrices in every layer.
pub(crate) const COGVLM: Arch = Arch {
    name: "cogvlm",
    attention: AttentionForm {
        qkv: QkvForm::FusedThirds,
        qkv_bias: Presence::Absent,
        rope: Some(RopeForm {
            base: RopeBase::Fixed,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    of_images: &[
        "vis_attn_qkv.weight",
        "vis_attn_output.weight",
        "vis_gate.weight",
        "vis_up.weight",
        "vis_down.weight",
    ],
    ..Arch::CLASSIC
};
