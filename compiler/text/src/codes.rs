//! The codes of text, from TPC0560 on.

tpc_ir::codes! {
    pub static;

    NO_TOKENIZER = error(
        "TPC0560",
        "the file has no tokenizer",
        "Text becomes token ids by the vocabulary in the file's metadata, `tokenizer.ggml.*`. This file has none, so that \
         it takes and gives token ids only.",
    )
    .example("a header whose `tokenizer.ggml.model` is `no_vocab`.")
    .cure("use a file with its vocabulary, or give token ids.");

    UNKNOWN_TOKENIZER = error(
        "TPC0561",
        "unsupported tokenizer",
        "`tokenizer.ggml.model` names an algorithm that tpc does not have. Another one would give other ids than those the \
         model was trained with, and answers that make no sense.",
    )
    .cure("the message has the names that are supported.");

    UNKNOWN_PRE_TOKENIZER = error(
        "TPC0562",
        "unknown pre-tokenizer",
        "`tokenizer.ggml.pre` names the rules by which text is cut into words before byte pairs are merged. Other rules \
         give other ids than those the model was trained with.",
    )
    .cure("the message has the nearest name; the book has the table of all. A newer version of tpc may know it.");

    BAD_VOCABULARY = error(
        "TPC0563",
        "unusable vocabulary",
        "The lists of the vocabulary contradict each other: of different lengths, without an entry that the tokenizer \
         needs, or with a token twice. The message names the key.",
    )
    .cure("convert the model again with a current llama.cpp, or compare the file's checksum with its publisher's.");

    NO_PRE_TOKENIZER = warning(
        "TPC0564",
        "the file does not say how it cuts words",
        "`tokenizer.ggml.pre` is missing, as in files of before May 2024. The default rules are used, which may not be those \
         that the model was trained with; answers may be worse.",
    )
    .cure("convert the model again with a current llama.cpp.");

    SPECIAL_TOKEN = warning(
        "TPC0565",
        "a special token out of range",
        "A key such as `tokenizer.ggml.eos_token_id` names a token that the vocabulary does not have. The tokenizer's \
         default is used.",
    )
    .cure("correct the key (llama.cpp's gguf_set_metadata.py), or convert the model again.");

    UNKNOWN_ID = error(
        "TPC0566",
        "no such token",
        "A token id is not below the number of tokens of the vocabulary.",
    )
    .cure("use ids that this file's tokenizer gave.");

    TEMPLATE = error(
        "TPC0567",
        "the chat template fails",
        "`tokenizer.chat_template` is a program in the language of Jinja that makes a prompt of a conversation. It is no \
         Jinja, does something that Jinja does not allow, refuses the conversation, or goes on for too long. The message has \
         the line.",
    )
    .example("two messages of the user in a row, where the template wants user and assistant to take turns.")
    .cure("change the conversation as the message asks, or use a newer file of the model.");

    NO_TEMPLATE = note(
        "TPC0568",
        "the file has no chat template",
        "Turns are written as ChatML, `<|im_start|>user …<|im_end|>`, as llama.cpp writes them. A model that was not trained \
         on ChatML reads these marks as text, and answers badly.",
    )
    .cure("use a file of the model with its template, or give a prompt of plain text.");

    SYSTEM_MERGED = note(
        "TPC0569",
        "a system message was put before the user's",
        "The template refuses messages of the role `system`, or leaves them out. Its text stands at the begin of the user's \
         first message instead.",
    )
    .cure("none is needed; writing it into the user's message silences the note.");

    SAMPLING = error(
        "TPC0570",
        "a sampling setting out of range",
        "A number that says how tokens are chosen is negative, too large, or no number.",
    )
    .example("a temperature of -1, a top-p of 95.");

    LOGITS = error(
        "TPC0571",
        "no token can be chosen",
        "The logits that the model gave are NaN, infinite, or all negative infinity, so that they say nothing about the next \
         token. Computing overflowed, or a weight is damaged.",
    )
    .cure("compare the file's checksum with its publisher's; report it with the model's header and the command.");
}
