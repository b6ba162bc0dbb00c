tpc_ir::codes! {
    pub(super) static;

    ADDRESS = error(
        "TPC0430",
        "unusable address",
        "The address lacks a host, is not HTTP or HTTPS, or names a repository.",
    )
    .example("`tpc plan https://huggingface.co/ggml-org/gemma-3-1b-it-GGUF`.")
    .cure("write `-hf USER/NAME`, or give the file's address; on Hugging Face with `/resolve/main/` or `/blob/main/`.");

    REFUSED = error(
        "TPC0431",
        "server refuses the file",
        "The server lacks the file, restricts access, or cannot answer now.",
    )
    .example("a gated repository without a token.")
    .cure("check the address. For Hugging Face, set HF_TOKEN; tpc sends the token to huggingface.co only.");

    NO_ANSWER = error(
        "TPC0432",
        "server does not answer",
        "The server cannot be reached, is not trusted, or is too slow: 15 seconds to connect, 20 per read, two \
         minutes in all.",
    )
    .cure("check the connection (tpc honours HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE), or plan a `head.gguf` fetched \
           elsewhere: `curl -L -r 0-33554431 -o head.gguf ADDRESS`.");

    WRONG_ANSWER = error(
        "TPC0433",
        "answer does not match the request",
        "The server sent another range, too few bytes, a compressed answer, or a changed file. tpc discards the \
         answer.",
    )
    .example("a proxy that cuts long answers.")
    .cure("try again, or download the file and plan the copy.");

    REDIRECT = error(
        "TPC0434",
        "redirect not followed",
        "tpc follows at most eight redirects, and never from HTTPS to another scheme.",
    )
    .example("a download page that redirects in circles.")
    .cure("give the file's final address.");

    PAGE = error(
        "TPC0435",
        "web page instead of a file",
        "The server sent HTML about the file.",
    )
    .example("a release page on GitHub.")
    .cure("give the address of the page's download button.");
}
