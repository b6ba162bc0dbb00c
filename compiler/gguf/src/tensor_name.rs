//! Tensor names, as GGUF files and ggml's graphs spell them.

use std::fmt;

/// A tensor name, parsed into a stem and the layer's number.
///
/// Every name parses, and prints unchanged. A number with a sign or leading zeros is part of the stem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TensorName<'a> {
    /// `blk.LAYER.STEM`: a file's tensor, such as `blk.7.attn_q.weight`.
    Block {
        /// The layer.
        layer: u32,
        /// The rest, without a dot before it: `attn_q.weight`.
        stem: &'a str,
    },
    /// `STEM_lLAYER`: a state, such as `cache_k_l7`.
    State {
        /// The layer.
        layer: u32,
        /// The part before `_l`: `cache_k`.
        stem: &'a str,
    },
    /// `STEM-LAYER`: an op's result in llama.cpp's graphs, such as `Qcur-7`.
    Result {
        /// The layer.
        layer: u32,
        /// The part before the hyphen: `Qcur`.
        stem: &'a str,
    },
    /// Any other name, such as `output.weight`.
    Global(&'a str),
}

/// Parses a decimal number without sign and leading zeros.
fn number(digits: &str) -> Option<u32> {
    let plain = digits == "0" || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    if plain { digits.parse().ok() } else { None }
}

impl<'a> TensorName<'a> {
    /// Parses a name.
    pub fn parse(name: &'a str) -> TensorName<'a> {
        let block = || {
            let (layer, stem) = name.strip_prefix("blk.")?.split_once('.')?;
            let layer = number(layer)?;
            Some(TensorName::Block { layer, stem })
        };
        let state = || {
            let (stem, layer) = name.rsplit_once("_l")?;
            let layer = number(layer)?;
            Some(TensorName::State { layer, stem })
        };
        let result = || {
            let (stem, layer) = name.rsplit_once('-')?;
            let layer = number(layer).filter(|_| stem.ends_with(char::is_alphanumeric))?;
            Some(TensorName::Result { layer, stem })
        };
        block()
            .or_else(state)
            .or_else(result)
            .unwrap_or(TensorName::Global(name))
    }

    /// Returns the layer's number.
    pub const fn layer(self) -> Option<u32> {
        match self {
            TensorName::Block { layer, .. }
            | TensorName::State { layer, .. }
            | TensorName::Result { layer, .. } => Some(layer),
            TensorName::Global(_) => None,
        }
    }

    /// Returns the name without the layer.
    pub const fn stem(self) -> &'a str {
        match self {
            TensorName::Block { stem, .. }
            | TensorName::State { stem, .. }
            | TensorName::Result { stem, .. }
            | TensorName::Global(stem) => stem,
        }
    }

    /// Returns the layer and stem of a block's tensor.
    pub const fn block(self) -> Option<(u32, &'a str)> {
        match self {
            TensorName::Block { layer, stem } => Some((layer, stem)),
            TensorName::State { .. } | TensorName::Result { .. } | TensorName::Global(_) => None,
        }
    }

    /// Returns a cache's layer and kind: `k` for `cache_k_l7`.
    pub fn cache(self) -> Option<(u32, &'a str)> {
        match self {
            TensorName::State { layer, stem } => Some((layer, stem.strip_prefix("cache_")?)),
            TensorName::Block { .. } | TensorName::Result { .. } | TensorName::Global(_) => None,
        }
    }
}

impl fmt::Display for TensorName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorName::Block { layer, stem } => write!(f, "blk.{layer}.{stem}"),
            TensorName::State { layer, stem } => write!(f, "{stem}_l{layer}"),
            TensorName::Result { layer, stem } => write!(f, "{stem}-{layer}"),
            TensorName::Global(name) => f.write_str(name),
        }
    }
}

impl From<TensorName<'_>> for tpc_diag::Name {
    fn from(name: TensorName<'_>) -> tpc_diag::Name {
        use tpc_diag::Name;
        match name {
            TensorName::Block { layer, stem } => Name::of_layer("blk.", layer, format!(".{stem}")),
            TensorName::State { layer, stem } => Name::of_layer(format!("{stem}_l"), layer, ""),
            TensorName::Result { layer, stem } => Name::of_layer(format!("{stem}-"), layer, ""),
            TensorName::Global(name) => Name::plain(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_layers() {
        for (name, layer, stem) in [
            ("blk.7.attn_q.weight", Some(7), "attn_q.weight"),
            ("blk.0.ffn_up.0.weight", Some(0), "ffn_up.0.weight"),
            ("cache_k_l12", Some(12), "cache_k"),
            ("Qcur-31", Some(31), "Qcur"),
            ("output.weight", None, "output.weight"),
            ("blk.07.x", None, "blk.07.x"),
            ("blk.+7.x", None, "blk.+7.x"),
            ("blk.7", None, "blk.7"),
            ("-3", None, "-3"),
            ("a_l", None, "a_l"),
            ("blk.99999999999.x", None, "blk.99999999999.x"),
            ("", None, ""),
        ] {
            let parsed = TensorName::parse(name);
            assert_eq!((parsed.layer(), parsed.stem()), (layer, stem), "{name}");
            assert_eq!(parsed.to_string(), name);
        }
        let cache = TensorName::parse("cache_v_l2");
        assert_eq!((cache.cache(), cache.block()), (Some((2, "v")), None));
    }
}
