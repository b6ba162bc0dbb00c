//! The codes of defects of GGUF files, TPC0100 to TPC0149.

tpc_ir::codes! {
    pub(super) static;

    IO = error(
        "TPC0100",
        "file cannot be read or written",
        "The system refuses access, or the path is a directory or a device.",
    )
    .example("`tpc plan model.guf` for a file called `model.gguf`.")
    .cure("check the path and its permissions.");

    NOT_GGUF = error(
        "TPC0101",
        "not a GGUF file",
        "The file does not begin with the bytes `GGUF`.",
    )
    .example("a `.safetensors` file, a PyTorch `.bin`, a GGML file before August 2023, a Git LFS pointer.")
    .cure("convert the model with llama.cpp's `convert_hf_to_gguf.py`, or download the real file.");

    UNSUPPORTED_VERSION = error(
        "TPC0102",
        "unsupported GGUF version",
        "tpc reads versions 2 and 3. Version 1 was used in August 2023 only.",
    )
    .example("a version word of 1.")
    .cure("convert the model again with a current llama.cpp, or update tpc.");

    TRUNCATED_HEADER = error(
        "TPC0103",
        "header ends early",
        "The file ends inside its header.",
    )
    .example("the first megabyte of a model whose token list has two.")
    .cure("compare the checksum with the publisher's, and fetch the file again.");

    HEADER_TOO_LARGE = error(
        "TPC0104",
        "header too large",
        "The limit of one gibibyte protects memory. Published headers have some megabytes.",
    )
    .example("a string of 2^40 bytes.")
    .cure("fetch the file again from a source you trust.");

    IMPLAUSIBLE_COUNT = error(
        "TPC0105",
        "count larger than the file",
        "The file cannot hold that number of tensors, pairs or elements: it is damaged or cut short.",
    )
    .example("2^60 tensors in a file of 4 GB.")
    .cure("fetch the file again.");

    BAD_KEY = error(
        "TPC0106",
        "invalid metadata key",
        "A key has 1 to 65535 bytes of UTF-8.",
    )
    .example("a key of length 0.")
    .cure("convert the model again, or fetch the file again.");

    DUPLICATE_KEY = error(
        "TPC0107",
        "metadata key given twice",
        "Readers would disagree about the value.",
    )
    .example("`general.name` from the converter, and from an editing script.")
    .cure("remove one with a GGUF metadata editor.");

    UNKNOWN_VALUE_TYPE = error(
        "TPC0108",
        "unknown metadata value type",
        "Value types are 0 (u8) to 12 (f64). The file is damaged, or its writer faulty.",
    )
    .example("value type 13.")
    .cure("fetch or convert the file again.");

    BAD_BOOL = error(
        "TPC0109",
        "invalid boolean",
        "A boolean is one byte, 0 or 1.",
    )
    .example("`tokenizer.ggml.add_bos_token` stored as 255.")
    .cure("set the key again, or fetch the file again.");

    NESTED_TOO_DEEP = error(
        "TPC0110",
        "arrays nested too deep",
        "tpc reads nested arrays to a depth of 4; published models use 1.",
    )
    .example("five array types in a row.")
    .cure("flatten the value.");

    BAD_ALIGNMENT = error(
        "TPC0111",
        "invalid alignment",
        "`general.alignment` is a u32 and a power of two, at least 8. Tensor offsets are multiples of the alignment.",
    )
    .example("an alignment of 48.")
    .cure("convert the model again; remove the key only if offsets fit the default of 32.");

    BAD_TENSOR_NAME = error(
        "TPC0112",
        "invalid tensor name",
        "A name has 1 to 64 bytes of UTF-8.",
    )
    .example("`base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight`.")
    .cure("convert the model with a converter for its architecture.");

    DUPLICATE_TENSOR = error(
        "TPC0113",
        "tensor given twice",
        "Names are unique in a file and among shards.",
    )
    .example("shards of two downloads that divide the tensors differently.")
    .cure("convert or fetch the model again.");

    BAD_DIM_COUNT = error(
        "TPC0114",
        "invalid number of dimensions",
        "A tensor has 1 to 4 dimensions.",
    )
    .example("5 dimensions, after a faulty conversion.")
    .cure("convert the model again with a current converter.");

    ZERO_DIM = error(
        "TPC0115",
        "dimension of zero",
        "Every dimension is at least 1.",
    )
    .example("a router with 0 experts.")
    .cure("convert the model again without the tensor.");

    DIM_OVERFLOW = error(
        "TPC0116",
        "dimensions too large",
        "Elements and bytes must be below 2^63. The file is damaged.",
    )
    .example("[2^32, 2^32].")
    .cure("fetch the file again.");

    PARTIAL_BLOCK = error(
        "TPC0117",
        "row is not a whole number of blocks",
        "Quantised types store blocks of 32 to 256 elements along dimension 0.",
    )
    .example("q4_k (blocks of 256) for rows of 2880.")
    .cure("keep the tensor in f16, or use a type with blocks of 32.");

    UNKNOWN_TENSOR_TYPE = error(
        "TPC0118",
        "unknown tensor type",
        "The type is withdrawn (4, 5, 31 to 33, 36 to 38), too new, or a fork's. tpc knows ik_llama.cpp's (133 to \
         158, 202 to 399).",
    )
    .example("type 31, q4_0_4_4.")
    .cure("requantise from the original weights.");

    MISALIGNED_OFFSET = error(
        "TPC0119",
        "misaligned tensor",
        "Tensor data begin at multiples of the alignment.",
    )
    .example("offset 100 with alignment 32.")
    .cure("convert the model again, or restore an edited `general.alignment`.");

    OFFSET_OVERFLOW = error(
        "TPC0120",
        "tensor offset too large",
        "Offset plus length is 2^63 or more. The file is damaged.",
    )
    .example("offset 2^63.")
    .cure("fetch the file again.");

    TENSOR_OVERLAP = error(
        "TPC0121",
        "tensors overlap",
        "Two tensors share bytes. Converters never write such files.",
    )
    .example("two tensors at offset 0.")
    .cure("convert the model again.");

    TRUNCATED_DATA = error(
        "TPC0122",
        "tensor data cut short",
        "The file has only a part of its tensor data. A bare header can be planned, not run.",
    )
    .example("a download interrupted at 3 GB of 5.")
    .cure("resume or repeat the download.");

    MISSING_SHARD = error(
        "TPC0123",
        "shard missing",
        "A file of the split model is not at the expected path.",
    )
    .example("`m-00002-of-00003.gguf` was not downloaded.")
    .cure("put all shards into one folder.");

    SPLIT_NAME = error(
        "TPC0124",
        "shard misnamed",
        "The file is one of several shards, but not named `…-00001-of-0000N.gguf`.",
    )
    .example("a shard renamed to `model.gguf`.")
    .cure("give all shards their original names.");

    SPLIT_MISMATCH = error(
        "TPC0125",
        "shards disagree",
        "`split.no`, `split.count`, `split.tensors.count` or the byte order contradicts the name or other shards.",
    )
    .example("a shard of another quantisation.")
    .cure("fetch all shards again.");

    SPLIT_TENSOR_COUNT = error(
        "TPC0126",
        "wrong number of tensors in the shards",
        "The shards have more or fewer tensors than `split.tensors.count`.",
    )
    .example("a shard of another variant.")
    .cure("fetch all shards again.");

    MIXED_SHARD_DATA = error(
        "TPC0127",
        "shard without data",
        "tpc plans bare headers or runs complete files, not mixtures.",
    )
    .example("a shard whose download ended after its header.")
    .cure("fetch the missing data.");

    MISSING_KEY = error(
        "TPC0130",
        "metadata key missing",
        "The architecture or the split needs the key.",
    )
    .example("`llama.block_count`.")
    .cure("set the key, or convert the model again with a current llama.cpp.");

    WRONG_TYPE = error(
        "TPC0131",
        "metadata value of the wrong type",
        "Only integers of different widths are interchangeable; a scalar may replace a per-layer array.",
    )
    .example("`llama.rope.freq_base` as a string.")
    .cure("set the key with the type in the message.");

    OUT_OF_RANGE = error(
        "TPC0132",
        "metadata value out of range",
        "An integer is too small or too large.",
    )
    .example("`llama.block_count` = -1.")
    .cure("set the key again, or convert the model again.");

    WRONG_LENGTH = error(
        "TPC0133",
        "per-layer array of the wrong length",
        "The array needs one element per layer.",
    )
    .example("46 values of `attention.head_count_kv` for 47 layers.")
    .cure("set the key again, or convert the model again.");

    DATA_LENGTH = error(
        "TPC0140",
        "wrong amount of tensor data written",
        "The writing program gave a different number of bytes than type and shape need.",
    )
    .example("4096 bytes for 2048 f32.")
    .cure("report it to the authors of the writing program.");
}
