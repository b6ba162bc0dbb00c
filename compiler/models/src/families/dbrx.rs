use tpc_ir::op::NormKind;

use crate::description::{
    Arch, AttentionForm, BlockNorms, ExpertForm, Experts, FfnForm, KeyUse, NormForm, QkvForm,
};

pub(crate) const DBRX: Arch = Arch {
    name: "dbrx",
    norm: NormForm {
        kind: NormKind::Layer,
        ..Arch::CLASSIC.norm
    },
    norms: BlockNorms {
        // Name of the feed-forward input norm in DBRX files.
        pre_ffn: Some("attn_output_norm"),
        ..BlockNorms::PRE
    },
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        clamp: KeyUse::Read,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::MIXTRAL),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
