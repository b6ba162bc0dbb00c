use super::keys::{Keys, Pattern};
use crate::description::{IndexerEps, IndexerForm, IndexerLayers, IndexerPart, Selection};
use crate::error::ArchError;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexerHParams {
    pub(crate) form: IndexerForm,
    pub(crate) heads: Size,
    /// Elements of a head and of a key.
    pub(crate) dim: Size,
    pub(crate) width: Size,
    /// Number of cells that a token attends to. With blocks, number of tokens in the selected blocks.
    pub(crate) top_k: u64,
    /// Tokens per block of each layer; layers with 0 attend to all tokens. Empty if single cells are selected.
    blocks: Vec<u64>,
    /// True if tokens attend to the tokens after the last whole block.
    pub(crate) tail: bool,
    /// Maximum context in which all tokens are visible. `Some` only if every KV head selects its own blocks.
    pub(crate) dense_up_to: Option<u64>,
    /// Epsilon of the key norm; `None` for the other norms' epsilon.
    pub(crate) eps: Option<f32>,
    /// True for layers with their own indexer.
    own: Vec<bool>,
}

/// Number of first layers with an indexer if the file lacks a list. After these, every `PERIOD`th layer has one.
const LEADING: usize = 2;
const PERIOD: usize = 4;

impl IndexerHParams {
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
        if rotated > dim.n && form.rotated != IndexerPart::None {
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
            blocks: blocks(keys, form.selects, n_layer)?,
            tail: match form.selects {
                Selection::WeightedBlocks => keys
                    .flag("attention.indexer.kpool_select_tail")?
                    .unwrap_or(true),
                Selection::Cells | Selection::MeanBlocks | Selection::BlocksPerHead => true,
            },
            dense_up_to: match form.selects {
                Selection::BlocksPerHead => {
                    let size = keys.require_count("attention.indexer.block_size")?;
                    let blocks = keys.require_count("attention.indexer.top_k")?;
                    Some(blocks.saturating_mul(size))
                }
                Selection::Cells | Selection::MeanBlocks | Selection::WeightedBlocks => None,
            },
            eps: match form.eps {
                IndexerEps::Model => None,
                IndexerEps::Fixed(eps) => Some(eps),
                IndexerEps::LayerNormKey => Some(
                    keys.positive("attention.layer_norm_epsilon")?
                        .unwrap_or(0.0),
                ),
            },
            own: indexer_layers(keys, form.layers, n_layer, n_ctx_train)?,
        })
    }

    /// Returns a layer's tokens per block, 0 if tokens attend to all tokens; `None` if single cells are selected.
    pub(crate) fn block(&self, layer: u32) -> Option<u64> {
        self.blocks.get(layer as usize).copied()
    }

    pub(crate) fn is_in(&self, layer: u32) -> bool {
        self.own.get(layer as usize).copied().unwrap_or(false)
    }
}

fn indexer_layers(
    keys: &Keys<'_>,
    form: IndexerLayers,
    n_layer: usize,
    n_ctx_train: u64,
) -> Result<Vec<bool>, ArchError> {
    const TYPES: &str = "attention.indexer.types";
    let least = match form {
        IndexerLayers::All => return Ok(vec![true; n_layer]),
        IndexerLayers::AfterLeading => {
            let leading = keys.count("leading_dense_block_count")?.unwrap_or(0);
            return Ok((0..n_layer).map(|il| il as u64 >= leading).collect());
        }
        IndexerLayers::ListedOrByContext(least) => Some(least),
        IndexerLayers::Listed => None,
        IndexerLayers::ListedOrAll => Some(u64::MAX),
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

fn blocks(keys: &Keys<'_>, selects: Selection, n_layer: usize) -> Result<Vec<u64>, ArchError> {
    const RATIOS: &str = "attention.compress_ratios";
    const POOL: &str = "attention.indexer.kpool";
    // Limits the graph, which has a few ops per token of a block.
    const MOST: u64 = 64;
    let (key, tokens) = match selects {
        Selection::Cells | Selection::BlocksPerHead => return Ok(Vec::new()),
        Selection::MeanBlocks => {
            let ratios = keys.count_per_layer(RATIOS, n_layer)?;
            (RATIOS, ratios.unwrap_or_else(|| vec![0; n_layer]))
        }
        Selection::WeightedBlocks => (POOL, vec![keys.require_count(POOL)?; n_layer]),
    };
    match tokens.iter().find(|&&n| n == 1 || n > MOST) {
        Some(n) => Err(keys.out_of_range(key, n, format!("2 to {MOST}"))),
        None => Ok(tokens),
    }
}
