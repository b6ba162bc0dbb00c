//! The codes of defects of IR texts, TPC0200 to TPC0219.

crate::codes! {
    pub(super) static;

    NOT_TPIR = error(
        "TPC0200",
        "not a tpir text",
        "The first line that is neither empty nor a comment must be `tpir 1`, so that a file of another kind is \
         recognised at once.",
    )
    .example("a file that begins with `graph \"llama\"`.")
    .cure("put `tpir 1` above it, or give a file that `tpc` printed.");

    VERSION = error(
        "TPC0201",
        "unsupported tpir version",
        "The number behind `tpir` is the version of the text form; this program reads version 1.",
    )
    .example("`tpir 2`.")
    .cure("print the graph with the version of `tpc` that reads it.");

    CHARACTER = error(
        "TPC0202",
        "unexpected character",
        "Outside quotes and comments a text consists of words, numbers and a few signs; this character is none \
         of them.",
    )
    .example("`v0: f32[8] @host = relu v1!`.")
    .cure("remove it, put the text that contains it in quotes, or begin the comment with `;`.");

    QUOTED = error(
        "TPC0203",
        "bad text in quotes",
        "A text in quotes ends on the line it begins on, and `\\` begins one of the escapes `\\\"`, `\\\\`, \
         `\\n` and `\\u{…}`.",
    )
    .example("`graph \"llama`, whose second quote is missing.")
    .cure("close the quotes, and double backslashes that stand for themselves.");

    NUMBER = error(
        "TPC0204",
        "bad number",
        "Integers are unsigned and have at most 64 bits, layers 32; other numbers are finite 32-bit floats with \
         digits on both sides of the point.",
    )
    .example("`{eps = 1e-999x}`.")
    .cure("write a number such as `4096`, `0.5` or `1e-5`.");

    SYNTAX = error(
        "TPC0205",
        "unexpected token",
        "The line departs from the form of its statement; the message says what was expected and what stands \
         there.",
    )
    .example("`v0 f32[8] @host = input {kind = tokens}`, where `:` is missing behind `v0`.")
    .cure("write what was expected.");

    STATEMENT = error(
        "TPC0206",
        "unknown statement",
        "A line begins with `graph`, `device`, `group`, `class`, `layer`, `output` or a value that it defines; in \
         programs also with `shape`, `arena`, `buffer`, `home`, `launch`, `phase` or `queue`.",
    )
    .example("`outputs \"logits\" = v9`.")
    .cure("correct the word, or begin the line with `;` if it is a comment.");

    ELEMENT_TYPE = error(
        "TPC0207",
        "unknown element type",
        "Element types are those a GGUF file can name, in lower case.",
    )
    .example("`v0: float[8] @host`.")
    .cure("write `f32`, `f16`, `bf16`, `i32`, `q4_k` or another name that GGUF has.");

    SIZE = error(
        "TPC0208",
        "bad size",
        "A size is a polynomial in the run-time symbols with integer coefficients. It must fit 64-bit arithmetic \
         and 64 terms, and must not be a negative constant.",
    )
    .example("`f32[3 - 4]`.")
    .cure("correct the size.");

    UNDEFINED = error(
        "TPC0209",
        "undefined entity",
        "A device, group, class or value is used before the line that defines it, or is not defined at all. \
         Values are defined before use, so that the order of the lines is an order in which the program can run.",
    )
    .example("`v1: f32[8] @host = relu v2` above the line of `v2`.")
    .cure("define it above, or correct the number.");

    REDEFINED = error(
        "TPC0210",
        "entity defined twice",
        "Two lines define the same handle, so its uses are ambiguous.",
    )
    .example("two lines that begin with `v3`.")
    .cure("give one of the two another number; any free one will do.");

    UNKNOWN_OP = error(
        "TPC0211",
        "unknown op",
        "Ops are a closed set, so that every pass and every back end knows all of them.",
    )
    .example("`v1: f32[8] @host = matmul v0`.")
    .cure("write the name of an op, such as `mul_mat`.");

    ATTRIBUTES = error(
        "TPC0212",
        "bad attributes",
        "The op lacks an attribute, does not know one, got one of the wrong kind, or got one twice.",
    )
    .example("`rms_norm v0 {epsilon = 1e-5}`, whose attribute is called `eps`.")
    .cure("give exactly the attributes that the op's documentation lists.");

    LIMIT = error(
        "TPC0213",
        "nested too deep or too long",
        "Parentheses and lists may be nested 32 deep, and a tree may have 256 leaves. No real model comes near; \
         the limits keep a hostile text from exhausting the stack.",
    )
    .example("a tree inside 33 pairs of parentheses.")
    .cure("remove what is redundant.");

    CLASS_PART = error(
        "TPC0214",
        "class not divisible",
        "`c0/4` is the class `c0` with the minor factors of 4 indices left out, so 4 must divide its size.",
    )
    .example("`split(0: c0/4)` where `c0` has size 6.")
    .cure("correct the divisor or the size of the class.");

    RANGE_END = error(
        "TPC0215",
        "range too long",
        "A range is written `start:len`, and its end, `start + len`, must fit 64 bits.",
    )
    .example("`18446744073709551615:2`.")
    .cure("correct the range; behind the colon stands the number of indices, not the end.");

    GRAPH_LINE = error(
        "TPC0216",
        "graph line missing or repeated",
        "A text describes one graph, and its name stands in one line `graph \"…\"`.",
    )
    .example("two texts pasted together.")
    .cure("write that line once, below `tpir 1`.");

    SHARDING = error(
        "TPC0217",
        "bad sharding",
        "A sharding names an axis beyond 3, or says something twice: `split`, an axis, `granule` or the pending \
         sum.",
    )
    .example("`split(0: c0, 0: c1)`.")
    .cure("give one tree per split axis, and at most one of `partial` and `owner_masked(c0)`.");

    RANK = error(
        "TPC0218",
        "wrong number of sizes",
        "Tensors have four axes, as in ggml. One to four sizes may be given; missing ones are 1.",
    )
    .example("`f32[2, 3, 4, 5, 6]`.")
    .cure("merge axes, or leave out sizes of 1.");

    TOO_LONG = error(
        "TPC0219",
        "text too long",
        "Texts of more than 256 MiB are not read. The programs of the largest models on a hundred devices are a \
         tenth of that.",
    )
    .example("a model file given in place of a text.")
    .cure("check the path.");
}
