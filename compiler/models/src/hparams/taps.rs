use super::keys::Keys;
use crate::description::KeyUse;
use crate::error::ArchError;
use crate::size::Size;

/// Layers whose inputs a layer mixes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TapHParams {
    /// Number of inputs that a layer mixes.
    pub(crate) count: Size,
    /// Width of the network that weighs the inputs.
    pub(crate) width: Size,
    /// The layers of each layer's inputs; `None` for a layer that reads only its own input.
    layers: Vec<Option<Vec<u32>>>,
}

impl TapHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        used: KeyUse,
        n_layer: usize,
    ) -> Result<Option<TapHParams>, ArchError> {
        const COUNT: &str = "mudd.tap_count";
        const INDICES: &str = "mudd.tap_indices";
        let count = match used {
            KeyUse::Ignored => None,
            KeyUse::Read | KeyUse::ReadOr(_) => keys.count(COUNT)?,
        };
        let Some(count) = count else {
            return Ok(None);
        };
        let n = usize::try_from(count).unwrap_or(usize::MAX);
        let indices = keys.signed_list(INDICES)?;
        if indices.len() < n.saturating_mul(n_layer) {
            let found = format!("a list of {}", indices.len());
            let expected = format!("{COUNT} numbers for each of {n_layer} layers");
            return Err(keys.out_of_range(INDICES, found, expected));
        }
        let layers = indices
            .chunks(n)
            .take(n_layer)
            .enumerate()
            .map(|(il, taps)| {
                if taps.first().is_none_or(|&tap| tap < 0) {
                    return Ok(None);
                }
                let earlier = |&tap: &i32| u32::try_from(tap).ok().filter(|&t| t as usize <= il);
                let taps: Option<Vec<u32>> = taps.iter().map(earlier).collect();
                taps.map(Some).ok_or_else(|| {
                    let expected = format!("0 to {il} in layer {il}, or -1 first");
                    keys.out_of_range(INDICES, "another number", expected)
                })
            });
        Ok(Some(TapHParams {
            count: Size::try_new(count, COUNT)?,
            width: keys.require_size("mudd.feed_forward_length")?,
            layers: layers.collect::<Result<_, ArchError>>()?,
        }))
    }

    pub(crate) fn of_layer(&self, layer: u32) -> Option<&[u32]> {
        self.layers.get(layer as usize)?.as_deref()
    }
}
