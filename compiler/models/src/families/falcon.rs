//! Falcon 7B, 40B and 180B.

use tpc_ir::op::UnaryKind;

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, FfnForm, NormForm, Presence, QkvForm, Residual,
};

/// `falcon`: parallel sublayers, with one norm (7B) or one each (larger models).
pub(crate) const FALCON: Arch = Arch {
    name: "falcon",
    norm: NormForm::LAYER,
    norms: BlockNorms {
        own_attention: Some("attn_norm_2"),
        ..BlockNorms::SHARED
    },
    residual: Residual::Parallel,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Absent,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::Plain(&[UnaryKind::Gelu]),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
