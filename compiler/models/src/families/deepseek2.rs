//! DeepSeek 2 to 3.2, GLM 5, Kimi K2, and Mistral's models of the same design.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, DraftForm, ExpertForm, Experts, FfnForm, Gating, HeadForm, IndexerEps,
    IndexerForm, IndexerLayers, IndexerPart, IndexerTensors, KeyUse, LatentForm, Presence,
    RopeFactors, RopeForm, RopeLayers, Selection, SharedForm, SharedWidth, TemperatureForm,
    YarnFactor,
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

/// `mistral-large4`: layers may lack rotation, and may read the caches of other layers.
pub(crate) const MISTRAL_LARGE4: Arch = Arch {
    name: "mistral-large4",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        latent_queries: KeyUse::Ignored,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            layers: RopeLayers::ListedOrPlain,
            factors: RopeFactors::Required,
            ..Arch::CLASSIC_ROPE
        }),
        kv_sources: KeyUse::Read,
        log_scale: Presence::Required,
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfNormedInput,
            mode: RopeMode::Norm,
            rotated: IndexerPart::First,
            layers: IndexerLayers::ListedOrAll,
            eps: IndexerEps::LayerNormKey,
            selects: Selection::Cells,
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            selection_bias: Presence::Absent,
            shared: Some(SharedForm::plain(SharedWidth::CountedAsExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        softcap: KeyUse::Read,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
