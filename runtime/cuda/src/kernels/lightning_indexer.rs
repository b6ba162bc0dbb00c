//! The indexer of DeepSeek's sparse attention.

use super::kernel::{Request, Selection, grid_1d, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "lightning_indexer",
    text: include_str!("lightning_indexer.cu"),
};

pub(super) fn lightning_indexer(request: &Request<'_>) -> Selection {
    let ([q, k, w], y) = (request.reals()?, request.real_result()?);
    let types = [q, k, w, y].map(|t| t.dtype);
    let template = instance(FAMILY, "lightning_indexer", &types, Arguments::Views);
    kernel(template, Params::new(), grid_1d(y.elements(), request))
}
