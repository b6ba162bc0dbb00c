//! DeepSeek 2 to 3.2, GLM 5, Kimi K2, and Mistral's models of the same design.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, DraftForm, ExpertForm, Experts, FfnForm, Gating, IndexerEps, IndexerForm,
    IndexerLayers, IndexerPart, IndexerTensors, LatentForm, Presence, RopeForm, Selection,
    TemperatureForm, YarnFactor,
};

pub(crate) const DEEPSEEK2: Arch = Arch {
    name: "deepseek2",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        temperature: TemperatureForm::PerLength,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            yarn: YarnFactor::OnLogits,
            ..Arch::CLASSIC_ROPE
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::IfCounted(ExpertForm::DEEPSEEK),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};

pub(crate) const MISTRAL4: Arch = Arch {
    name: "mistral4",
    ..DEEPSEEK2
};

pub(crate) const DEEPSEEK32: Arch = Arch {
    name: "deepseek32",
    attention: AttentionForm {
        temperature: TemperatureForm::None,
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfLatent,
            mode: RopeMode::Neox,
            rotated: IndexerPart::First,
            layers: IndexerLayers::All,
            eps: IndexerEps::Fixed(1e-6),
            selects: Selection::Cells,
        }),
        ..DEEPSEEK2.attention
    },
    ..DEEPSEEK2
};

/// `glm-dsa`: layers may share an indexer's selection.
pub(crate) const GLM_DSA: Arch = Arch {
    name: "glm-dsa",
    attention: AttentionForm {
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfLatent,
            mode: RopeMode::Norm,
            rotated: IndexerPart::First,
            layers: IndexerLayers::ListedOrByContext(1 << 20),
            eps: IndexerEps::Fixed(0.0),
            selects: Selection::Cells,
        }),
        ..DEEPSEEK32.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            gating: Gating::Sigmoid,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..DEEPSEEK32
};
