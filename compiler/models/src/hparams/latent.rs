use super::keys::Keys;
use crate::description::{KeyUse, LatentForm};
use crate::error::ArchError;
use crate::size::Size;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LatentHParams {
    pub(crate) form: LatentForm,
    /// Size of the latent vector of queries; `None` if queries are projected from the input.
    pub(crate) q_rank: Option<Size>,
    pub(crate) rank: Size,
    /// Size of a cached row: the latent vector and the keys' rotated part.
    pub(crate) cached: Size,
    pub(crate) dk: u64,
    /// Number of unrotated elements of a query or key, which come first.
    pub(crate) plain: Size,
    /// Number of rotated elements, which follow.
    pub(crate) rotated: u64,
    pub(crate) dv: Size,
    pub(crate) scale: f32,
}

impl LatentHParams {
    /// Reads the sizes, given the number of rotated elements and the square root of YaRN's factor on the logits.
    pub(super) fn read(
        keys: &Keys<'_>,
        form: LatentForm,
        queries: KeyUse,
        rotated: u64,
        yarn: f32,
    ) -> Result<LatentHParams, ArchError> {
        const Q_RANK: &str = "attention.q_lora_rank";
        let size = |own, shared| match keys.count(own)? {
            Some(n) => Size::try_new(n, own),
            None => keys.require_size(shared),
        };
        let dk = size("attention.key_length_mla", "attention.key_length")?;
        let dv = size("attention.value_length_mla", "attention.value_length")?;
        let rank = keys.require_size("attention.kv_lora_rank")?;
        let q_rank = match (queries, keys.count(Q_RANK)?) {
            (KeyUse::Ignored, _) | (_, None) => None,
            (_, Some(n)) => Some(Size::try_new(n, Q_RANK)?),
        };
        let parts = Parts {
            q_rank,
            rank,
            dk,
            dv,
        };
        parts.sizes(keys, form, rotated, yarn)
    }

    /// Returns the sizes in layers whose heads have no rotated part.
    pub(crate) fn without_rotation(&self) -> LatentHParams {
        LatentHParams {
            cached: self.rank,
            plain: Size::new(self.dk, "the key length"),
            rotated: 0,
            ..self.clone()
        }
    }

    /// Returns the sizes in layers with a window. `self` has the sizes in other layers.
    pub(super) fn in_window_layers(
        &self,
        keys: &Keys<'_>,
        rotated: u64,
        yarn: f32,
    ) -> Result<LatentHParams, ArchError> {
        let size = |key, full| match keys.count(key)? {
            Some(n) => Size::try_new(n, key),
            None => Ok(full),
        };
        let full_dk = Size::try_new(self.dk, "attention.key_length_mla")?;
        let dk = size("attention.key_length_mla_swa", full_dk)?;
        let dv = size("attention.value_length_mla_swa", self.dv)?;
        let rank = size("attention.kv_lora_rank_swa", self.rank)?;
        let parts = Parts {
            q_rank: self.q_rank,
            rank,
            dk,
            dv,
        };
        parts.sizes(keys, self.form, rotated, yarn)
    }
}

struct Parts {
    q_rank: Option<Size>,
    rank: Size,
    dk: Size,
    dv: Size,
}

impl Parts {
    fn sizes(
        self,
        keys: &Keys<'_>,
        form: LatentForm,
        rotated: u64,
        yarn: f32,
    ) -> Result<LatentHParams, ArchError> {
        let Parts {
            q_rank,
            rank,
            dk,
            dv,
        } = self;
        let plain =
            dk.n.checked_sub(rotated)
                .ok_or_else(|| ArchError::Contradiction {
                    key: keys.name("rope.dimension_count"),
                    found: rotated.to_string(),
                    with: format!("{} = {}", keys.name(dk.from), dk.n),
                    expected: format!("at most {}", dk.n),
                })?;
        Ok(LatentHParams {
            form,
            q_rank,
            cached: Size::try_new(
                rank.n + rotated,
                "attention.kv_lora_rank + rope.dimension_count",
            )?,
            plain: Size::try_new(plain, "the key length without rope.dimension_count")?,
            scale: yarn * yarn / (dk.n as f32).sqrt(),
            rank,
            dk: dk.n,
            rotated,
            dv,
        })
    }
}
