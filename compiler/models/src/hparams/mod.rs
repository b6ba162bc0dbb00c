//! Hyper-parameters: a model's metadata, read by the description's rules and checked.
//!
//! Defaults and meanings are llama.cpp's, because files are written for llama.cpp. A 0 often means an absent value.
//! `rope.scaling.*` are read even with the default scaling type. YaRN's factor on rotated elements leaves out the part
//! that the op computes.

mod adapters;
mod compressed;
mod drafts;
mod encoders;
mod experts;
mod factors;
mod ffn;
mod ffn_width;
mod heads;
mod hyper;
mod indexer;
mod keys;
mod latent;
mod layers;
mod limits;
mod loops;
mod mixers;
mod model;
mod ngrams;
mod recurrent;
mod rope;
mod taps;
mod windows;
mod xielu;

pub(crate) use adapters::AdapterHParams;
pub(crate) use compressed::CompressedHParams;
pub(crate) use experts::{ExpertHParams, GroupExperts, Groups};
pub(crate) use ffn::{ExpertWidths, LayerFfn};
pub(crate) use ffn_width::FfnWidth;
pub(crate) use heads::{HeadElements, RopeUse};
pub(crate) use hyper::HyperHParams;
pub(crate) use indexer::IndexerHParams;
pub(crate) use latent::LatentHParams;
pub(crate) use layers::LayerHParams;
pub(crate) use loops::{Loops, Stacks};
pub(crate) use mixers::Mixer;
pub(crate) use model::{HParams, Join, NormHParams};
pub(crate) use ngrams::NgramHParams;
pub(crate) use recurrent::{
    ConvHParams, DeltaNetHParams, KdaHParams, LightningHParams, MIXES, Mamba1HParams,
    RecurrentHParams, Rwkv6HParams, Rwkv7HParams, ShortConvHParams, SsmHParams, TapsShape,
    WkvHeads,
};
pub(crate) use windows::{Reach, WindowSpan};
