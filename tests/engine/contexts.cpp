// Logits and greedy text of a model, alone on the CPU or over RPC, as programs use contexts:
//   contexts MODE MODEL [DRAFT] [--rpc HOST:PORT] [-n TOKENS]
//   compare  the NMSE of the logits over RPC against those of the CPU, for a prompt of 40 tokens and 8 single tokens
//   plain    one context
//   draft    a second model proposes tokens, the first one checks them in one batch
//   turns    two contexts of one model, one token each in turn
//   save     the state of the context is saved after the prompt, cleared, and restored
//   shift    half of the tokens are removed, and the positions of the others are moved
// The other modes print token ids. `rpc.sh` builds and runs it.
#include "ggml-backend.h"
#include "ggml-rpc.h"
#include "llama.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static llama_model * load(const char * path, const std::string & rpc) {
    llama_model_params params = llama_model_default_params();
    std::vector<ggml_backend_dev_t> devices;
    if (!rpc.empty()) {
        ggml_backend_reg_t server = ggml_backend_rpc_add_server(rpc.c_str());
        for (size_t i = 0; server && i < ggml_backend_reg_dev_count(server); i++) {
            devices.push_back(ggml_backend_reg_dev_get(server, i));
        }
        params.n_gpu_layers = 999;
    }
    devices.push_back(nullptr);
    params.devices = devices.data();
    llama_model * model = llama_model_load_from_file(path, params);
    if (!model) {
        fprintf(stderr, "cannot load %s\n", path);
        exit(1);
    }
    return model;
}

struct Context {
    llama_context * ctx;
    int vocab;
    int past = 0;

    explicit Context(llama_model * model) {
        llama_context_params params = llama_context_default_params();
        params.n_ctx = 512;
        params.n_batch = params.n_ubatch = 128;
        params.n_threads = params.n_threads_batch = 1;
        params.type_k = params.type_v = GGML_TYPE_F32;
        params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED; // which rounds on the CPU
        ctx = llama_init_from_model(model, params);
        vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    }

    // Appends tokens; returns the best next token after each. Appends the logits to `all`.
    std::vector<int> decode(const std::vector<int> & tokens, std::vector<float> * all = nullptr) {
        llama_batch batch = llama_batch_init((int) tokens.size(), 0, 1);
        for (size_t i = 0; i < tokens.size(); i++) {
            batch.token[i] = tokens[i];
            batch.pos[i] = past + (int) i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        batch.n_tokens = (int) tokens.size();
        if (llama_decode(ctx, batch) != 0) {
            fprintf(stderr, "decode failed\n");
            exit(1);
        }
        std::vector<int> best;
        for (size_t i = 0; i < tokens.size(); i++) {
            const float * logits = llama_get_logits_ith(ctx, (int) i);
            int top = 0;
            for (int t = 1; t < vocab; t++) top = logits[t] > logits[top] ? t : top;
            best.push_back(top);
            if (all) all->insert(all->end(), logits, logits + vocab);
        }
        llama_batch_free(batch);
        past += (int) tokens.size();
        return best;
    }

    void keep(int tokens) {
        llama_memory_seq_rm(llama_get_memory(ctx), 0, tokens, -1);
        past = tokens;
    }
};

static int compare(const char * path, const std::string & rpc) {
    std::vector<float> logits[2];
    for (int side = 0; side < 2; side++) {
        Context context(load(path, side == 0 ? "" : rpc));
        std::vector<int> tokens;
        for (int i = 0; i < 40; i++) tokens.push_back((int) ((i * 7919u + 13u) % (unsigned) context.vocab));
        context.decode(tokens, &logits[side]);
        for (int i = 0; i < 8; i++) context.decode({ (i * 131 + 17) % context.vocab }, &logits[side]);
    }
    double error = 0, power = 0;
    for (size_t i = 0; i < logits[0].size(); i++) {
        double a = logits[0][i], b = logits[1][i];
        error += (a - b) * (a - b);
        power += a * a;
    }
    printf("%.2e\n", error / power);
    return 0;
}

int main(int argc, char ** argv) {
    std::string mode = argc > 1 ? argv[1] : "", rpc;
    std::vector<const char *> models;
    int n = 200;
    for (int i = 2; i < argc; i++) {
        std::string arg = argv[i];
        if (arg == "--rpc") rpc = argv[++i];
        else if (arg == "-n") n = atoi(argv[++i]);
        else models.push_back(argv[i]);
    }
    if (models.empty()) {
        fprintf(stderr, "usage: contexts compare|plain|draft|turns|save|shift MODEL [DRAFT] [--rpc HOST:PORT] [-n TOKENS]\n");
        return 2;
    }
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level >= GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
    }, nullptr);
    llama_backend_init();
    if (mode == "compare") return compare(models[0], rpc);
    llama_model * model = load(models[0], rpc);
    Context main_context(model);
    std::vector<int> prompt;
    for (int i = 0; i < 24; i++) prompt.push_back((i * 37 + 11) % main_context.vocab);
    std::vector<int> out;
    int next = main_context.decode(prompt).back();
    if (mode == "draft") {
        Context draft(load(models.back(), rpc));
        draft.decode(prompt);
        while ((int) out.size() < n) {
            int start = main_context.past;
            std::vector<int> proposed = { next };
            for (int i = 0; i < 4; i++) proposed.push_back(draft.decode({ proposed.back() }).back());
            std::vector<int> best = main_context.decode(proposed);
            size_t good = 0;
            while (good + 1 < proposed.size() && best[good] == proposed[good + 1]) good++;
            out.insert(out.end(), proposed.begin(), proposed.begin() + good + 1);
            next = best[good];
            main_context.keep(start + (int) good + 1);
            if (draft.past > start + (int) good + 1) draft.keep(start + (int) good + 1);
            else draft.decode({ proposed.back() });
        }
    } else {
        Context other(model);
        if (mode == "turns") other.decode(prompt);
        if (mode == "save") {
            std::vector<uint8_t> state(llama_state_get_size(main_context.ctx));
            size_t size = llama_state_get_data(main_context.ctx, state.data(), state.size());
            llama_memory_clear(llama_get_memory(main_context.ctx), true);
            llama_state_set_data(main_context.ctx, state.data(), size);
        }
        while ((int) out.size() < n) {
            out.push_back(next);
            next = main_context.decode({ next }).back();
            if (mode == "turns") {
                int theirs = other.decode({ out.back() }).back();
                if (theirs != next) fprintf(stderr, "the contexts differ at token %zu\n", out.size());
            }
            if (mode == "shift" && out.size() % 40 == 0) {
                llama_memory_t memory = llama_get_memory(main_context.ctx);
                int half = main_context.past / 2;
                llama_memory_seq_rm(memory, 0, 4, 4 + half);
                llama_memory_seq_add(memory, 0, 4 + half, -1, -half);
                main_context.past -= half;
            }
        }
    }
    out.resize(n);
    for (int t : out) printf("%d ", t);
    printf("\n");
    return 0;
}
