tpc_ir::codes! {
    pub static;

    FAILED = error(
        "TPC0460",
        "the model failed during a request",
        "The model or its device failed. All requests in progress end with this error.",
    )
    .cure("look at the server's log for the first error, and restart the server if `/health` stays at 503.");

    SHUTDOWN = error(
        "TPC0461",
        "the server is shutting down",
        "The server received SIGTERM or Ctrl-C. Requests in progress had the time of `--drain-seconds` to end.",
    )
    .cure("send the request again to the restarted server.");

    LISTEN = error(
        "TPC0462",
        "cannot listen",
        "The server cannot listen at the address: another program listens there, or the machine does not have it.",
    )
    .cure("choose another port with `--port`; 0 is any free port.");

    NO_KEY = warning(
        "TPC0463",
        "server without a key",
        "Other machines can reach the server, and it answers anyone's requests.",
    )
    .example("`--host 0.0.0.0` without `--api-key`.")
    .cure("add `--api-key`, or listen at 127.0.0.1.");
}
