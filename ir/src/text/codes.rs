//! The codes of defects of IR texts, TPC0200 to TPC0219.

crate::codes! {
    pub(super) static;

    NOT_TPIR = error(
        "TPC0200",
        "not a tpir text",
        "The first line with text must be `tpir 1`.",
    )
    .example("a file that begins with `graph \"llama\"`.")
    .cure("add `tpir 1`, or give a file that tpc printed.");

    VERSION = error(
        "TPC0201",
        "unsupported tpir version",
        "This tpc reads version 1 of the text format.",
    )
    .example("`tpir 2`.")
    .cure("print the graph with this version of tpc.");

    CHARACTER = error(
        "TPC0202",
        "unexpected character",
        "Outside quotes and comments, a graph file (`.tpir`) has only words, numbers and a few signs.",
    )
    .example("`v0: f32[8] @host = relu v1!`.")
    .cure("remove the character, quote it, or begin the comment with `;`.");

    QUOTED = error(
        "TPC0203",
        "invalid quoted text",
        "In a graph file (`.tpir`), quotes close on the same line. Escapes are `\\\"`, `\\\\`, `\\n` and `\\u{…}`.",
    )
    .example("`graph \"llama`, without the second quote.")
    .cure("close the quotes, and double literal backslashes.");

    NUMBER = error(
        "TPC0204",
        "invalid number",
        "Integers are unsigned 64-bit (layers 32-bit). Other numbers are finite 32-bit floats with digits around the \
         point.",
    )
    .example("`{eps = 1e-999x}`.")
    .cure("write a number such as `4096`, `0.5` or `1e-5`.");

    SYNTAX = error(
        "TPC0205",
        "unexpected token",
        "The message names the expected and the actual token.",
    )
    .example("`v0 f32[8] @host = input {kind = tokens}`, without `:` after `v0`.")
    .cure("write the expected token.");

    STATEMENT = error(
        "TPC0206",
        "unknown statement",
        "A line begins with `graph`, `device`, `group`, `class`, `layer`, `output` or a value; in programs also \
         `shape`, `arena`, `buffer`, `home`, `launch`, `phase` or `queue`.",
    )
    .example("`outputs \"logits\" = v9`.")
    .cure("correct the word, or begin a comment with `;`.");

    ELEMENT_TYPE = error(
        "TPC0207",
        "unknown element type",
        "Element types have GGUF's names, in lower case.",
    )
    .example("`v0: float[8] @host`.")
    .cure("write a GGUF type, such as `f32` or `q4_k`.");

    SIZE = error(
        "TPC0208",
        "invalid size",
        "Sizes are polynomials with integer coefficients, at most 64 bits and 64 terms. Constants are not negative.",
    )
    .example("`f32[3 - 4]`.")
    .cure("correct the size.");

    UNDEFINED = error(
        "TPC0209",
        "undefined name",
        "A device, group, class or value must be defined above its use.",
    )
    .example("`v1: f32[8] @host = relu v2` above the line of `v2`.")
    .cure("define the name above, or correct the number.");

    REDEFINED = error(
        "TPC0210",
        "name defined twice",
        "Two lines define the same handle.",
    )
    .example("two lines that begin with `v3`.")
    .cure("give one of them an unused number.");

    UNKNOWN_OP = error(
        "TPC0211",
        "unknown op",
        "No op of a graph file (`.tpir`) has this name. The book's page on the IR lists all ops.",
    )
    .example("`v1: f32[8] @host = matmul v0`.")
    .cure("write the name of an op, such as `mul_mat`.");

    ATTRIBUTES = error(
        "TPC0212",
        "invalid attributes",
        "An attribute is missing, unknown, repeated or of the wrong kind.",
    )
    .example("`rms_norm v0 {epsilon = 1e-5}`, whose attribute is `eps`.")
    .cure("give the attributes in the op's documentation.");

    LIMIT = error(
        "TPC0213",
        "nested too deep or too long",
        "The maximum nesting is 32. The maximum number of leaves of a tree is 256.",
    )
    .example("a tree inside 33 pairs of parentheses.")
    .cure("remove redundant nesting.");

    CLASS_PART = error(
        "TPC0214",
        "class not divisible",
        "`c0/4` leaves out the minor factor of 4 indices, so 4 must divide the size of `c0`.",
    )
    .example("`split(0: c0/4)` with `c0` of size 6.")
    .cure("correct the divisor or the class's size.");

    RANGE_END = error(
        "TPC0215",
        "range too long",
        "`start + len` of a range must fit 64 bits.",
    )
    .example("`18446744073709551615:2`.")
    .cure("correct the range: `start:len`.");

    GRAPH_LINE = error(
        "TPC0216",
        "graph line missing or repeated",
        "A text describes one graph, named by one line `graph \"…\"`.",
    )
    .example("two texts pasted together.")
    .cure("write one `graph` line below `tpir 1`.");

    SHARDING = error(
        "TPC0217",
        "invalid sharding",
        "A sharding names an axis beyond 3, or repeats `split`, an axis, `granule` or the unreduced sum.",
    )
    .example("`split(0: c0, 0: c1)`.")
    .cure("give one tree per axis, and `partial` or `owner_masked(c0)` once.");

    RANK = error(
        "TPC0218",
        "wrong number of sizes",
        "Tensors have four axes; missing sizes are 1.",
    )
    .example("`f32[2, 3, 4, 5, 6]`.")
    .cure("merge axes, or leave out sizes of 1.");

    TOO_LONG = error(
        "TPC0219",
        "text too long",
        "The limit is 256 MiB, ten times the largest models' programs.",
    )
    .example("a model file instead of a text.")
    .cure("check the path.");
}
