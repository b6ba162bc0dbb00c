tpc_ir::codes! {
    pub(super) static;

    UNSUPPORTED = error(
        "TPC0150",
        "architecture not supported",
        "tpc does not describe the architecture in `general.architecture`.",
    )
    .example("`t5`.")
    .cure("use an architecture in the message, and check the spelling in an edited file: a fine-tune keeps its base \
           model's. The book shows how to add one.");

    OUT_OF_RANGE = error(
        "TPC0151",
        "hyper-parameter out of range",
        "A key has an impossible value, such as a count of 0, a NaN, or a negative epsilon.",
    )
    .example("`llama.block_count` = 4000000000.")
    .cure("convert the model again, or correct the key.");

    CONTRADICTION = error(
        "TPC0152",
        "hyper-parameters contradict each other",
        "Two metadata keys contradict each other.",
    )
    .example("`llama.attention.head_count` = 32 and `llama.attention.head_count_kv` = 5, which does not divide 32.")
    .cure("convert the model again, or correct the key.");

    EMPTY_LAYER = error(
        "TPC0153",
        "layer without heads or feed-forward width",
        "A per-layer list has a 0, which only hybrid architectures allow.",
    )
    .example("`llama.attention.head_count_kv` = [8, 0, 8].")
    .cure("check `general.architecture`; pruned Llama variants have their own (`deci`).");

    ROPE_SCALING = error(
        "TPC0154",
        "unknown rope scaling",
        "A guess of `rope.scaling.type` would give wrong results.",
    )
    .example("`dynamic`.")
    .cure("convert the model again with a current llama.cpp (`none`, `linear`, `yarn` or `longrope`).");

    OVERFLOW = error(
        "TPC0155",
        "size overflows",
        "A product of hyper-parameters exceeds 2^40, tpc's largest axis.",
    )
    .example("2^31 heads of 2^31 elements.")
    .cure("correct the key, or convert the model again.");

    MISSING_TENSOR = error(
        "TPC0156",
        "tensor missing",
        "The architecture needs a tensor that the file lacks.",
    )
    .example("`blk.3.attn_v.weight` of a truncated file.")
    .cure("check that all shards are there; convert models with separate expert tensors (`blk.0.ffn_up.0.weight`) \
           again.");

    WRONG_SHAPE = error(
        "TPC0157",
        "tensor of the wrong shape",
        "The shape contradicts the hyper-parameters. The message names the axis and its keys.",
    )
    .example("`blk.0.attn_k.weight` [4096, 4096] with `attention.head_count_kv` × `attention.key_length` = 1024.")
    .cure("convert the model again, or restore an edited key.");

    WRONG_ELEMENTS = error(
        "TPC0158",
        "tensor with an unusable element type",
        "Weights are real numbers. Norms, biases, attention sinks and rotary factors cannot be quantised.",
    )
    .example("`token_embd.weight` of i32, `output_norm.weight` of q8_0.")
    .cure("convert or quantise the model again with a current llama.cpp.");

    MISSING_PARTNER = error(
        "TPC0159",
        "one of two tensors missing",
        "Query and key norms, or rotary factors of long and short contexts, come in pairs.",
    )
    .example("`rope_factors_long.weight` without `rope_factors_short.weight`.")
    .cure("convert the model again.");

    CACHE_TYPE = error(
        "TPC0160",
        "cache type does not fit",
        "Cache rows are heads, and quantised types store whole blocks. Types such as q4_k cannot be written at run \
         time.",
    )
    .example("`--cache-type-k q8_0` (blocks of 32) with heads of 80.")
    .cure("use f16, bf16 or f32, or a type whose blocks divide the head.");

    CONTEXT_TOO_LONG = error(
        "TPC0161",
        "context longer than the learned positions",
        "The model has one learned vector per position.",
    )
    .example("`--ctx-size 4096` with GPT-2, which has 1024.")
    .cure("use a shorter context: `--ctx-size`.");

    INCONSISTENT = error(
        "TPC0162",
        "inconsistent description of an architecture",
        "tpc's description combines blocks of conflicting shapes. The file is not at fault.",
    )
    .example("value heads and output projection of different sizes.")
    .cure("this is a bug in tpc: report it with the model's header.");

    NO_DRAFTS = error(
        "TPC0163",
        "no draft block",
        "`--spec-type draft-mtp` plans multi-token-prediction blocks, the last `nextn_predict_layers` of the model. \
         The file lacks such blocks, or tpc does not describe them.",
    )
    .example("a Qwen 3.5 converted without draft blocks.")
    .cure("remove the option, or use a file with tensors such as `blk.64.nextn.eh_proj.weight`.");

    HEADS_SELECT = error(
        "TPC0165",
        "context too long for block selection",
        "Beyond the limit every KV head selects its own blocks of tokens, which tpc does not support. Up to the \
         limit, results are right.",
    )
    .example("`minimax-m3` with a context beyond `attention.indexer.top_k` blocks.")
    .cure("use a smaller context: `--ctx-size`.");
}
