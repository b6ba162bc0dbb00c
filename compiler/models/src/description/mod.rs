//! Descriptions of architectures: constants without code, which choose hyper-parameters and building blocks.
//!
//! [`Arch::CLASSIC`] has the most common choices; an architecture states its differences. A [`Presence`] states the
//! presence of a tensor, a [`KeyUse`] the use of a metadata key.

mod arch;
mod attention;
mod compressed;
mod drafts;
mod embedding;
mod experts;
mod ffn;
mod head;
mod hyper;
mod indexer;
mod loops;
mod models;
mod norms;
mod presence;
mod recurrent;
mod rope;

pub use arch::Arch;
pub use attention::{
    Alibi, AttentionForm, Direction, GateWidth, HeadSizes, LatentForm, OutGate, QkNorm,
    QkNormOrder, QkvForm, ScaleOn, ScaleRule, TemperatureForm, ValueNorm, ValueSource, Window,
    WindowKind,
};
pub use compressed::CompressedForm;
pub use drafts::{DraftForm, DraftInput, DraftNorm};
pub use embedding::{EmbeddingForm, EmbeddingScale};
pub use experts::{
    DenseBeside, ExpertForm, ExpertInput, ExpertLatent, ExpertLayers, ExpertWeights, ExpertWidth,
    Experts, Gating, RouterInput, SelectedBy, SharedForm, SharedGate, SharedWidth, WeightedSide,
};
pub use ffn::{Activation, ChannelMix, DenseWidth, FfnForm, SwigluLimits};
pub use head::{HeadForm, LogitScale, ModelResult, ScoreForm};
pub use hyper::{HyperForm, StreamsEnd};
pub use indexer::{IndexerEps, IndexerForm, IndexerLayers, IndexerPart, IndexerTensors, Selection};
pub use loops::LoopForm;
pub use models::Models;
pub use norms::{BlockNorms, NormForm, PostEps, Residual, ResidualScale, ResidualSum, WeightPlace};
pub use presence::{KeyUse, Presence};
pub use recurrent::{
    DecayShape, DeltaNetForm, GateForm, KdaDecay, KdaForm, KeyHeads, Mamba1Form, RecurrentForm,
    RecurrentLayers, RecurrentMixer, Rwkv6Form, Rwkv7Form, ScanHeads, ScanNorms, Sublayers,
};
pub use rope::{
    RopeBase, RopeFactors, RopeForm, RopeLayers, RotatedPart, Sections, WindowedRope, YarnFactor,
};
