use crate::description::{
    Arch, AttentionForm, ExpertForm, ExpertLayers, ExpertWeights, Experts, FfnForm, Mamba1Form,
    Presence, RecurrentForm, RecurrentLayers, RecurrentMixer, ScanHeads, ScanNorms,
};

pub(crate) const JAMBA: Arch = Arch {
    name: "jamba",
    attention: AttentionForm {
        rope: None,
        ..Arch::CLASSIC.attention
    },
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba1(Mamba1Form {
            heads: ScanHeads::Channels,
            norms: ScanNorms::Weighted,
            conv_bias: Presence::Required,
        }),
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            layers: ExpertLayers::WithRouter,
            weights: ExpertWeights::AsGiven,
            ..ExpertForm::MIXTRAL
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
