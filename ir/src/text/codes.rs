//! The catalogue of defects of `.tpir` texts, for `tpc explain`.

use crate::CodeDoc;

const fn code(code: &'static str, title: &'static str, doc: &'static str) -> CodeDoc {
    CodeDoc { code, title, doc }
}

/// Every defect that a `.tpir` text can have, in the order of the codes.
pub const CODES: &[CodeDoc] = &[
    code(
        "TPC0200",
        "not a tpir text",
        "The first line that is neither empty nor a comment must be `tpir 1`, so that a file of another kind is \
         recognised at once. Example: a file that begins with `graph \"llama\"`. Cure: put `tpir 1` above it, or give \
         a file that `tpc` printed.",
    ),
    code(
        "TPC0201",
        "unsupported tpir version",
        "The number behind `tpir` is the version of the text form; this program reads version 1. Example: `tpir 2`. \
         Cure: print the graph with the version of `tpc` that reads it.",
    ),
    code(
        "TPC0202",
        "unexpected character",
        "Outside quotes and comments a text consists of words, numbers and a few signs; this character is none of \
         them. Example: `v0: f32[8] @host = relu v1!`. Cure: remove it, put the text that contains it in quotes, or \
         begin the comment with `;`.",
    ),
    code(
        "TPC0203",
        "bad text in quotes",
        "A text in quotes ends on the line it begins on, and `\\` begins one of the escapes `\\\"`, `\\\\`, `\\n` and \
         `\\u{…}`. Example: `graph \"llama`, whose second quote is missing. Cure: close the quotes, and double \
         backslashes that stand for themselves.",
    ),
    code(
        "TPC0204",
        "bad number",
        "Integers are unsigned and have at most 64 bits, layers 32; other numbers are finite 32-bit floats with \
         digits on both sides of the point. Example: `{eps = 1e-999x}`. Cure: write a number such as `4096`, `0.5` or \
         `1e-5`.",
    ),
    code(
        "TPC0205",
        "unexpected token",
        "The line departs from the form of its statement; the message says what was expected and what stands there. \
         Example: `v0 f32[8] @host = input {kind = tokens}`, where `:` is missing behind `v0`. Cure: write what was \
         expected.",
    ),
    code(
        "TPC0206",
        "unknown statement",
        "A line begins with `graph`, `device`, `group`, `class`, `layer`, `output` or a value that it defines. \
         Example: `outputs \"logits\" = v9`. Cure: correct the word, or begin the line with `;` if it is a comment.",
    ),
    code(
        "TPC0207",
        "unknown element type",
        "Element types are those a GGUF file can name, in lower case. Example: `v0: float[8] @host`. Cure: write \
         `f32`, `f16`, `bf16`, `i32`, `q4_k` or another name that GGUF has.",
    ),
    code(
        "TPC0208",
        "bad size",
        "A size is a polynomial in the run-time symbols with integer coefficients. It must fit 64-bit arithmetic and \
         64 terms, and must not be a negative constant. Example: `f32[3 - 4]`. Cure: correct the size.",
    ),
    code(
        "TPC0209",
        "undefined entity",
        "A device, group, class or value is used before the line that defines it, or is not defined at all. Values \
         are defined before use, so that the order of the lines is an order in which the program can run. Example: \
         `v1: f32[8] @host = relu v2` above the line of `v2`. Cure: define it above, or correct the number.",
    ),
    code(
        "TPC0210",
        "entity defined twice",
        "Two lines define the same handle, so its uses are ambiguous. Example: two lines that begin with `v3`. Cure: \
         give one of the two another number; any free one will do.",
    ),
    code(
        "TPC0211",
        "unknown op",
        "Ops are a closed set, so that every pass and every back end knows all of them. Example: \
         `v1: f32[8] @host = matmul v0`. Cure: write the name of an op, such as `mul_mat`.",
    ),
    code(
        "TPC0212",
        "bad attributes",
        "The op lacks an attribute, does not know one, got one of the wrong kind, or got one twice. Example: \
         `rms_norm v0 {epsilon = 1e-5}`, whose attribute is called `eps`. Cure: give exactly the attributes that the \
         op's documentation lists.",
    ),
    code(
        "TPC0213",
        "nested too deep or too long",
        "Parentheses and lists may be nested 32 deep, and a tree may have 256 leaves. No real model comes near; the \
         limits keep a hostile text from exhausting the stack. Example: a tree inside 33 pairs of parentheses. Cure: \
         remove what is redundant.",
    ),
    code(
        "TPC0214",
        "class not divisible",
        "`c0/4` is the class `c0` with the minor factors of 4 indices left out, so 4 must divide its size. Example: \
         `split(0: c0/4)` where `c0` has size 6. Cure: correct the divisor or the size of the class.",
    ),
    code(
        "TPC0215",
        "range too long",
        "A range is written `start:len`, and its end, `start + len`, must fit 64 bits. Example: \
         `18446744073709551615:2`. Cure: correct the range; behind the colon stands the number of indices, \
         not the end.",
    ),
    code(
        "TPC0216",
        "graph line missing or repeated",
        "A text describes one graph, and its name stands in one line `graph \"…\"`. Example: two texts pasted \
         together. Cure: write that line once, below `tpir 1`.",
    ),
    code(
        "TPC0217",
        "bad sharding",
        "A sharding names an axis beyond 3, or says something twice: `split`, an axis, `granule` or the pending sum. \
         Example: `split(0: c0, 0: c1)`. Cure: give one tree per split axis, and at most one of `partial` and `owner_masked(c0)`.",
    ),
    code(
        "TPC0218",
        "wrong number of sizes",
        "Tensors have four axes, as in ggml. One to four sizes may be given; missing ones are 1. Example: \
         `f32[2, 3, 4, 5, 6]`. Cure: merge axes, or leave out sizes of 1.",
    ),
    code(
        "TPC0219",
        "text too long",
        "Texts of more than 256 MiB are not read. The programs of the largest models on a hundred devices are a \
         tenth of that. Example: a model file given in place of a text. Cure: check the path.",
    ),
];
