//! Codes TPC0596 to TPC0599.

tpc_ir::codes! {
    pub static;

    INVALID = error(
        "TPC0596",
        "unusable schema or grammar",
        "The JSON schema, regular expression or grammar is invalid, uses an unsupported keyword, or permits no answer.",
    )
    .example("the keyword `not` in a JSON schema; an undefined rule in a grammar.")
    .cure("correct the place in the message, or leave out the keyword.");

    TOO_LARGE = error(
        "TPC0597",
        "schema or grammar too large",
        "A schema or grammar exceeds a limit of its length, its nesting, or the work to prepare it.",
    )
    .example("a schema with a string of a million characters at least.")
    .cure("simplify the schema or grammar, or lower its bounds.");

    FAILED = error(
        "TPC0598",
        "constrained answer fails",
        "The grammar needs too much work for the next token, or a token contradicts it.",
    )
    .cure("simplify the grammar: avoid ambiguous rules and large bounds.");

    VOCABULARY = error(
        "TPC0599",
        "vocabulary unfit for constrained answers",
        "A constrained answer needs a vocabulary with a token that ends a generation.",
    )
    .cure("use a model file with `tokenizer.ggml.eos_token_id`.");
}
