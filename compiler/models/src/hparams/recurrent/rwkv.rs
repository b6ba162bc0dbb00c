use crate::description::{Rwkv6Form, Rwkv7Form};
use crate::error::ArchError;
use crate::hparams::keys::Keys;
use crate::size::Size;

const HEAD: &str = "wkv.head_size";

/// Heads of RWKV's recurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WkvHeads {
    pub(crate) size: Size,
    pub(crate) count: Size,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rwkv6HParams {
    pub(crate) form: Rwkv6Form,
    pub(crate) heads: WkvHeads,
    /// Heads of keys and values.
    pub(crate) kv_heads: u64,
    /// Elements of all keys or values.
    pub(crate) kv_width: Size,
    /// Rank of a mixture, and of all mixtures together.
    pub(crate) mix: Size,
    pub(crate) mixes: Size,
    pub(crate) decay: Size,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rwkv7HParams {
    pub(crate) form: Rwkv7Form,
    pub(crate) heads: WkvHeads,
    pub(crate) decay: Size,
    /// Rank of the correction's rate.
    pub(crate) rate: Size,
    /// Rank of the share of the first layer's values.
    pub(crate) value: Size,
    /// Rank of the gate; `None` without a gate.
    pub(crate) gate: Option<Size>,
}

impl WkvHeads {
    fn read(keys: &Keys<'_>, embd: Size) -> Result<WkvHeads, ArchError> {
        let size = keys.require_size(HEAD)?;
        keys.require_divisor(HEAD, size.n, "embedding_length", embd.n)?;
        let count = Size::try_new(embd.n / size.n, "embedding_length / wkv.head_size")?;
        Ok(WkvHeads { size, count })
    }
}

/// Number of mixtures with the previous token in RWKV 6: decay, key, value, receptance and gate.
pub(crate) const MIXES: u64 = 5;

impl Rwkv6HParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: Rwkv6Form,
        embd: Size,
    ) -> Result<Rwkv6HParams, ArchError> {
        const KV: &str = "attention.head_count_kv";
        let heads = WkvHeads::read(keys, embd)?;
        let kv_heads = match form {
            Rwkv6Form::Bonus => None,
            Rwkv6Form::Gated => keys.count(KV)?,
        };
        let kv_heads = kv_heads.unwrap_or(heads.count.n);
        let of = "embedding_length / wkv.head_size";
        keys.require_divisor(KV, kv_heads, of, heads.count.n)?;
        let mix = keys.require_size("time_mix_extra_dim")?;
        Ok(Rwkv6HParams {
            form,
            heads,
            kv_heads,
            kv_width: Size::product(kv_heads, heads.size.n, "the heads of keys and values")?,
            mix,
            mixes: Size::product(MIXES, mix.n, "5 × time_mix_extra_dim")?,
            decay: keys.require_size("time_decay_extra_dim")?,
        })
    }
}

impl Rwkv7HParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        form: Rwkv7Form,
        embd: Size,
    ) -> Result<Rwkv7HParams, ArchError> {
        const GATE: &str = "attention.gate_lora_rank";
        let gate = keys.count(GATE)?.map(|n| Size::try_new(n, GATE));
        Ok(Rwkv7HParams {
            form,
            heads: WkvHeads::read(keys, embd)?,
            decay: keys.require_size("attention.decay_lora_rank")?,
            rate: keys.require_size("attention.iclr_lora_rank")?,
            value: keys.require_size("attention.value_residual_mix_lora_rank")?,
            gate: gate.transpose()?,
        })
    }
}
