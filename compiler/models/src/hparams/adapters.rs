use super::keys::Keys;
use crate::description::KeyUse;
use crate::error::ArchError;
use crate::size::Size;

/// Low-rank adapters that tokens switch on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdapterHParams {
    pub(crate) switches: Vec<Switch>,
    pub(crate) rank: Size,
    /// Number of adapters, with adapter 0.
    pub(crate) slots: Size,
    /// Attention logit of switches; other tokens have its negative.
    pub(crate) gain: f32,
}

/// A token that switches an adapter on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) token: u32,
    /// Token whose embedding replaces the switch's.
    pub(crate) substitute: u32,
}

/// Limits of adapters and ranks, which llama.cpp has too. Each adapter takes a few ops of the graph.
const MOST: u64 = 4096;
/// Vocabulary ids up to this number are exact in f32.
const MAX_ID: u64 = 1 << 24;
const DEFAULT_GAIN: f32 = 15.0;

impl AdapterHParams {
    pub(super) fn read(
        keys: &Keys<'_>,
        used: KeyUse,
        n_vocab: u64,
    ) -> Result<Option<AdapterHParams>, ArchError> {
        const COUNT: &str = "adapters.count";
        const GAIN: &str = "adapters.router_gain";
        const RANK: &str = "adapters.lora_rank";
        const TOKENS: &str = "adapters.token_ids_activate";
        const SUBSTITUTES: &str = "adapters.token_ids_substitute";
        match used {
            KeyUse::Ignored => return Ok(None),
            KeyUse::Read | KeyUse::ReadOr(_) => {}
        }
        let count = keys.require_number(COUNT)?;
        let rank = keys.require_size(RANK)?;
        for (key, n) in [(COUNT, count), (RANK, rank.n)] {
            if n > MOST {
                return Err(keys.out_of_range(key, n, format!("at most {MOST}")));
            }
        }
        let ids = |key| {
            let list = keys.list(key)?;
            if list.len() as u64 != count {
                let found = format!("a list of {}", list.len());
                return Err(keys.out_of_range(key, found, format!("a list of {count}")));
            }
            let most = n_vocab.min(MAX_ID);
            let id = |id: u64| u32::try_from(id).ok().filter(|_| id < most);
            let known: Option<Vec<u32>> = list.iter().map(|&n| id(n)).collect();
            known.ok_or_else(|| keys.out_of_range(key, "another id", format!("ids below {most}")))
        };
        let (tokens, substitutes) = (ids(TOKENS)?, ids(SUBSTITUTES)?);
        let mut sorted = tokens.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(keys.out_of_range(TOKENS, twice[0], "different ids"));
        }
        let switches = tokens.into_iter().zip(substitutes);
        Ok(Some(AdapterHParams {
            switches: switches
                .map(|(token, substitute)| Switch { token, substitute })
                .collect(),
            rank,
            slots: Size::try_new(count + 1, "adapters.count + 1")?,
            gain: match keys.float(GAIN)? {
                Some(gain) if !(2.0 * gain).is_finite() => {
                    return Err(keys.out_of_range(GAIN, gain, "a smaller number"));
                }
                gain => gain.unwrap_or(DEFAULT_GAIN),
            },
        }))
    }
}
