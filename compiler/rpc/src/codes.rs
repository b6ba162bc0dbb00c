tpc_ir::codes! {
    pub(super) static;

    MESSAGE = error(
        "TPC0750",
        "not a message of ggml's RPC protocol",
        "A command is unknown, precedes the greeting, or has the wrong length. tpc closes this connection.",
    )
    .cure("use llama.cpp 0.5, or a program with version 7 of the protocol.");

    TENSOR = error(
        "TPC0751",
        "impossible tensor in a message",
        "A tensor has an unknown type or op, partial blocks, or sizes beyond any memory.",
    )
    .cure("use llama.cpp 0.5; a newer ggml numbers ops and types differently.");

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
}
