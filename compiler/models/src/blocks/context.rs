use crate::description::Arch;
use crate::hparams::{HParams, LayerHParams};
use crate::options::LowerOptions;

#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) arch: &'a Arch,
    pub(crate) hparams: &'a HParams,
    pub(crate) options: &'a LowerOptions,
}

#[derive(Clone, Copy)]
pub(crate) struct LayerContext<'a> {
    pub(crate) model: Context<'a>,
    pub(crate) layer: &'a LayerHParams,
}
