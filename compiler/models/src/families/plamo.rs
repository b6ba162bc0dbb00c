//! PLaMo 1 to 3.

use tpc_ir::op::{Glu, GluKind};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, FfnForm, Mamba1Form, Presence, QkNorm, QkvForm,
    RecurrentForm, RecurrentLayers, RecurrentMixer, Residual, RopeForm, ScanHeads, ScanNorms,
    Window, WindowedRope,
};

pub(crate) const PLAMO: Arch = Arch {
    name: "plamo",
    norms: BlockNorms::SHARED,
    residual: Residual::Parallel,
    ..Arch::CLASSIC
};

pub(crate) const PLAMO2: Arch = Arch {
    name: "plamo2",
    norms: BlockNorms {
        bare: &[
            "post_attention_norm",
            "post_ffw_norm",
            "ssm_dt_norm",
            "ssm_b_norm",
            "ssm_c_norm",
        ],
        ..BlockNorms::SANDWICH
    },
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qk_norm: QkNorm::OptionalHeads,
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba1(Mamba1Form {
            heads: ScanHeads::Given,
            norms: ScanNorms::Weighted,
            conv_bias: Presence::Absent,
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

pub(crate) const PLAMO3: Arch = Arch {
    name: "plamo3",
    norms: BlockNorms {
        bare: &["post_attention_norm", "post_ffw_norm"],
        ..BlockNorms::SANDWICH
    },
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Absent,
        qk_norm: QkNorm::Head,
        rope: Some(RopeForm {
            windowed: WindowedRope::Local(10_000.0),
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::AllButEvery(8),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
