// Writes what llama.cpp computes for a model file, in tpc's golden format: logits, or embeddings with `--pooling`.
//
// Weights are used as the file has them; caches are f32. Without pooling, there is a row per token, else one row, which
// the format repeats for every token.
//
// Usage: embeddings MODEL OUT [--logits] [--pooling none|mean|cls|last|rank] [--tokens 1,2,3]
// Build: c++ -std=c++17 embeddings.cpp -I$SRC/include -I$SRC/ggml/include -L$BUILD/bin -lllama -lggml -lggml-base -o embeddings

#include "llama.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

const int n_default = 32;

[[noreturn]] void fail(const char * what) {
    fprintf(stderr, "%s\n", what);
    exit(2);
}

enum llama_pooling_type pooling_of(const std::string & name) {
    const std::vector<std::string> names = { "none", "mean", "cls", "last", "rank" };
    for (size_t i = 0; i < names.size(); i++) {
        if (names[i] == name) {
            return (enum llama_pooling_type) i;
        }
    }
    fail("unknown pooling");
}

std::vector<llama_token> tokens_of(const std::string & text) {
    std::vector<llama_token> out;
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find(',', at);
        end = end == std::string::npos ? text.size() : end;
        out.push_back(atoi(text.substr(at, end - at).c_str()));
        at = end + 1;
    }
    return out;
}

} // namespace

int main(int argc, char ** argv) {
    if (argc < 3) {
        fail("usage: embeddings MODEL OUT [--logits] [--pooling TYPE] [--tokens 1,2,3]");
    }
    bool logits = false;
    auto pooling = LLAMA_POOLING_TYPE_NONE;
    std::vector<llama_token> tokens;
    for (int i = 3; i < argc; i++) {
        const std::string arg = argv[i];
        if (arg == "--logits") {
            logits = true;
        } else if (arg == "--pooling" && i + 1 < argc) {
            pooling = pooling_of(argv[++i]);
        } else if (arg == "--tokens" && i + 1 < argc) {
            tokens = tokens_of(argv[++i]);
        } else {
            fail("unknown option");
        }
    }
    llama_backend_init();
    auto model_params = llama_model_default_params();
    model_params.n_gpu_layers = 0;
    auto * model = llama_model_load_from_file(argv[1], model_params);
    if (!model) {
        fail("llama.cpp refuses the file");
    }
    auto params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 256;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.embeddings = !logits;
    params.pooling_type = pooling;
    auto * context = llama_init_from_model(model, params);
    if (!context) {
        fail("no context");
    }
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    if (tokens.empty()) {
        for (int i = 0; i < n_default; i++) {
            tokens.push_back((7 * i * i + 3 * i + 1) % n_vocab);
        }
    }
    const int n = (int) tokens.size();
    auto batch = llama_batch_init(n, 0, 1);
    batch.n_tokens = n;
    for (int i = 0; i < n; i++) {
        batch.token[i] = tokens[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0) {
        fail("llama.cpp cannot run the tokens");
    }
    int width = logits ? n_vocab : llama_model_n_embd_out(model);
    if (pooling == LLAMA_POOLING_TYPE_RANK) {
        width = llama_model_n_cls_out(model);
    }
    FILE * out = fopen(argv[2], "wb");
    if (!out) {
        fail("the output cannot be written");
    }
    const int32_t head[4] = { 0x4C4F4731, n, width, 0 };
    fwrite(head, sizeof(int32_t), 4, out);
    fwrite(tokens.data(), sizeof(llama_token), n, out);
    for (int i = 0; i < n; i++) {
        const float * row = logits ? llama_get_logits_ith(context, i)
                          : pooling == LLAMA_POOLING_TYPE_NONE ? llama_get_embeddings_ith(context, i)
                          : llama_get_embeddings_seq(context, 0);
        if (!row) {
            fail("no result");
        }
        fwrite(row, sizeof(float), width, out);
    }
    fclose(out);
    return 0;
}
