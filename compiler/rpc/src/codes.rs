tpc_ir::codes! {
    pub(super) static;

    MESSAGE = error(
        "TPC0750",
        "not a message of ggml's RPC protocol",
        "A command is unknown, precedes the greeting, or has the wrong length. tpc closes this connection.",
    )
    .cure("use a program with the version that `--protocol` states: 8 for llama.cpp 0.8, 7 for 0.5 and 0.6.");

    TENSOR = error(
        "TPC0751",
        "impossible tensor in a message",
        "A tensor has an unknown type or op, partial blocks, or sizes beyond any memory; or its op is a function of the \
         client's process.",
    )
    .example("`CUSTOM`, whose parameters are an address in the client's memory.")
    .cure("use a program with the version that `--protocol` states; releases number ops and types differently.");

    MEMORY = error(
        "TPC0752",
        "access outside the client's memory",
        "A message names a buffer that the connection does not own, or bytes beyond a buffer.",
    )
    .cure("report it to the authors of the client program.");

    LIMIT = error(
        "TPC0753",
        "limit of the server exceeded",
        "A client exceeds the limit of connections, buffers, tensors or message bytes. Allocations beyond `--memory` \
         fail, but keep the connection open.",
    )
    .cure("stay below the limit in the message.");

    GRAPH = error(
        "TPC0754",
        "invalid graph",
        "A tensor occurs twice, a source is missing, or an op precedes its sources.",
    )
    .cure("report it to the authors of the client program.");

    LOST = warning(
        "TPC0755",
        "connection ended within a message",
        "The client closed its connection, or stalled until the timeout.",
    )
    .cure("no action is needed; tpc frees the client's memory.");

    OTHER_VERSION = warning(
        "TPC0762",
        "client left after the greeting",
        "The server states its version of the protocol, and a client with another version ends. The client does not \
         state its own.",
    )
    .example("llama.cpp 0.5 prints `RPC server version mismatch: 8.0.1` and aborts.")
    .cure("start tpc with `--protocol 7` for llama.cpp 0.5 and 0.6, `--protocol 8` for 0.8.");
}
