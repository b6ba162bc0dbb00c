//! Granite 3 and later.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, EmbeddingForm, EmbeddingScale, ExpertForm, Experts, FfnForm, HeadForm,
    KeyUse, LogitScale, Presence, QkvForm, RecurrentForm, RecurrentLayers, RecurrentMixer,
    ResidualScale, RopeFactors, RopeForm, RopeLayers, SharedForm, SharedGate, SharedWidth, Window,
};

/// `granite`: keys decide the rotating layers, experts and shared expert.
pub(crate) const GRANITE: Arch = Arch {
    name: "granite",
    embedding: EmbeddingForm {
        scale: EmbeddingScale::Key,
        ..Arch::CLASSIC.embedding
    },
    residual_scale: ResidualScale::Key,
    attention: AttentionForm {
        out_bias: Presence::Optional,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::Listed,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        bias: Presence::Optional,
        experts: Experts::IfCounted(EXPERTS),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        logit_scale: LogitScale::Divisor,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};

const EXPERTS: ExpertForm = ExpertForm {
    shared: Some(SharedForm::plain(SharedWidth::Given)),
    ..ExpertForm::MIXTRAL
};

/// `granitemoe`: mixtures of experts.
pub(crate) const GRANITEMOE: Arch = Arch {
    name: "granitemoe",
    ..GRANITE
};

pub(crate) const GRANITE_SWA: Arch = Arch {
    name: "granite_swa",
    attention: AttentionForm {
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::ListedOrAll,
            factors: RopeFactors::One,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        sinks: Presence::Required,
        ..GRANITE.attention
    },
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm {
            shared: Some(SharedForm {
                gate_up: SharedGate::Fused,
                ..SharedForm::plain(SharedWidth::Given)
            }),
            ..EXPERTS
        }),
        ..GRANITE.ffn
    },
    ..GRANITE
};

pub(crate) const GRANITEHYBRID: Arch = Arch {
    name: "granitehybrid",
    recurrent: Some(RecurrentForm {
        mixer: RecurrentMixer::Mamba2,
        layers: RecurrentLayers::WithoutKvHeads,
    }),
    ..GRANITEMOE
};

/// `graniteswitch`: tokens switch low-rank adapters on.
pub(crate) const GRANITESWITCH: Arch = Arch {
    name: "graniteswitch",
    adapters: KeyUse::Read,
    attention: AttentionForm {
        qkv: QkvForm::Fused,
        qkv_bias: Presence::Absent,
        out_bias: Presence::Absent,
        ..GRANITE.attention
    },
    ffn: Arch::CLASSIC.ffn,
    ..GRANITE
};
