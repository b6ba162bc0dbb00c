// Prints a model's tokens, logits and greedy continuation of a text as JSON, for `tests/data/real`.
// Usage: real_models MODEL TEXT TOKENS CONTINUED
#include "llama.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

static const int TOP = 16;

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static std::vector<llama_token> tokens_of(const llama_vocab *vocab, const std::string &text) {
    std::vector<llama_token> out(text.size() + 8);
    int n = llama_tokenize(vocab, text.data(), (int) text.size(), out.data(), (int) out.size(), true, false);
    if (n < 0) fail("cannot tokenise");
    out.resize(n);
    return out;
}

static int best(const float *logits, int n_vocab) {
    return (int) (std::max_element(logits, logits + n_vocab) - logits);
}

static void print_row(const float *logits, int n_vocab, int position) {
    std::vector<int> ids(n_vocab);
    for (int i = 0; i < n_vocab; i++) ids[i] = i;
    std::partial_sort(ids.begin(), ids.begin() + TOP, ids.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    printf("    {\"position\": %d, \"ids\": [", position);
    for (int i = 0; i < TOP; i++) printf("%s%d", i ? ", " : "", ids[i]);
    printf("], \"logits\": [");
    for (int i = 0; i < TOP; i++) printf("%s%.4f", i ? ", " : "", logits[ids[i]]);
    printf("]}");
}

int main(int argc, char **argv) {
    if (argc != 5) fail("usage: real_models MODEL TEXT TOKENS CONTINUED");
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    llama_model_params model_params = llama_model_default_params();
    llama_model *model = llama_model_load_from_file(argv[1], model_params);
    if (!model) fail("cannot load");
    const llama_vocab *vocab = llama_model_get_vocab(model);
    const int n_vocab = llama_vocab_n_tokens(vocab);
    std::ifstream file(argv[2]);
    std::stringstream text;
    text << file.rdbuf();
    std::vector<llama_token> all = tokens_of(vocab, text.str());
    const int n = atoi(argv[3]), continued = atoi(argv[4]);
    if ((int) all.size() < n) fail("the text is too short");

    llama_context_params params = llama_context_default_params();
    params.n_ctx = 512;
    params.n_batch = params.n_ubatch = 512;
    params.n_threads = params.n_threads_batch = 2;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    llama_context *context = llama_init_from_model(model, params);
    if (!context) fail("cannot create a context");

    llama_batch batch = llama_batch_init(n, 0, 1);
    for (int i = 0; i < n; i++) {
        batch.token[i] = all[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    batch.n_tokens = n;
    if (llama_decode(context, batch)) fail("cannot decode");
    printf("{\n  \"text_tokens\": %zu,\n  \"tokens\": [", all.size());
    for (int i = 0; i < n; i++) printf("%s%d", i ? ", " : "", all[i]);
    printf("],\n  \"rows\": [\n");
    for (int i = 3; i < n; i += 4) {
        print_row(llama_get_logits_ith(context, i), n_vocab, i);
        printf(i + 4 < n ? ",\n" : "\n");
    }
    printf("  ],\n  \"greedy\": [");
    llama_token next = best(llama_get_logits_ith(context, n - 1), n_vocab);
    for (int i = 0; i < continued; i++) {
        printf("%s%d", i ? ", " : "", next);
        batch.n_tokens = 1;
        batch.token[0] = next;
        batch.pos[0] = n + i;
        if (llama_decode(context, batch)) fail("cannot decode");
        next = best(llama_get_logits_ith(context, 0), n_vocab);
    }
    printf("]\n}\n");
}
