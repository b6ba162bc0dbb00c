//! The codes of defects of GGUF files, TPC0100 to TPC0149.

tpc_ir::codes! {
    pub(super) static;

    IO = error(
        "TPC0100",
        "file cannot be read or written",
        "The operating system refuses access, or the path names a directory or a device.",
    )
    .example("`tpc plan model.guf` for a file called `model.gguf`.")
    .cure("check the path and its permissions.");

    NOT_GGUF = error(
        "TPC0101",
        "not a GGUF file",
        "A GGUF file begins with the four bytes `GGUF`; this one does not.",
    )
    .example("a `.safetensors` file, a PyTorch `.bin`, a GGML file from before August 2023, or a Git LFS pointer.")
    .cure("convert the model with llama.cpp's `convert_hf_to_gguf.py`, or download the real file.");

    UNSUPPORTED_VERSION = error(
        "TPC0102",
        "unsupported GGUF version",
        "tpc reads versions 2 and 3, in either byte order. Version 1 was in use for a few weeks of August 2023.",
    )
    .example("a version word of 1.")
    .cure("convert the model again with a current llama.cpp, or update tpc.");

    TRUNCATED_HEADER = error(
        "TPC0103",
        "header ends early",
        "The file ends inside its header: in the counts, a key, a value or a tensor info.",
    )
    .example("the first megabyte of a model whose token list has two.")
    .cure("compare size and checksum with the publisher's, and fetch the file again.");

    HEADER_TOO_LARGE = error(
        "TPC0104",
        "header too large",
        "The header exceeds one gibibyte; published headers have some megabytes. The limit protects memory from \
         damaged or hostile files.",
    )
    .example("a string length of 2^40 in a sparse file of that size.")
    .cure("fetch the file again from a source you trust.");

    IMPLAUSIBLE_COUNT = error(
        "TPC0105",
        "count larger than the file",
        "The rest of the file cannot hold that number of tensors, metadata pairs or array elements. The file is \
         damaged or cut short.",
    )
    .example("2^60 tensors in a file of 4 GB.")
    .cure("fetch the file again.");

    BAD_KEY = error(
        "TPC0106",
        "invalid metadata key",
        "A metadata key has 1 to 65535 bytes of UTF-8.",
    )
    .example("a key of length 0, in a header overwritten with zeros.")
    .cure("convert the model again, or fetch the file again.");

    DUPLICATE_KEY = error(
        "TPC0107",
        "metadata key given twice",
        "Keys are unique. Different readers would use different values.",
    )
    .example("`general.name` from the converter, and again from an editing script.")
    .cure("remove one of the pairs with a GGUF metadata editor.");

    UNKNOWN_VALUE_TYPE = error(
        "TPC0108",
        "unknown metadata value type",
        "GGUF numbers value types from 0 (u8) to 12 (f64). Another number means that the file is damaged or its \
         writer faulty.",
    )
    .example("value type 13.")
    .cure("fetch or convert the file again.");

    BAD_BOOL = error(
        "TPC0109",
        "invalid boolean",
        "A boolean is one byte, 0 or 1. Another value means that the file is damaged or its writer faulty.",
    )
    .example("`tokenizer.ggml.add_bos_token` stored as 255.")
    .cure("set the key again, or fetch the file again.");

    NESTED_TOO_DEEP = error(
        "TPC0110",
        "arrays nested too deep",
        "tpc reads nested arrays to a depth of 4, which protects its stack. Published models use a depth of 1.",
    )
    .example("five array types in a row.")
    .cure("flatten the value.");

    BAD_ALIGNMENT = error(
        "TPC0111",
        "invalid alignment",
        "`general.alignment` is a u32, a power of two, and at least 8. Tensor offsets are multiples of the \
         alignment, and kernels load words of 8 bytes.",
    )
    .example("an alignment of 48.")
    .cure("convert the model again; remove the key only if the offsets fit the default of 32.");

    BAD_TENSOR_NAME = error(
        "TPC0112",
        "invalid tensor name",
        "A tensor name has 1 to 64 bytes of UTF-8.",
    )
    .example("a name from a training framework, such as \
              `base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight`.")
    .cure("convert the model with a converter that knows its architecture.");

    DUPLICATE_TENSOR = error(
        "TPC0113",
        "tensor given twice",
        "Tensor names are unique, in a file and among the shards of a split model.",
    )
    .example("shards of two downloads with different numbers of tensors each.")
    .cure("convert or fetch the model again.");

    BAD_DIM_COUNT = error(
        "TPC0114",
        "invalid number of dimensions",
        "A tensor has 1 to 4 dimensions.",
    )
    .example("0 dimensions, or 5 after a faulty conversion of a convolution.")
    .cure("convert the model again with a current converter.");

    ZERO_DIM = error(
        "TPC0115",
        "dimension of zero",
        "Every dimension is at least 1. A tensor without elements is a sign of damage.",
    )
    .example("a router with 0 experts.")
    .cure("convert the model again without the tensor.");

    DIM_OVERFLOW = error(
        "TPC0116",
        "dimensions too large",
        "The number of elements, and of bytes, must be below 2^63. The file is damaged.",
    )
    .example("[2^32, 2^32].")
    .cure("fetch the file again.");

    PARTIAL_BLOCK = error(
        "TPC0117",
        "row is not a whole number of blocks",
        "A quantised type stores blocks of 32 to 256 elements along dimension 0. That dimension must be a multiple \
         of the block length.",
    )
    .example("q4_k (blocks of 256) for a row of 2880 elements.")
    .cure("keep this tensor in f16, or use a type with blocks of 32, as llama-quantize does.");

    UNKNOWN_TENSOR_TYPE = error(
        "TPC0118",
        "unknown tensor type",
        "The type id is withdrawn (4, 5, 31 to 33, 36 to 38), newer than this tpc, or private to a fork. tpc knows \
         the types of ik_llama.cpp (133 to 158, 202 to 399).",
    )
    .example("type 31, q4_0_4_4, in an Arm build of 2024.")
    .cure("requantise from the original weights.");

    MISALIGNED_OFFSET = error(
        "TPC0119",
        "misaligned tensor",
        "Data of every tensor begin at a multiple of the alignment from the start of the data section.",
    )
    .example("offset 100 with alignment 32.")
    .cure("convert the model again, or restore an edited `general.alignment`.");

    OFFSET_OVERFLOW = error(
        "TPC0120",
        "tensor offset too large",
        "The offset of a tensor plus its length is 2^63 or more. The file is damaged.",
    )
    .example("offset 2^63.")
    .cure("fetch the file again.");

    TENSOR_OVERLAP = error(
        "TPC0121",
        "tensors overlap",
        "The data of two tensors share bytes, so one tensor could change the other. Converters never write such \
         files.",
    )
    .example("two tensors at offset 0.")
    .cure("convert the model again.");

    TRUNCATED_DATA = error(
        "TPC0122",
        "tensor data cut short",
        "The file has some of its tensor data, but not all. (A file with only a header can be planned, not run.)",
    )
    .example("a download interrupted at 3 GB of 5.")
    .cure("resume or repeat the download.");

    MISSING_SHARD = error(
        "TPC0123",
        "shard missing",
        "One file of the split model is not in the folder of the others. The message has its expected path.",
    )
    .example("`m-00002-of-00003.gguf` was not downloaded.")
    .cure("put all shards into one folder.");

    SPLIT_NAME = error(
        "TPC0124",
        "shard misnamed",
        "The header describes one of several shards, but the file is not named `…-00001-of-0000N.gguf`. tpc cannot \
         find the others.",
    )
    .example("a shard renamed to `model.gguf`.")
    .cure("give all shards their original names.");

    SPLIT_MISMATCH = error(
        "TPC0125",
        "shards disagree",
        "A shard's `split.no`, `split.count`, `split.tensors.count` or byte order contradicts its name or the other \
         shards.",
    )
    .example("shard 2 of another quantisation under the right name.")
    .cure("fetch all shards of one model again.");

    SPLIT_TENSOR_COUNT = error(
        "TPC0126",
        "wrong number of tensors in the shards",
        "The shards together have more or fewer tensors than `split.tensors.count`.",
    )
    .example("a shard of a variant without its last block.")
    .cure("fetch all shards of one model again.");

    MIXED_SHARD_DATA = error(
        "TPC0127",
        "shard without data",
        "Some shards have tensor data, and another is a bare header. tpc plans bare headers, or runs complete files.",
    )
    .example("shard 3 of a download that ended after its header.")
    .cure("fetch the missing data.");

    MISSING_KEY = error(
        "TPC0130",
        "metadata key missing",
        "The file lacks a key that its architecture or its split needs.",
    )
    .example("`llama.block_count`.")
    .cure("set the key, or convert the model again with a current llama.cpp.");

    WRONG_TYPE = error(
        "TPC0131",
        "metadata value of the wrong type",
        "tpc needs another type. Integers of any width are interchangeable, and a scalar may replace an array of one \
         value per layer. Other types are not interchangeable.",
    )
    .example("`llama.rope.freq_base` as a string.")
    .cure("set the key again with the type in the message.");

    OUT_OF_RANGE = error(
        "TPC0132",
        "metadata value out of range",
        "An integer is too small or too large for its use.",
    )
    .example("`llama.block_count` = -1.")
    .cure("set the key again, or convert the model again.");

    WRONG_LENGTH = error(
        "TPC0133",
        "per-layer array of the wrong length",
        "A per-layer array has one element per layer of the model.",
    )
    .example("46 values of `attention.head_count_kv` for 47 layers.")
    .cure("set the key again, or convert the model again.");

    DATA_LENGTH = error(
        "TPC0140",
        "wrong amount of tensor data written",
        "The program that writes the file gave more or fewer bytes than the tensor's type and shape need.",
    )
    .example("4096 bytes for 2048 f32.")
    .cure("report it to the authors of the program that writes the file.");
}
