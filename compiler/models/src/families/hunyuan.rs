//! Hunyuan, dense and A13B, the text part of its vision model, and versions 3 and 4.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, DraftForm, ExpertForm, ExpertLayers, ExpertWidth, Experts, FfnForm,
    GateWidth, Gating, HeadForm, HyperForm, IndexerEps, IndexerForm, IndexerLayers, IndexerPart,
    IndexerTensors, LatentForm, OutGate, Presence, QkNorm, QkNormOrder, Residual, RopeBase,
    RopeForm, Sections, Selection, SharedForm, SharedWidth, SwigluLimits,
};

pub(crate) const HUNYUAN_DENSE: Arch = Arch {
    name: "hunyuan-dense",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        qk_norm_order: QkNormOrder::RotationFirst,
        ..Arch::CLASSIC.attention
    },
    ..Arch::CLASSIC
};

pub(crate) const HUNYUAN_MOE: Arch = Arch {
    name: "hunyuan-moe",
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            shared: Some(SharedForm::plain(SharedWidth::GivenOrDense)),
            ..ExpertForm::MIXTRAL
        }),
        ..Arch::CLASSIC.ffn
    },
    ..HUNYUAN_DENSE
};

/// `hunyuan_vl`: the text part. If the file has sections, tokens have positions in space. A key stretches the context.
pub(crate) const HUNYUAN_VL: Arch = Arch {
    name: "hunyuan_vl",
    attention: AttentionForm {
        rope: Some(RopeForm {
            sections: Sections::Mrope,
            base: RopeBase::TimesAlpha,
            ..Arch::CLASSIC_ROPE
        }),
        ..HUNYUAN_DENSE.attention
    },
    ..HUNYUAN_DENSE
};

/// `hy_v3`: norms on heads. Layers with a router have a shared expert, and routed experts that biased sigmoids select.
pub(crate) const HY_V3: Arch = Arch {
    name: "hy_v3",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::WithRouter,
            width: ExpertWidth::GivenOrShareOfDense,
            gating: Gating::Sigmoid,
            selection_tensor: "exp_probs_b",
            shared: Some(SharedForm::plain(SharedWidth::GivenOrExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    drafts: Some(DraftForm::CLASSIC),
    ..Arch::CLASSIC
};

/// `hy_v4`: parallel residual streams, gated latent attention with sinks, in some files an indexer.
pub(crate) const HY_V4: Arch = Arch {
    name: "hy_v4",
    residual: Residual::Hyper(HyperForm::Gated),
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            ..Arch::CLASSIC_ROPE
        }),
        sinks: Presence::Required,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Elements, Presence::Required),
        indexer: Some(IndexerForm {
            presence: Presence::Optional,
            tensors: IndexerTensors::OfLatent,
            mode: RopeMode::Norm,
            rotated: IndexerPart::Last,
            layers: IndexerLayers::Listed,
            eps: IndexerEps::Model,
            selects: Selection::Cells,
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        limits: SwigluLimits::OnGate,
        experts: Experts::Always(ExpertForm {
            shared: Some(SharedForm::plain(SharedWidth::CountedAsExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    ..Arch::CLASSIC
};
