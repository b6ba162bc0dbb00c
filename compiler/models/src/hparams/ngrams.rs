use tpc_ir::Interval;
use tpc_ir::op::NgramRows;

use super::keys::Keys;
use crate::error::ArchError;
use crate::size::Size;

/// Hyper-parameters of n-gram embeddings, which one layer reads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NgramHParams {
    pub(crate) layer: u32,
    /// Hashes that select the rows of a token's n-grams.
    pub(crate) hash: NgramRows,
    pub(crate) dim: Size,
    /// Elements of a token's rows together.
    pub(crate) width: Size,
    /// Minimum number of table rows.
    pub(crate) rows: Size,
    pub(crate) taps: Size,
    /// Steps between taps of the convolution.
    pub(crate) dilation: u64,
}

/// Limits of the n-gram length, tables and taps, far above published models.
const MAX_TOKENS: u64 = 64;
const MAX_TABLES: u64 = 1024;
const MAX_TAPS: u64 = 64;

impl NgramHParams {
    pub(super) fn read(keys: &Keys<'_>, n_layer: usize) -> Result<Option<NgramHParams>, ArchError> {
        const LAYERS: &str = "ple.layers";
        const TOKENS: &str = "ple.ngram_size";
        const TABLES: &str = "ple.heads_per_ngram";
        const TAPS: &str = "ple.conv_kernel";
        let layers = keys.list(LAYERS)?;
        let layer = match layers.as_slice() {
            [] => return Ok(None),
            [layer] => u32::try_from(*layer)
                .ok()
                .filter(|&l| (l as usize) < n_layer),
            _ => None,
        };
        let Some(layer) = layer else {
            let expected = format!("one layer below {n_layer}");
            return Err(keys.out_of_range(LAYERS, format!("{layers:?}"), expected));
        };
        let tokens = keys.require_count(TOKENS)?;
        if !(2..=MAX_TOKENS).contains(&tokens) {
            return Err(keys.out_of_range(TOKENS, tokens, format!("2 to {MAX_TOKENS}")));
        }
        let each = keys.require_count(TABLES)?;
        if each > MAX_TABLES {
            return Err(keys.out_of_range(TABLES, each, format!("at most {MAX_TABLES}")));
        }
        let count = (tokens - 1) * each;
        let taps = keys.require_size(TAPS)?;
        if !(2..=MAX_TAPS).contains(&taps.n) {
            return Err(keys.out_of_range(TAPS, taps.n, format!("2 to {MAX_TAPS}")));
        }
        let dim = keys.require_size("embedding_length_per_layer_input")?;
        let hash = hash(keys, tokens as usize, count as usize)?;
        let width = "ple.ngram_size − 1 × ple.heads_per_ngram × embedding_length_per_layer_input";
        Ok(Some(NgramHParams {
            layer,
            rows: Size::try_new(hash.end_row(), "the last of ple.head_offsets and its size")?,
            hash,
            width: Size::product(count, dim.n, width)?,
            dim,
            taps,
            dilation: tokens,
        }))
    }
}

fn hash(keys: &Keys<'_>, tokens: usize, count: usize) -> Result<NgramRows, ArchError> {
    const FACTORS: &str = "ple.layer_multipliers";
    const OFFSETS: &str = "ple.head_offsets";
    const LENGTHS: &str = "ple.head_vocab_sizes";
    let at_least = |key: &'static str, n: usize| {
        let mut list = keys.list(key)?;
        if list.len() < n {
            let found = format!("a list of {}", list.len());
            return Err(keys.out_of_range(key, found, format!("a list of {n}")));
        }
        list.truncate(n);
        Ok(list)
    };
    let factors = at_least(FACTORS, tokens)?;
    let (starts, lengths) = (at_least(OFFSETS, count)?, at_least(LENGTHS, count)?);
    let tables = starts.into_iter().zip(lengths).map(|(start, len)| {
        let end = start.checked_add(len);
        if len == 0 || end.is_none_or(|end| end > 1 << 31) {
            return Err(keys.out_of_range(LENGTHS, len, "at least 1, and rows below 2³¹"));
        }
        Ok(Interval { start, len })
    });
    Ok(NgramRows {
        factors,
        tables: tables.collect::<Result<_, ArchError>>()?,
        end: keys.require_number("ple.eos_token_id")?,
    })
}
