//! The codes of reading from the web, TPC0430 to TPC0439.

tpc_ir::codes! {
    pub(super) static;

    ADDRESS = error(
        "TPC0430",
        "unusable address",
        "The address is not that of a file that can be read by HTTP or HTTPS: it has no host, it is of another kind, or it \
         names a repository instead of a file of it.",
    )
    .example("`tpc plan https://huggingface.co/ggml-org/gemma-3-1b-it-GGUF`.")
    .cure("give the address of the file: on Hugging Face the one with `/resolve/main/` (or `/blob/main/`, as in the \
           browser).");

    REFUSED = error(
        "TPC0431",
        "the server refuses",
        "The server answers that it does not have the file, or does not give it to everyone, or not now.",
    )
    .example("a gated repository without a token.")
    .cure("check the address. For Hugging Face the variable HF_TOKEN may hold a token; it is sent to huggingface.co alone, \
           and to no host that it redirects to.");

    NO_ANSWER = error(
        "TPC0432",
        "no answer from the server",
        "The server cannot be reached, its certificate is not trusted, or it is too slow: connecting may take 15 seconds, \
         each read 20, and all of it two minutes.",
    )
    .example("a machine without a connection.")
    .cure("check the connection; HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are honoured. Or fetch the beginning of the file \
           elsewhere, `curl -L -r 0-33554431 -o head.gguf ADDRESS`, and plan that.");

    WRONG_ANSWER = error(
        "TPC0433",
        "the answer is not what was asked for",
        "The server sent another range of the file, fewer bytes than it announced, a compressed answer, or a file that \
         changed in between. Nothing of it is used.",
    )
    .example("a proxy that cuts long answers.")
    .cure("try again, or download the file and plan it.");

    REDIRECT = error(
        "TPC0434",
        "a redirect that is not followed",
        "At most eight redirects are followed, and none from HTTPS to HTTP or to anything else.",
    )
    .example("an address of a download page that leads in circles.")
    .cure("give the address where the file is.");

    PAGE = error(
        "TPC0435",
        "a web page, not a file",
        "The address is that of a page about the file: what comes is HTML.",
    )
    .example("the page of a release on GitHub.")
    .cure("give the address of the file: the one that the page's download button has.");
}
