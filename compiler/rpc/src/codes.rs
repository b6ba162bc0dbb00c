//! The codes of serving clients, TPC0750 to TPC0755.

tpc_ir::codes! {
    pub(super) static;

    MESSAGE = error(
        "TPC0750",
        "not a message of ggml's RPC",
        "A client sent a command that version 7 does not have, a message of another length than its command has, or \
         something before the greeting. Its connection is closed; others go on.",
    )
    .example("a web browser that is pointed at the port.")
    .cure("use a program of llama.cpp 0.5 or of the same protocol: the major version must be 7.");

    TENSOR = error(
        "TPC0751",
        "impossible tensor in a message",
        "A client describes a tensor that ggml does not have: an unknown element type or op, rows that are not whole \
         blocks, or sizes that are larger than any memory.",
    )
    .example("a program of a ggml with further ops.")
    .cure("use a program of llama.cpp 0.5; a newer ggml numbers its ops and types otherwise.");

    MEMORY = error(
        "TPC0752",
        "memory that a client does not have",
        "A message names a buffer that the connection did not allocate or has freed, or bytes beyond the end of one.",
    )
    .example("a tensor whose last row ends behind its buffer.")
    .cure("this is a fault of the client's program.");

    LIMIT = error(
        "TPC0753",
        "a limit of the server",
        "A client asks for more connections, buffers, tensors or bytes of a message than the server allows. \
         Memory beyond `--memory` is refused without closing the connection, as by any device.",
    )
    .example("a graph of two million tensors.")
    .cure("the message has the limit.");

    GRAPH = error(
        "TPC0754",
        "not a graph",
        "A client sent a graph in which a tensor occurs twice, a source is missing, or an op is computed before one of its \
         sources.",
    )
    .cure("this is a fault of the client's program.");

    LOST = warning(
        "TPC0755",
        "a connection ended within a message",
        "The client closed its connection before a message was whole, or sent nothing for as long as the server waits \
         within a message.",
    )
    .example("a client that was stopped while it sent weights.")
    .cure("none is needed; what the client allocated is given back.");
}
