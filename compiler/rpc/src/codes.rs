//! The codes of serving clients, TPC0750 to TPC0755.

tpc_ir::codes! {
    pub(super) static;

    MESSAGE = error(
        "TPC0750",
        "not a message of ggml's RPC protocol",
        "A client sent an unknown command, a message of the wrong length, or a command before the greeting. tpc \
         closes this connection only.",
    )
    .example("a web browser that opens the port.")
    .cure("use a program of llama.cpp 0.5, or another with version 7 of the protocol.");

    TENSOR = error(
        "TPC0751",
        "impossible tensor in a message",
        "A client's tensor has an unknown element type or op, rows that are not whole blocks, or sizes beyond any \
         memory.",
    )
    .example("a client with a newer ggml.")
    .cure("use a program of llama.cpp 0.5; a newer ggml numbers ops and types differently.");

    MEMORY = error(
        "TPC0752",
        "access outside the client's memory",
        "A message names a buffer that the connection does not own, or bytes beyond a buffer's end.",
    )
    .example("a tensor whose last row ends after its buffer.")
    .cure("report it to the authors of the client program.");

    LIMIT = error(
        "TPC0753",
        "limit of the server exceeded",
        "A client asks for more connections, buffers, tensors or bytes of a message than the server allows. \
         Allocations beyond `--memory` fail without closing the connection.",
    )
    .example("a graph of two million tensors.")
    .cure("stay below the limit in the message.");

    GRAPH = error(
        "TPC0754",
        "invalid graph",
        "A client's graph has a tensor twice, lacks a source, or computes an op before one of its sources.",
    )
    .cure("report it to the authors of the client program.");

    LOST = warning(
        "TPC0755",
        "connection ended within a message",
        "The client closed its connection within a message, or sent no bytes until the timeout.",
    )
    .example("a client that was stopped while it sent weights.")
    .cure("no action is needed; tpc frees the client's memory.");
}
