//! PLaMo.

use tpc_ir::op::{Glu, GluKind};

use crate::description::{
    Activation, Arch, AttentionForm, BlockNorms, FfnForm, Mamba1Form, Presence, QkNorm, QkvForm,
    RecurrentForm, RecurrentLayers, RecurrentMixer, Residual, ScanHeads, ScanNorms,
};

/// `plamo`: parallel sublayers with one norm for both.
pub(crate) const PLAMO: Arch = Arch {
    name: "plamo",
    norms: BlockNorms::SHARED,
    residual: Residual::Parallel,
    ..Arch::CLASSIC
};

/// `plamo2`: selective scans by heads, with attention in some layers, and norms on input and output of sublayers.
pub(crate) const PLAMO2: Arch = Arch {
    name: "plamo2",
    norms: BlockNorms::SANDWICH,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qk_norm: QkNorm::OptionalHeads,
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba1(Mamba1Form {
            heads: ScanHeads::Given,
            norms: ScanNorms::Weighted,
            conv_bias: Presence::Never,
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        activation: Activation::GatedFused(Glu::new(GluKind::Swiglu)),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
