//! Ops that are computed on every device, of whole sources.

use super::{Call, Outcome, Rule};
use crate::meta::refusal::Class;
use crate::meta::states::State;

pub(super) const WHOLE: Rule = Rule {
    ops: &[
        "DUP",
        "ADD1",
        "ACC",
        "SUM",
        "COUNT_EQUAL",
        "REPEAT_BACK",
        "SILU_BACK",
        "RMS_NORM_BACK",
        "OUT_PROD",
        "SET",
        "DIAG",
        "DIAG_MASK_INF",
        "DIAG_MASK_ZERO",
        "SOFT_MAX_BACK",
        "GET_ROWS_BACK",
        "CONV_TRANSPOSE_1D",
        "IM2COL",
        "IM2COL_BACK",
        "IM2COL_3D",
        "COL2IM_1D",
        "CONV_2D",
        "CONV_3D",
        "CONV_2D_DW",
        "CONV_TRANSPOSE_2D",
        "POOL_1D",
        "POOL_2D",
        "POOL_2D_BACK",
        "UPSCALE",
        "PAD_REFLECT_1D",
        "ROLL",
        "ARANGE",
        "TIMESTEP_EMBEDDING",
        "TRI",
        "FLASH_ATTN_BACK",
        "SSM_SCAN",
        "WIN_PART",
        "WIN_UNPART",
        "GET_REL_POS",
        "ADD_REL_POS",
        "RWKV_WKV6",
        "RWKV_WKV7",
        "GATED_LINEAR_ATTN",
        "SOLVE_TRI",
        "LIGHTNING_INDEXER",
        "DSV4_HC_COMB",
        "DSV4_HC_PRE",
        "DSV4_HC_POST",
        "MAP_CUSTOM1",
        "MAP_CUSTOM2",
        "MAP_CUSTOM3",
        "CUSTOM",
        "CROSS_ENTROPY_LOSS",
        "CROSS_ENTROPY_LOSS_BACK",
        "OPT_STEP_ADAMW",
        "OPT_STEP_SGD",
    ],
    says: "all sources mirrored → mirrored",
    apply: whole,
};

fn whole(call: &Call<'_>) -> Outcome {
    match call.whole_from(0) {
        true => Ok(State::Mirrored),
        false => call.refused(Class::Whole, "it takes mirrored sources only"),
    }
}
