//! The catalogue of what can be wrong with a model, for `tpc explain`.

use tpc_ir::CodeDoc;

/// Every code of [`ArchError`](super::ArchError), in order.
pub const CODES: &[CodeDoc] = &[
    CodeDoc {
        code: "TPC0150",
        title: "architecture not supported",
        doc: "`general.architecture` names how a model computes; each needs a description, and for this one there is \
              none. Example: `rwkv7`. Cure: use one of those listed; a fine-tune usually keeps the architecture of \
              its base model, so check the spelling if the file was edited. Adding an ordinary architecture is one \
              short file (see the book).",
    },
    CodeDoc {
        code: "TPC0151",
        title: "hyper-parameter out of range",
        doc: "A metadata key has a value that no model can have: a count of 0 or beyond any published model, a NaN, a \
              negative epsilon. Example: `llama.block_count` = 4000000000. Cure: convert the model again, or correct \
              the key.",
    },
    CodeDoc {
        code: "TPC0152",
        title: "hyper-parameters contradict one another",
        doc: "Two metadata keys cannot both be right. Example: `llama.attention.head_count` = 32 with \
              `llama.attention.head_count_kv` = 5: every KV head serves the same number of query heads. \
              Cure: convert the model again, or correct the key.",
    },
    CodeDoc {
        code: "TPC0153",
        title: "layer without heads or feed-forward width",
        doc: "Keys may list a value per layer, and hybrid architectures list 0 where a layer has no attention or no \
              feed-forward part. In the architecture that the file names every layer has both. Example: \
              `llama.attention.head_count_kv` = [8, 0, 8]. Cure: check `general.architecture`; pruned variants of \
              Llama have their own (`deci`).",
    },
    CodeDoc {
        code: "TPC0154",
        title: "unknown rope scaling",
        doc: "`rope.scaling.type` says how positions beyond the trained context are rotated; guessing would give wrong \
              results. Example: `dynamic`. Cure: convert the model again with a current llama.cpp, which writes none, \
              linear, yarn or longrope.",
    },
    CodeDoc {
        code: "TPC0155",
        title: "size overflows",
        doc: "A product of hyper-parameters is larger than any tensor can be. Example: 2^31 heads of 2^31 elements. \
              Cure: correct the key, or convert the model again.",
    },
    CodeDoc {
        code: "TPC0156",
        title: "tensor missing",
        doc: "The architecture needs a tensor that the file does not have. Example: `blk.3.attn_v.weight` of a file \
              cut in two. Cure: check that all shards are there; convert models with one tensor per expert \
              (`blk.0.ffn_up.0.weight`) again.",
    },
    CodeDoc {
        code: "TPC0157",
        title: "tensor of the wrong shape",
        doc: "A tensor's shape differs from what the hyper-parameters say; the message names the first axis that \
              differs and the keys that decide it. Example: `blk.0.attn_k.weight` [4096, 4096] where \
              `attention.head_count_kv` × `attention.key_length` is 1024. Cure: convert the model again, or correct \
              the key if it was edited.",
    },
    CodeDoc {
        code: "TPC0158",
        title: "tensor of unusable elements",
        doc: "Weights are real numbers; norms, biases, attention sinks and rotary factors are added or multiplied \
              element by element and cannot be quantised. Example: `token_embd.weight` of i32, `output_norm.weight` \
              of q8_0. Cure: convert or quantise the model again with a current llama.cpp.",
    },
    CodeDoc {
        code: "TPC0159",
        title: "one of two tensors missing",
        doc: "Two tensors that only make sense together: the norms of queries and of keys, or the factors of \
              frequencies for long and for short contexts. The file has one of them. Example: \
              `rope_factors_long.weight` without `rope_factors_short.weight`. Cure: convert the model again.",
    },
    CodeDoc {
        code: "TPC0160",
        title: "cache type does not fit",
        doc: "A row of the KV cache is a head, and quantised types store whole blocks. Example: `--cache-type-k q8_0` \
              (blocks of 32) with heads of 80 elements. Types that cannot be written at run time, such as q4_k, \
              do not fit any model. Keys and values are checked apart, layer by layer. Cure: use f16 (f32, bf16), or a \
              type whose blocks divide the head.",
    },
    CodeDoc {
        code: "TPC0161",
        title: "context longer than the learned positions",
        doc: "The model learned one vector per position and has none beyond. Example: `--ctx-size 4096` with GPT-2, \
              which has 1024. Cure: a shorter context.",
    },
    CodeDoc {
        code: "TPC0162",
        title: "description does not fit together",
        doc: "An architecture's description combines blocks whose shapes disagree for this model's hyper-parameters. \
              All tensors were found with the shapes the description asked for, so the description, not the file, is \
              wrong. Example: attention whose value heads and output projection were described with different sizes. \
              Cure: report it.",
    },
    CodeDoc {
        code: "TPC0163",
        title: "no block to draft tokens with",
        doc: "`--spec-type draft-mtp` plans the blocks that guess further tokens ahead (multi-token prediction): the last \
              `nextn_predict_layers` of `block_count`, with tensors such as `blk.64.nextn.eh_proj.weight`. The file has \
              none, or how its architecture's compute is not described. Example: a Qwen 3.5 that was converted without \
              them. Cure: leave the option out, or take a file that has them; `tpc inspect -v` lists its tensors.",
    },
];
