//! The codes of models that cannot be built, TPC0150 to TPC0179.

tpc_ir::codes! {
    pub(super) static;

    UNSUPPORTED = error(
        "TPC0150",
        "architecture not supported",
        "`general.architecture` names the architecture of the model, and tpc has no description of this one.",
    )
    .example("`rwkv7`.")
    .cure("use one of the listed architectures; a fine-tune usually keeps the architecture of its base model, so check the \
           spelling if the file was edited. Adding an ordinary architecture is one short file (see the book).");

    OUT_OF_RANGE = error(
        "TPC0151",
        "hyper-parameter out of range",
        "A metadata key has a value that no model can have: a count of 0 or beyond any published model, a NaN, a \
         negative epsilon.",
    )
    .example("`llama.block_count` = 4000000000.")
    .cure("convert the model again, or correct the key.");

    CONTRADICTION = error(
        "TPC0152",
        "hyper-parameters contradict one another",
        "Two metadata keys cannot both be right.",
    )
    .example("`llama.attention.head_count` = 32 with `llama.attention.head_count_kv` = 5: every KV head serves \
              the same number of query heads.")
    .cure("convert the model again, or correct the key.");

    EMPTY_LAYER = error(
        "TPC0153",
        "layer without heads or feed-forward width",
        "Keys may list a value per layer. Hybrid architectures list 0 for layers without attention or without a \
         feed-forward sublayer. In the architecture that the file names every layer has both.",
    )
    .example("`llama.attention.head_count_kv` = [8, 0, 8].")
    .cure("check `general.architecture`; pruned variants of Llama have their own (`deci`).");

    ROPE_SCALING = error(
        "TPC0154",
        "unknown rope scaling",
        "`rope.scaling.type` decides how positions beyond the trained context are rotated. A guess would give \
         wrong results.",
    )
    .example("`dynamic`.")
    .cure("convert the model again with a current llama.cpp, which writes none, linear, yarn or longrope.");

    OVERFLOW = error(
        "TPC0155",
        "size overflows",
        "A product of hyper-parameters exceeds 2^40, the largest size of a tensor's axis that tpc accepts.",
    )
    .example("2^31 heads of 2^31 elements.")
    .cure("correct the key, or convert the model again.");

    MISSING_TENSOR = error(
        "TPC0156",
        "tensor missing",
        "The architecture needs a tensor that the file does not have.",
    )
    .example("`blk.3.attn_v.weight` of a file cut in two.")
    .cure("check that all shards are there; convert models with one tensor per expert (`blk.0.ffn_up.0.weight`) \
           again.");

    WRONG_SHAPE = error(
        "TPC0157",
        "tensor of the wrong shape",
        "A tensor's shape contradicts the hyper-parameters. The message names the first axis that differs and the \
         keys that decide it.",
    )
    .example("`blk.0.attn_k.weight` [4096, 4096] where `attention.head_count_kv` × `attention.key_length` is \
              1024.")
    .cure("convert the model again, or correct the key if it was edited.");

    WRONG_ELEMENTS = error(
        "TPC0158",
        "tensor with an unusable element type",
        "Weights are real numbers. Norms, biases, attention sinks and rotary factors cannot be quantised: they are \
         added or multiplied element by element.",
    )
    .example("`token_embd.weight` of i32, `output_norm.weight` of q8_0.")
    .cure("convert or quantise the model again with a current llama.cpp.");

    MISSING_PARTNER = error(
        "TPC0159",
        "one of two tensors missing",
        "Some tensors come in pairs: the norms of queries and of keys, or the rotary factors for long and for short \
         contexts. The file has one of a pair.",
    )
    .example("`rope_factors_long.weight` without `rope_factors_short.weight`.")
    .cure("convert the model again.");

    CACHE_TYPE = error(
        "TPC0160",
        "cache type does not fit",
        "A row of the KV cache is a head, and quantised types store whole blocks. Types that cannot be written at \
         run time, such as q4_k, fit no model. Keys and values are checked separately, layer by layer.",
    )
    .example("`--cache-type-k q8_0` (blocks of 32) with heads of 80 elements.")
    .cure("use f16 (f32, bf16), or a type whose blocks divide the head.");

    CONTEXT_TOO_LONG = error(
        "TPC0161",
        "context longer than the learned positions",
        "The model has a learned vector for every position, and the context has more positions.",
    )
    .example("`--ctx-size 4096` with GPT-2, which has 1024.")
    .cure("give a shorter context.");

    INCONSISTENT = error(
        "TPC0162",
        "inconsistent description",
        "The description of an architecture combines blocks whose shapes disagree for this model's \
         hyper-parameters. All tensors have the shapes that the description expects, so the description is wrong, \
         not the file.",
    )
    .example("attention whose value heads and output projection were described with different sizes.")
    .cure("report it.");

    NO_DRAFTS = error(
        "TPC0163",
        "no draft block",
        "`--spec-type draft-mtp` plans the draft blocks, which predict further tokens (multi-token prediction): the \
         last `nextn_predict_layers` of `block_count`, with tensors such as `blk.64.nextn.eh_proj.weight`. The \
         file has none, or the draft blocks of its architecture are not described.",
    )
    .example("a Qwen 3.5 that was converted without them.")
    .cure("remove the option, or use a file that has draft blocks; `tpc inspect -v` lists the tensors.");

    HEADS_SELECT = error(
        "TPC0165",
        "context in which heads select blocks by themselves",
        "In a longer context every KV head attends to blocks of tokens that it selects for itself, and tpc has no attention \
         with a mask per head. Up to the limit all blocks are selected, and the results are right.",
    )
    .example("`minimax-m3` with a context beyond `attention.indexer.top_k` blocks.")
    .cure("give a smaller context: `--ctx-size`.");
}
