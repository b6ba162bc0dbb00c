//! The codes of defects of GGUF files, TPC0100 to TPC0149.

tpc_ir::codes! {
    pub(super) static;

    IO = error(
        "TPC0100",
        "file cannot be read or written",
        "The operating system refused access to the file, or the path names a directory or a device.",
    )
    .example("`tpc plan model.guf`, where the file is called `model.gguf`.")
    .cure("check the path and its permissions.");

    NOT_GGUF = error(
        "TPC0101",
        "not a GGUF file",
        "A GGUF file begins with the four bytes `GGUF`; this one does not, so it is not read as a model.",
    )
    .example("a `.safetensors` file, a PyTorch `.bin`, a GGML file from before August 2023, or a Git LFS pointer \
              of a hundred bytes.")
    .cure("convert the model with llama.cpp's `convert_hf_to_gguf.py`, or download the real file.");

    UNSUPPORTED_VERSION = error(
        "TPC0102",
        "unsupported GGUF version",
        "Versions 2 and 3 are read, in either byte order. Version 1 had 32-bit counts and lived for a few weeks \
         of August 2023; versions above 3 do not exist yet.",
    )
    .example("a version word of 1.")
    .cure("convert the model again with a current llama.cpp, or update this program.");

    TRUNCATED_HEADER = error(
        "TPC0103",
        "header ends early",
        "The file ends inside its header: in the counts, a key, a value or a tensor info. The lengths before \
         that point announce more.",
    )
    .example("the first megabyte of a model whose token list alone is two.")
    .cure("compare the size and checksum with the publisher's and fetch the file again.");

    HEADER_TOO_LARGE = error(
        "TPC0104",
        "header too large",
        "The header goes on past one gibibyte. Published headers have some megabytes, nearly all of it the token \
         list; the limit keeps a damaged or hostile file from filling memory.",
    )
    .example("a string length of 2^40 in a sparse file of that size.")
    .cure("fetch the file again from a source you trust.");

    IMPLAUSIBLE_COUNT = error(
        "TPC0105",
        "count larger than the file",
        "A count of tensors, of metadata pairs or of array elements is larger than the bytes that follow could \
         hold, even at the smallest size of each.",
    )
    .example("2^60 tensors in a file of 4 GB.")
    .cure("the file is damaged or cut short; fetch it again.");

    BAD_KEY = error(
        "TPC0106",
        "bad metadata key",
        "A metadata key has 1 to 65535 bytes of UTF-8.",
    )
    .example("a key of length 0, which is what a header overwritten with zeros shows.")
    .cure("convert the model again, or fetch the file again.");

    DUPLICATE_KEY = error(
        "TPC0107",
        "metadata key given twice",
        "Keys are unique. Of two values, some readers would use the first and others the second.",
    )
    .example("`general.name` both from the converter and from an editing script that appended instead of \
              replacing.")
    .cure("remove one of the pairs with an editor for GGUF metadata.");

    UNKNOWN_VALUE_TYPE = error(
        "TPC0108",
        "unknown value type",
        "The GGUF specification numbers the types of metadata values from 0 (u8) to 12 (f64). Any other number \
         means that the reader and the writer disagree about where they are in the file.",
    )
    .example("value type 13.")
    .cure("the file is damaged or from a faulty program; fetch or convert it again.");

    BAD_BOOL = error(
        "TPC0109",
        "bad boolean",
        "A boolean is one byte, 0 or 1.",
    )
    .example("`tokenizer.ggml.add_bos_token` stored as 255.")
    .cure("the file is damaged or from a faulty program; set the key again.");

    NESTED_TOO_DEEP = error(
        "TPC0110",
        "arrays nested too deep",
        "Arrays of arrays are read to a depth of 4. The format allows any depth, no published model uses more \
         than 1, and a reader without a limit can be made to exhaust its stack.",
    )
    .example("five array types in a row.")
    .cure("flatten the value.");

    BAD_ALIGNMENT = error(
        "TPC0111",
        "bad alignment",
        "`general.alignment` is a u32, a power of two, and at least 8: tensor offsets are multiples of it, and \
         kernels load words of 8 bytes.",
    )
    .example("an alignment of 48.")
    .cure("remove the key (the default is 32) only if the offsets agree; otherwise convert the model again.");

    BAD_TENSOR_NAME = error(
        "TPC0112",
        "bad tensor name",
        "A tensor name has 1 to 64 bytes of UTF-8.",
    )
    .example("a name copied from a training framework, such as \
              `base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight`.")
    .cure("convert the model with a converter that knows its architecture.");

    DUPLICATE_TENSOR = error(
        "TPC0113",
        "tensor given twice",
        "Tensor names are unique, in a file and among the shards of a split model.",
    )
    .example("shards from two downloads with a different number of tensors each.")
    .cure("convert or fetch the model again.");

    BAD_DIM_COUNT = error(
        "TPC0114",
        "bad number of dimensions",
        "A tensor has 1 to 4 dimensions.",
    )
    .example("0 dimensions, or 5 after a faulty conversion of a convolution.")
    .cure("convert the model again with a current converter.");

    ZERO_DIM = error(
        "TPC0115",
        "dimension of zero",
        "Every dimension is at least 1; a tensor without elements has no use in a model and is a sign of damage.",
    )
    .example("a router with 0 experts.")
    .cure("convert the model again and leave the tensor out.");

    DIM_OVERFLOW = error(
        "TPC0116",
        "dimensions too large",
        "The product of the dimensions, and the bytes they take, must be below 2^63, so that no offset computed \
         from them overflows.",
    )
    .example("[2^32, 2^32].")
    .cure("the file is damaged; fetch it again.");

    PARTIAL_BLOCK = error(
        "TPC0117",
        "partial block",
        "A quantised type stores blocks of 32 to 256 elements along dimension 0, so that dimension is a multiple \
         of the block length.",
    )
    .example("q4_k (blocks of 256) for a row of 2880 elements.")
    .cure("keep this tensor in f16, or use a type with blocks of 32, as llama-quantize does.");

    UNKNOWN_TENSOR_TYPE = error(
        "TPC0118",
        "unknown tensor type",
        "The type id of a tensor is unknown. Ids 4 and 5 (q4_2, q4_3), 31 to 33 and 36 to 38 \
         (layouts repacked for one CPU) are withdrawn; others may be newer than this program or private to a \
         fork. The types of ik_llama.cpp (133 to 158, 202 to 399) are known.",
    )
    .example("type 31, q4_0_4_4, in an Arm build of 2024.")
    .cure("requantise from the original weights.");

    MISALIGNED_OFFSET = error(
        "TPC0119",
        "misaligned tensor",
        "The data of every tensor begin at a multiple of the alignment from the start of the data section.",
    )
    .example("offset 100 with alignment 32.")
    .cure("convert the model again; if `general.alignment` was edited, restore it.");

    OFFSET_OVERFLOW = error(
        "TPC0120",
        "tensor offset too large",
        "The offset of a tensor plus its length is 2^63 or more, beyond any file.",
    )
    .example("offset 2^63.")
    .cure("the file is damaged; fetch it again.");

    TENSOR_OVERLAP = error(
        "TPC0121",
        "tensors overlap",
        "The data of two tensors share bytes. No converter writes that, and a reader that trusted it would let \
         one tensor change another.",
    )
    .example("two tensors at offset 0.")
    .cure("convert the model again.");

    TRUNCATED_DATA = error(
        "TPC0122",
        "tensor data cut short",
        "The file has some of its tensor data, but ends before the last of them. (A file that ends with its \
         header is fine: it can be planned, not run.)",
    )
    .example("a download interrupted at 3 GB of 5.")
    .cure("resume or repeat the download.");

    MISSING_SHARD = error(
        "TPC0123",
        "shard missing",
        "The model is split over several files and one of them is not beside the others. The message gives its expected path.",
    )
    .example("`m-00002-of-00003.gguf` was not downloaded.")
    .cure("put all shards into one directory.");

    SPLIT_NAME = error(
        "TPC0124",
        "shard misnamed",
        "The header says that the file is one of several shards, but the file is not named \
         `…-00001-of-0000N.gguf`, so the others cannot be found.",
    )
    .example("a shard renamed to `model.gguf`.")
    .cure("give all shards their original names.");

    SPLIT_MISMATCH = error(
        "TPC0125",
        "shards disagree",
        "The keys `split.no`, `split.count` and `split.tensors.count` of a shard, or its byte order, do not \
         agree with its name or with the other shards.",
    )
    .example("shard 2 of another quantisation under the right name.")
    .cure("fetch all shards of one model again.");

    SPLIT_TENSOR_COUNT = error(
        "TPC0126",
        "wrong number of tensors in the shards",
        "The shards together hold more or fewer tensors than `split.tensors.count`.",
    )
    .example("one shard replaced by that of a variant without its last block.")
    .cure("fetch all shards of one model again.");

    MIXED_SHARD_DATA = error(
        "TPC0127",
        "shard without data",
        "Some shards hold their tensor data and another is a bare header. A model is either planned from headers \
         or run from complete files.",
    )
    .example("shard 3 of a download that ended just after its header.")
    .cure("fetch the missing data.");

    MISSING_KEY = error(
        "TPC0130",
        "metadata key missing",
        "A key that the architecture or the split needs is absent.",
    )
    .example("`llama.block_count`.")
    .cure("set the key, or convert the model again with a current llama.cpp.");

    WRONG_TYPE = error(
        "TPC0131",
        "metadata value of the wrong type",
        "The value of a key is of another type than the reader needs. Integers of any width are interchangeable, and \
         a scalar may stand for an array of one value per layer. Strings, floats, integers and booleans are not \
         interchangeable.",
    )
    .example("`llama.rope.freq_base` as a string.")
    .cure("set the key again with the type that the message asks for.");

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
        "An array with one value per layer has as many elements as the model has layers.",
    )
    .example("46 values of `attention.head_count_kv` for 47 layers.")
    .cure("set the key again, or convert the model again.");

    DATA_LENGTH = error(
        "TPC0140",
        "wrong amount of tensor data written",
        "While a file was being written, the data given for a tensor were more or fewer bytes than its type and \
         shape call for.",
    )
    .example("4096 bytes for 2048 f32.")
    .cure("report it: the program that writes the file is wrong.");
}
