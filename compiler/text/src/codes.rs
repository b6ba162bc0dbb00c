//! The codes of text, from TPC0560 on.

tpc_ir::codes! {
    pub static;

    NO_TOKENIZER = error(
        "TPC0560",
        "file without a tokenizer",
        "The file's metadata lack a vocabulary (`tokenizer.ggml.*`), so tpc can read and print token ids only.",
    )
    .example("a header whose `tokenizer.ggml.model` is `no_vocab`.")
    .cure("use a file with its vocabulary, or give token ids.");

    UNKNOWN_TOKENIZER = error(
        "TPC0561",
        "unsupported tokenizer",
        "`tokenizer.ggml.model` names an algorithm that tpc does not have. Another algorithm would give wrong ids \
         and senseless answers.",
    )
    .cure("use a model with one of the tokenizers in the message.");

    UNKNOWN_PRE_TOKENIZER = error(
        "TPC0562",
        "unknown pre-tokenizer",
        "`tokenizer.ggml.pre` names rules for splitting text into words that tpc does not have. Other rules would \
         give wrong ids.",
    )
    .cure("correct the name (the message has the nearest, the book lists all), or update tpc.");

    BAD_VOCABULARY = error(
        "TPC0563",
        "unusable vocabulary",
        "The vocabulary's lists differ in length, lack an entry that the tokenizer needs, or repeat a token. The \
         message names the key.",
    )
    .cure("compare the file's checksum with its publisher's, or convert the model again with a current llama.cpp.");

    NO_PRE_TOKENIZER = warning(
        "TPC0564",
        "file without a pre-tokenizer",
        "`tokenizer.ggml.pre` is missing, as in files of before May 2024. tpc splits text by the default rules, so \
         answers may be worse.",
    )
    .cure("convert the model again with a current llama.cpp.");

    SPECIAL_TOKEN = warning(
        "TPC0565",
        "special token out of range",
        "A key such as `tokenizer.ggml.eos_token_id` names a token that the vocabulary does not have. tpc uses the \
         tokenizer's default.",
    )
    .cure("correct the key (llama.cpp's gguf_set_metadata.py), or convert the model again.");

    UNKNOWN_ID = error(
        "TPC0566",
        "no such token",
        "A token id exceeds the vocabulary.",
    )
    .cure("use ids from this file's tokenizer.");

    TEMPLATE = error(
        "TPC0567",
        "chat template fails",
        "`tokenizer.chat_template` is a Jinja program that turns a conversation into a prompt. The program is not \
         valid Jinja, fails, rejects the conversation, or takes too long. The message has the line.",
    )
    .example("two user messages in a row, for a template that wants user and assistant to alternate.")
    .cure("change the conversation as the message asks, or use a newer file of the model.");

    NO_TEMPLATE = note(
        "TPC0568",
        "file without a chat template",
        "tpc writes turns as ChatML, `<|im_start|>user …<|im_end|>`, as llama.cpp does. A model that was not trained \
         on ChatML answers badly.",
    )
    .cure("use a file with a chat template, or give a prompt of plain text.");

    SYSTEM_MERGED = note(
        "TPC0569",
        "system message merged into the user's message",
        "The template rejects or ignores messages of the role `system`. tpc puts the text before the user's first \
         message.",
    )
    .cure("no action is needed; writing the text into the user's message silences the note.");

    SAMPLING = error(
        "TPC0570",
        "sampling setting out of range",
        "A sampling setting is negative, too large, or not a number.",
    )
    .example("a temperature of -1, a top-p of 95.");

    LOGITS = error(
        "TPC0571",
        "no token can be chosen from the logits",
        "The model's logits are NaN, infinite, or all negative infinity. Usually a weight in the model file is \
         damaged: one NaN spoils every logit.",
    )
    .cure("run `tpc lint` on the model file, compare its checksum with the publisher's, and fetch the damaged file \
           again. If the file is intact, this is a bug in tpc: report it with the command and the model's header.");
}
