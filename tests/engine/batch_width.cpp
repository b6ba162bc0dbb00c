// Compares llama.cpp's logits of 32 tokens in batches of some width with those of single tokens (TPC0936).
// Usage: batch_width MODEL THREADS FLASH_ATTENTION WIDTH…    FLASH_ATTENTION is 0 or 1
#include "llama.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static std::vector<float> logits(llama_model * model, const std::vector<llama_token> & tokens, int width, char ** argv) {
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    auto params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_threads = params.n_threads_batch = std::atoi(argv[2]);
    params.flash_attn_type = static_cast<llama_flash_attn_type>(std::atoi(argv[3]));
    llama_context * ctx = llama_init_from_model(model, params);
    std::vector<float> out;
    for (size_t at = 0; at < tokens.size(); at += width) {
        const int n = std::min<int>(width, tokens.size() - at);
        llama_batch batch = llama_batch_init(n, 0, 1);
        batch.n_tokens = n;
        for (int i = 0; i < n; i++) {
            batch.token[i] = tokens[at + i];
            batch.pos[i] = at + i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        if (llama_decode(ctx, batch)) {
            std::puts("llama_decode failed");
            std::exit(1);
        }
        for (int i = 0; i < n; i++) {
            const float * row = llama_get_logits_ith(ctx, i);
            out.insert(out.end(), row, row + n_vocab);
        }
        llama_batch_free(batch);
    }
    llama_free(ctx);
    return out;
}

int main(int argc, char ** argv) {
    if (argc < 5) {
        std::puts("usage: batch_width MODEL THREADS FLASH_ATTENTION WIDTH…");
        return 2;
    }
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) return 1;
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    std::vector<llama_token> tokens;
    for (int i = 0; i < 32; i++) tokens.push_back((500 + i * 37) % n_vocab);
    const auto single = logits(model, tokens, 1, argv);
    for (int a = 4; a < argc; a++) {
        const auto wide = logits(model, tokens, std::atoi(argv[a]), argv);
        double error = 0, square = 0;
        size_t other = 0;
        for (size_t i = 0; i < single.size(); i++) {
            error += std::pow(wide[i] - single[i], 2.0);
            square += std::pow(single[i], 2.0);
            other += wide[i] != single[i];
        }
        int best = 0;
        for (size_t row = 0; row < single.size(); row += n_vocab) {
            const auto of = [&](const std::vector<float> & l) {
                return std::max_element(l.begin() + row, l.begin() + row + n_vocab) - l.begin();
            };
            best += of(single) == of(wide);
        }
        std::printf("width %s: %.1f %% of the logits differ, NMSE %.2e, %d of 32 best tokens are the same\n", argv[a],
                    100.0 * other / single.size(), error / square, best);
    }
}
