//! Metadata keys of models that compute embeddings.

use tpc_gguf::Metadata;
use tpc_ir::op::GluKind;

use super::keys::Keys;
use crate::description::{Direction, KeyUse, Presence};
use crate::error::ArchError;
use crate::size::Size;

/// Returns the gated function that `hidden_activation` names, in the spellings of model configurations.
pub(super) fn gated_function(keys: &Keys<'_>, used: KeyUse) -> Result<Option<GluKind>, ArchError> {
    const KEY: &str = "hidden_activation";
    if used == KeyUse::Ignored {
        return Ok(None);
    }
    Ok(match keys.text(KEY)? {
        Some("gelu" | "gelu_python") => Some(GluKind::GegluErf),
        Some(
            "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" | "gelu_accurate" | "gelu_python_tanh"
            | "geglu",
        ) => Some(GluKind::Geglu),
        Some("silu" | "swish" | "swiglu") => Some(GluKind::Swiglu),
        Some("reglu") => Some(GluKind::Reglu),
        Some("relu") => {
            let expected = "a gated function such as gelu, silu or reglu";
            return Err(keys.out_of_range(KEY, "relu", expected));
        }
        Some(_) | None => None,
    })
}

/// Returns the number of token types of a model that may have vectors for them.
pub(super) fn token_types(
    metadata: &Metadata,
    presence: Presence,
) -> Result<Option<Size>, ArchError> {
    const KEY: &str = "tokenizer.ggml.token_type_count";
    if presence == Presence::Absent {
        return Ok(None);
    }
    match metadata.require_u64(KEY)? {
        0 => Err(ArchError::OutOfRange {
            key: KEY.to_owned(),
            found: "0".to_owned(),
            expected: "at least 1".to_owned(),
        }),
        n => Size::try_new(n, KEY).map(Some),
    }
}

/// Checks that `attention.causal` agrees with the tokens that the description lets a token attend to.
pub(super) fn check_direction(keys: &Keys<'_>, form: Direction) -> Result<(), ArchError> {
    const KEY: &str = "attention.causal";
    let given = keys.flag(KEY)?;
    match (form, given) {
        (Direction::BidirectionalByKey, Some(false))
        | (Direction::Bidirectional, _)
        | (Direction::Causal, Some(true) | None) => Ok(()),
        (Direction::BidirectionalByKey, Some(true)) => Err(keys.out_of_range(
            KEY,
            "true",
            "false (tpc does not support a causal model of this architecture)",
        )),
        (Direction::BidirectionalByKey, None) => Err(keys.out_of_range(
            KEY,
            "missing, which means true,",
            "false (tpc does not support a causal model of this architecture)",
        )),
        (Direction::Causal, Some(false)) => Err(keys.out_of_range(
            KEY,
            "false",
            "true (tpc does not support a model of this architecture that attends to later tokens)",
        )),
    }
}

/// Returns the numbers of a projected embedding.
pub(super) fn result_size(keys: &Keys<'_>, n_embd: u64) -> Result<Size, ArchError> {
    const KEY: &str = "embedding_length_out";
    match keys.count(KEY)? {
        Some(n) => Size::try_new(n, KEY),
        None => Size::try_new(n_embd, "embedding_length"),
    }
}
