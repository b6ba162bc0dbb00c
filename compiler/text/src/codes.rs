//! The codes of text, from TPC0560 on.

tpc_ir::codes! {
    pub static;

    NO_TOKENIZER = error(
        "TPC0560",
        "file without a tokenizer",
        "Without a vocabulary (`tokenizer.ggml.*`), tpc reads and prints token ids only.",
    )
    .cure("use a file with its vocabulary, or give token ids.");

    UNKNOWN_TOKENIZER = error(
        "TPC0561",
        "unsupported tokenizer",
        "tpc lacks the algorithm in `tokenizer.ggml.model`; another would give wrong ids.",
    )
    .cure("use a model with one of the tokenizers in the message.");

    UNKNOWN_PRE_TOKENIZER = error(
        "TPC0562",
        "unknown pre-tokenizer",
        "tpc lacks the word-splitting rules in `tokenizer.ggml.pre`; others would give wrong ids.",
    )
    .cure("correct the name (the book lists all), or update tpc.");

    BAD_VOCABULARY = error(
        "TPC0563",
        "unusable vocabulary",
        "The vocabulary's lists differ in length, lack a needed entry, or repeat a token.",
    )
    .cure("compare the file's checksum with its publisher's, or convert the model again.");

    NO_PRE_TOKENIZER = warning(
        "TPC0564",
        "file without a pre-tokenizer",
        "`tokenizer.ggml.pre` is missing, as before May 2024. The default rules may give worse answers.",
    )
    .cure("convert the model again with a current llama.cpp.");

    SPECIAL_TOKEN = warning(
        "TPC0565",
        "special token out of range",
        "A key such as `tokenizer.ggml.eos_token_id` exceeds the vocabulary. tpc uses the tokenizer's default.",
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
        "The Jinja program `tokenizer.chat_template` is invalid, rejects the conversation, or takes too long.",
    )
    .example("two user messages in a row, if user and assistant must alternate.")
    .cure("change the conversation, or use a newer file of the model.");

    NO_TEMPLATE = note(
        "TPC0568",
        "file without a chat template",
        "tpc writes turns as ChatML (`<|im_start|>user …<|im_end|>`), like llama.cpp. A model without ChatML \
         training answers badly.",
    )
    .cure("use a file with a chat template, or a plain prompt.");

    SYSTEM_MERGED = note(
        "TPC0569",
        "system message merged into the user's message",
        "The template does not take messages of the role `system`.",
    )
    .cure("no action is needed; a system text in the user's message silences the note.");

    MESSAGES = error(
        "TPC0464",
        "invalid chat message",
        "A message of a chat request lacks a field, has a field of another type, or has content other than text.",
    )
    .example("a message without a role; an image for a text model.")
    .cure("correct the field that the message names.");

    TOOLS = error(
        "TPC0465",
        "invalid tool",
        "A tool of a chat request is not a function with a name and a JSON schema.",
    )
    .cure("correct the field that the message names: {\"type\": \"function\", \"function\": {\"name\": …, \"parameters\": {…}}}.");

    SAMPLING = error(
        "TPC0570",
        "sampling setting out of range",
        "A setting is negative, too large, or not a number.",
    )
    .example("a temperature of -1, a top-p of 95.");

    LOGITS = error(
        "TPC0571",
        "no token can be chosen from the logits",
        "The logits are NaN, infinite, or all negative infinity. Usually the model file is damaged: one NaN in a \
         weight spoils every logit.",
    )
    .cure("run `tpc lint` on the model file, compare its checksum with the publisher's, and fetch the damaged file \
           again. If the file is intact, report this bug in tpc with the command.");

    ALL_BANNED = error(
        "TPC0595",
        "every token is banned",
        "The grammar, the logit bias, or both leave no token to choose.",
    )
    .cure("change the grammar, or remove entries of the logit bias.");
}
