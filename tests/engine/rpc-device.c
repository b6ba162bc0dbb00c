// A back end of ggml that is a server by ggml's RPC protocol: of the programs that take no `--rpc`, such as test-backend-ops.
//
//   cc -shared -fPIC rpc-device.c -I $LLAMA_CPP/ggml/include -L $BUILD/bin -lggml-rpc -o rpc-device.so
//   GGML_BACKEND_PATH=$PWD/rpc-device.so RPC_DEVICE=127.0.0.1:50052 test-backend-ops
#include "ggml-rpc.h"

#include <stdlib.h>

ggml_backend_reg_t ggml_backend_init(void);

ggml_backend_reg_t ggml_backend_init(void) {
    const char * endpoint = getenv("RPC_DEVICE");
    return endpoint ? ggml_backend_rpc_add_server(endpoint) : NULL;
}
