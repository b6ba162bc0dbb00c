// Runs a model alone and with split tensors, and prints how the logits differ.
//
//   geometry MODEL.gguf DEVICES [--rpc HOST:PORT,…] [-ts 3,1] [-ot REGEX=CPU] [-cmoe] [--nkvo] [--ctk T] [--ctv T]
//
// Without --rpc, the processor is used as DEVICES devices, under ggml's tensor split. A prompt of 40 tokens precedes
// 8 single tokens. Prints `nmse ALL prompt PROMPT decode DECODE`; an abort of the engine ends the process.
#include "ggml-backend.h"
#include "ggml-rpc.h"
#include "llama.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int PROMPT = 40;
constexpr int SINGLE = 8;

struct Options {
    std::string model, rpc, override_pattern;
    std::vector<float> shares;
    int devices = 2;
    bool cache_on_host = false, experts_on_host = false;
    ggml_type type_k = GGML_TYPE_F16, type_v = GGML_TYPE_F16;
};

std::vector<std::string> parts(const std::string & text, char separator) {
    std::vector<std::string> out;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(separator, at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

ggml_type type_of(const char * name) {
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        const char * known = ggml_type_name((ggml_type) i);
        if (known && !strcmp(known, name)) {
            return (ggml_type) i;
        }
    }
    fprintf(stderr, "unknown type %s\n", name);
    exit(2);
}

Options read(int argc, char ** argv) {
    if (argc < 3) {
        fprintf(stderr, "geometry MODEL.gguf DEVICES [options]\n");
        exit(2);
    }
    Options out;
    out.model = argv[1];
    out.devices = atoi(argv[2]);
    for (int i = 3; i < argc; i++) {
        const std::string name = argv[i];
        const auto value = [&] {
            if (i + 1 >= argc) {
                fprintf(stderr, "%s needs a value\n", name.c_str());
                exit(2);
            }
            return argv[++i];
        };
        if (name == "--rpc") {
            out.rpc = value();
        } else if (name == "-ts") {
            for (const auto & share : parts(value(), ',')) {
                out.shares.push_back(strtof(share.c_str(), nullptr));
            }
        } else if (name == "-ot") {
            const std::string text = value();
            out.override_pattern = text.substr(0, text.rfind('='));
        } else if (name == "-cmoe") {
            out.experts_on_host = true;
        } else if (name == "--nkvo") {
            out.cache_on_host = true;
        } else if (name == "--ctk") {
            out.type_k = type_of(value());
        } else if (name == "--ctv") {
            out.type_v = type_of(value());
        } else {
            fprintf(stderr, "unknown option %s\n", name.c_str());
            exit(2);
        }
    }
    return out;
}

// The logits of all tokens: a prompt, then single tokens.
std::vector<float> logits(const Options & o, bool split) {
    std::vector<ggml_backend_dev_t> devices;
    if (split && o.rpc.empty()) {
        devices.assign(o.devices, ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU));
    } else if (split) {
        for (const auto & server : parts(o.rpc, ',')) {
            ggml_backend_reg_t reg = ggml_backend_rpc_add_server(server.c_str());
            for (size_t i = 0; reg && i < ggml_backend_reg_dev_count(reg); i++) {
                devices.push_back(ggml_backend_reg_dev_get(reg, i));
            }
        }
    }
    devices.push_back(nullptr);
    std::vector<float> shares(llama_max_devices(), 0.0f);
    std::copy(o.shares.begin(), o.shares.end(), shares.begin());
    std::string experts = "\\.ffn_(up|down|gate|gate_up)_(ch|)exps";
    std::vector<llama_model_tensor_buft_override> overrides;
    if (!o.override_pattern.empty()) {
        overrides.push_back({ o.override_pattern.c_str(), ggml_backend_cpu_buffer_type() });
    }
    if (o.experts_on_host) {
        overrides.push_back({ experts.c_str(), ggml_backend_cpu_buffer_type() });
    }
    overrides.push_back({ nullptr, nullptr });

    llama_model_params mp = llama_model_default_params();
    mp.devices = devices.data();
    mp.n_gpu_layers = split ? 999 : 0;
    mp.split_mode = split ? LLAMA_SPLIT_MODE_TENSOR : LLAMA_SPLIT_MODE_NONE;
    if (split) {
        mp.tensor_buft_overrides = overrides.data();
        mp.tensor_split = o.shares.empty() ? nullptr : shares.data();
    }
    llama_model * model = llama_model_load_from_file(o.model.c_str(), mp);
    if (!model) {
        printf(split ? "refused\n" : "not loaded\n");
        exit(split ? 4 : 3);
    }
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_batch = PROMPT;
    cp.n_ubatch = PROMPT;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.type_k = o.type_k;
    cp.type_v = o.type_v;
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    cp.offload_kqv = !(split && o.cache_on_host);
    llama_context * context = llama_init_from_model(model, cp);
    if (!context) {
        printf("no context\n");
        exit(5);
    }
    const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    std::vector<float> out;
    const auto run = [&](int first, int count) {
        llama_batch batch = llama_batch_init(count, 0, 1);
        batch.n_tokens = count;
        for (int i = 0; i < count; i++) {
            batch.token[i] = (llama_token) ((uint32_t) (first + i + 1) * 2654435761u % (uint32_t) vocabulary);
            batch.pos[i] = first + i;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        if (llama_decode(context, batch) != 0) {
            printf("no decode\n");
            exit(6);
        }
        for (int i = 0; i < count; i++) {
            const float * row = llama_get_logits_ith(context, i);
            out.insert(out.end(), row, row + vocabulary);
        }
        llama_batch_free(batch);
    };
    run(0, PROMPT);
    for (int i = 0; i < SINGLE; i++) {
        run(PROMPT + i, 1);
    }
    llama_free(context);
    llama_model_free(model);
    return out;
}

double nmse(const std::vector<float> & a, const std::vector<float> & b, size_t from, size_t to) {
    double error = 0, power = 0;
    for (size_t i = from; i < to; i++) {
        error += (double) (a[i] - b[i]) * (a[i] - b[i]);
        power += (double) a[i] * a[i];
    }
    return error / power;
}

} // namespace

int main(int argc, char ** argv) {
    const Options o = read(argc, argv);
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level >= GGML_LOG_LEVEL_ERROR) {
            fputs(text, stderr);
        }
    }, nullptr);
    llama_backend_init();
    const auto alone = logits(o, false);
    const auto split = logits(o, true);
    const size_t n = alone.size(), prompt = n / (PROMPT + SINGLE) * PROMPT;
    printf("nmse %.3g prompt %.3g decode %.3g\n", nmse(alone, split, 0, n), nmse(alone, split, 0, prompt),
           nmse(alone, split, prompt, n));
}
