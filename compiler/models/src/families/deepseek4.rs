//! DeepSeek 4.

use tpc_ir::op::RopeMode;

use crate::description::{
    Arch, AttentionForm, CompressedForm, ExpertForm, ExpertLayers, Experts, FfnForm, Gating,
    HeadForm, HyperForm, IndexerEps, IndexerForm, IndexerLayers, IndexerPart, IndexerTensors,
    KeyUse, Presence, Residual, RopeBase, RopeForm, Selection, SharedForm, SharedWidth, StreamsEnd,
    SwigluLimits, Window, WindowedRope, YarnFactor,
};

/// `deepseek4`: mixed residual streams; attention to a window and to blocks of all tokens. An indexer selects among the
/// short blocks.
pub(crate) const DEEPSEEK4: Arch = Arch {
    name: "deepseek4",
    residual: Residual::Hyper(HyperForm::Mixed(StreamsEnd::Gated)),
    attention: AttentionForm {
        compressed: Some(CompressedForm {
            indexed: 4,
            plain: 128,
        }),
        window: Window::All,
        sinks: Presence::Required,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            base: RopeBase::OfBlocks,
            windowed: WindowedRope::UnscaledPlainBase,
            yarn: YarnFactor::None,
            ..Arch::CLASSIC_ROPE
        }),
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfLatent,
            mode: RopeMode::Norm,
            rotated: IndexerPart::Last,
            layers: IndexerLayers::All,
            eps: IndexerEps::Model,
            selects: Selection::Cells,
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        limits: SwigluLimits::OnGateOfAll,
        experts: Experts::Always(ExpertForm {
            layers: ExpertLayers::All,
            gating: Gating::RootSoftplus,
            selection_bias: Presence::Required,
            by_token: KeyUse::Read,
            shared: Some(SharedForm::plain(SharedWidth::CountedAsExpert)),
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    head: HeadForm {
        output: Presence::Required,
        ..Arch::CLASSIC.head
    },
    of_images: &["exp_probs_b_vl.bias"],
    ..Arch::CLASSIC
};
