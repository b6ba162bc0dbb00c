//! dots.

use tpc_ir::op::{RopeMode, UnaryKind};

use crate::description::{
    Arch, AttentionForm, ExpertForm, Experts, FfnForm, GateWidth, HeadSizes, IndexerEps,
    IndexerForm, IndexerLayers, IndexerPart, IndexerTensors, LatentForm, OutGate, Presence, QkNorm,
    RopeForm, Selection, Window, WindowedRope,
};

pub(crate) const DOTS1: Arch = Arch {
    name: "dots1",
    attention: AttentionForm {
        qk_norm: QkNorm::Head,
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm::DEEPSEEK),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};

/// `dots3note`: gated latent attention. Some layers have a window and their own sizes; an indexer selects the other
/// layers' cells.
pub(crate) const DOTS3NOTE: Arch = Arch {
    name: "dots3note",
    attention: AttentionForm {
        latent: Some(LatentForm::Absorbed),
        latent_key_norm: Presence::Required,
        head_sizes: HeadSizes::WindowedOwn,
        rope: Some(RopeForm {
            mode: RopeMode::Norm,
            windowed: WindowedRope::OwnBase,
            ..Arch::CLASSIC_ROPE
        }),
        window: Window::Listed,
        out_gate: OutGate::Projected(UnaryKind::Sigmoid, GateWidth::Heads, Presence::Required),
        indexer: Some(IndexerForm {
            presence: Presence::Required,
            tensors: IndexerTensors::OfLatent,
            mode: RopeMode::Neox,
            rotated: IndexerPart::First,
            layers: IndexerLayers::All,
            eps: IndexerEps::Fixed(1e-6),
            selects: Selection::Cells,
        }),
        ..Arch::CLASSIC.attention
    },
    ffn: FfnForm {
        experts: Experts::Always(ExpertForm {
            selection_bias: Presence::Required,
            ..ExpertForm::DEEPSEEK
        }),
        ..Arch::CLASSIC.ffn
    },
    ..Arch::CLASSIC
};
