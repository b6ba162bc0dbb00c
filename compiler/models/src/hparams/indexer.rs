//! The indexer of sparse attention: its sizes, and the layers that have one.

use super::keys::{Keys, Pattern};
use crate::description::{IndexerForm, IndexerLayers};
use crate::error::ArchError;
use crate::size::Size;

/// The indexer of sparse attention.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexerHParams {
    pub(crate) form: IndexerForm,
    pub(crate) heads: Size,
    /// Elements of a head, and of a key.
    pub(crate) dim: Size,
    /// Elements of all heads together.
    pub(crate) width: Size,
    /// Cells that a token attends to.
    pub(crate) top_k: u64,
    /// Whether a layer has an indexer of its own.
    own: Vec<bool>,
}

/// The layers at the begin that have indexers, and after these the period of such layers, where no list says.
const LEADING: usize = 2;
const PERIOD: usize = 4;

impl IndexerHParams {
    /// Reads the sizes, given the number of rotated elements.
    pub(super) fn read(
        keys: &Keys<'_>,
        form: IndexerForm,
        n_layer: usize,
        n_ctx_train: u64,
        rotated: u64,
    ) -> Result<IndexerHParams, ArchError> {
        const DIM: &str = "attention.indexer.key_length";
        let heads = keys.require_size("attention.indexer.head_count")?;
        let dim = keys.require_size(DIM)?;
        if rotated > dim.n {
            return Err(keys.out_of_range(DIM, dim.n, format!("at least {rotated}")));
        }
        Ok(IndexerHParams {
            form,
            heads,
            dim,
            width: Size::product(
                heads.n,
                dim.n,
                "attention.indexer.head_count × attention.indexer.key_length",
            )?,
            top_k: keys.require_count("attention.indexer.top_k")?,
            own: own(keys, form.layers, n_layer, n_ctx_train)?,
        })
    }

    /// Whether that layer has an indexer of its own.
    pub(crate) fn is_in(&self, layer: u32) -> bool {
        self.own.get(layer as usize).copied().unwrap_or(false)
    }
}

fn own(
    keys: &Keys<'_>,
    form: IndexerLayers,
    n_layer: usize,
    n_ctx_train: u64,
) -> Result<Vec<bool>, ArchError> {
    const TYPES: &str = "attention.indexer.types";
    let least = match form {
        IndexerLayers::All => return Ok(vec![true; n_layer]),
        IndexerLayers::ListedOrByContext(least) => Some(least),
        IndexerLayers::Listed => None,
    };
    let own: Vec<bool> = match keys.pattern(TYPES, n_layer)? {
        Some(Pattern::Layers(layers)) => layers,
        Some(Pattern::Period(all)) => vec![all != 0; n_layer],
        None if least.is_none() => vec![false; n_layer],
        None if least.is_some_and(|least| n_ctx_train < least) => vec![true; n_layer],
        None => (0..n_layer)
            .map(|il| il < LEADING || (il - LEADING).is_multiple_of(PERIOD))
            .collect(),
    };
    if own.first() == Some(&false) {
        return Err(keys.out_of_range(TYPES, 0, "1 in the first layer"));
    }
    Ok(own)
}
