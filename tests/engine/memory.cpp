// Prints the memory that llama.cpp allocates for a model file on simulated devices.
//
// The devices accept every op and every size, so a plan for eight cards can be measured on a machine without cards.
// llama.cpp loads the file without allocating (`no_alloc`), reserves its graphs, and reports the bytes of every buffer.
//
// Build: c++ -std=c++17 memory.cpp -I$SRC/include -I$SRC/ggml/include -I$SRC/ggml/src -I$SRC/src -L$BUILD/bin -lllama -lggml -lggml-base -o memory

#include "ggml-backend-impl.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "llama-ext.h"
#include "llama-model.h"
#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

// The features of the devices, set by options.
bool pipelines = false; // asynchronous copies and events, as on CUDA and ROCm
bool offloads = true;   // large batches run on a device even if the weight is on the host
bool converts = false;  // flash attention copies quantised caches to f16, as CUDA does for prompts

struct device_context {
    std::string name;
    ggml_backend_device device;
    ggml_backend_buffer_type type;
};

std::vector<device_context *> devices;

// A buffer without memory: its size, and true if it was created while the model was loaded.
struct made_buffer {
    device_context * device;
    size_t size;
    bool of_model;
};

bool loads_model = true;
std::vector<made_buffer *> made;

const char * buffer_type_name(ggml_backend_buffer_type_t t) { return ((device_context *) t->context)->name.c_str(); }

void * buffer_base(ggml_backend_buffer_t) { return (void *) 0x1000; }
void buffer_clear(ggml_backend_buffer_t, uint8_t) {}
void buffer_set(ggml_backend_buffer_t, ggml_tensor *, const void *, size_t, size_t) {}
void buffer_get(ggml_backend_buffer_t, const ggml_tensor *, void *, size_t, size_t) {}
void buffer_set_2d(ggml_backend_buffer_t, ggml_tensor *, const void *, size_t, size_t, size_t, size_t, size_t) {}
void buffer_free(ggml_backend_buffer_t b) { ((made_buffer *) b->context)->size = 0; }
void buffer_memset(ggml_backend_buffer_t, ggml_tensor *, uint8_t, size_t, size_t) {}

ggml_backend_buffer_t buffer_new(ggml_backend_buffer_type_t t, size_t size) {
    ggml_backend_buffer_i iface = {};
    iface.free_buffer = buffer_free;
    iface.get_base = buffer_base;
    iface.set_tensor_2d = buffer_set_2d;
    iface.memset_tensor = buffer_memset;
    iface.set_tensor = buffer_set;
    iface.get_tensor = buffer_get;
    iface.clear = buffer_clear;
    made.push_back(new made_buffer { (device_context *) t->context, size, loads_model });
    return ggml_backend_buffer_init(t, iface, made.back(), size);
}

size_t alignment(ggml_backend_buffer_type_t) { return 128; }

size_t alloc_size(ggml_backend_buffer_type_t, const ggml_tensor * t) {
    size_t size = ggml_nbytes(t);
    if (t->op == GGML_OP_FLASH_ATTN_EXT && converts) {
        for (int i : { 1, 2 }) {
            if (ggml_is_quantized(t->src[i]->type)) {
                size += ggml_nelements(t->src[i])*2;
            }
        }
    }
    if (ggml_is_quantized(t->type) && t->ne[0] % 512 != 0) {
        size += ggml_row_size(t->type, 512 - t->ne[0] % 512);
    }
    return size;
}

const char * device_name(ggml_backend_dev_t d) { return ((device_context *) d->context)->name.c_str(); }

void device_memory(ggml_backend_dev_t, size_t * free, size_t * total) { *free = *total = (size_t) 1 << 40; }

enum ggml_backend_dev_type device_type(ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; }

void device_props(ggml_backend_dev_t d, ggml_backend_dev_props * props) {
    memset(props, 0, sizeof(*props));
    props->name = props->description = device_name(d);
    props->type = device_type(d);
    device_memory(d, &props->memory_free, &props->memory_total);
    props->caps.async = props->caps.events = pipelines;
}

const char * backend_name(ggml_backend_t b) { return device_name(b->device); }
void backend_free(ggml_backend_t b) { delete b; }
void backend_synchronize(ggml_backend_t) {}
ggml_status backend_compute(ggml_backend_t, ggml_cgraph *) { abort(); }

ggml_guid guid = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };

ggml_backend_t backend_new(ggml_backend_dev_t d, const char *) {
    ggml_backend_i iface = {};
    iface.get_name = backend_name;
    iface.free = backend_free;
    iface.synchronize = backend_synchronize;
    iface.graph_compute = backend_compute;
    return new ggml_backend { &guid, iface, d, nullptr };
}

ggml_backend_buffer_type_t device_buffers(ggml_backend_dev_t d) { return &((device_context *) d->context)->type; }

bool supports_op(ggml_backend_dev_t, const ggml_tensor *) { return true; }

bool supports_buffers(ggml_backend_dev_t d, ggml_backend_buffer_type_t t) { return t == device_buffers(d); }

bool offload_op(ggml_backend_dev_t, const ggml_tensor * op) {
    if (!offloads) {
        return false;
    }
    switch (op->op) {
        case GGML_OP_GET_ROWS: return false;
        case GGML_OP_MUL_MAT: return op->ne[1] >= 32;
        case GGML_OP_MUL_MAT_ID:
        case GGML_OP_ROPE: return op->ne[2] >= 32;
        default: return ggml_nrows(op) >= 32;
    }
}

ggml_backend_event_t event_new(ggml_backend_dev_t d) { return new ggml_backend_event { d, nullptr }; }
void event_free(ggml_backend_dev_t, ggml_backend_event_t e) { delete e; }
void event_synchronize(ggml_backend_dev_t, ggml_backend_event_t) {}

const char * reg_name(ggml_backend_reg_t) { return "NAMED"; }
size_t reg_count(ggml_backend_reg_t) { return devices.size(); }
ggml_backend_dev_t reg_device(ggml_backend_reg_t, size_t i) { return &devices[i]->device; }
ggml_backend_reg reg = { GGML_BACKEND_API_VERSION, { reg_name, reg_count, reg_device, nullptr }, nullptr };

void add_device(int i) {
    auto * c = new device_context { "DEV" + std::to_string(i), {}, {} };
    c->device.iface = { device_name, device_name, device_memory, device_type, device_props, backend_new, device_buffers, nullptr,
        nullptr, supports_op, supports_buffers, offload_op, event_new, event_free, event_synchronize };
    c->device.reg = &reg;
    c->device.context = c;
    c->type.iface = {};
    c->type.iface.get_name = buffer_type_name;
    c->type.iface.alloc_buffer = buffer_new;
    c->type.iface.get_alignment = alignment;
    c->type.iface.get_alloc_size = alloc_size;
    c->type.device = &c->device;
    c->type.context = c;
    devices.push_back(c);
}

bool loud = false;

void logged(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN || loud) {
        fputs(text, stderr);
    }
}

ggml_type cache_type(const std::string & name) {
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const char * n = ggml_type_name((ggml_type) t);
        if (n != nullptr && name == n) {
            return (ggml_type) t;
        }
    }
    fprintf(stderr, "unknown cache type %s\n", name.c_str());
    exit(2);
}

// One object per buffer type: name, model, context and compute bytes.
void print(const char * what, const llama_context * ctx) {
    printf("{\"context\":\"%s\",\"buffers\":[", what);
    bool first = true;
    for (const auto & [type, m] : llama_get_memory_breakdown(ctx)) {
        printf("%s{\"name\":\"%s\",\"host\":%s,\"model\":%zu,\"context\":%zu,\"compute\":%zu}", first ? "" : ",",
            ggml_backend_buft_name(type), ggml_backend_buft_is_host(type) ? "true" : "false", m.model, m.context, m.compute);
        first = false;
    }
    printf("]}\n");
}

// One object per device: the bytes of the model's and of the context's buffers.
void print_made() {
    printf("{\"context\":\"made\",\"devices\":[");
    for (size_t i = 0; i < devices.size(); i++) {
        size_t model = 0, context = 0;
        for (const auto * b : made) {
            if (b->device == devices[i]) {
                (b->of_model ? model : context) += b->size;
            }
        }
        printf("%s{\"model\":%zu,\"context\":%zu}", i == 0 ? "" : ",", model, context);
    }
    printf("]}\n");
}

// The weights of each device under a tensor split; llama.cpp reports only their sum.
void print_divided(const llama_model * model, size_t n) {
    llama_meta_device_get_split_state_userdata of = { n, model };
    std::vector<double> bytes(n, 0.0);
    for (const auto & [name, t] : llama_internal_get_tensor_map(model)) {
        if (ggml_backend_buffer_is_host(t->buffer)) {
            continue;
        }
        ggml_tensor named = *t;
        const auto state = llama_meta_device_get_split_state(&named, &of);
        for (size_t d = 0; d < n; d++) {
            double part = 1.0;
            if (state.axis >= 0 && state.axis < GGML_MAX_DIMS) {
                part = 0.0;
                for (size_t s = 0; s < state.n_segments; s++) {
                    part += (double) state.ne[s*n + d]*state.nr[s];
                }
                part /= t->ne[state.axis];
            }
            bytes[d] += part*ggml_nbytes(t);
        }
    }
    printf("{\"context\":\"divided\",\"devices\":[");
    for (size_t d = 0; d < n; d++) {
        printf("%s%.0f", d == 0 ? "" : ",", bytes[d]);
    }
    printf("]}\n");
}

} // namespace

int main(int argc, char ** argv) {
    std::string file;
    int n = 1, ncmoe = 0;
    bool drafts = false;
    std::vector<float> proportions(llama_max_devices(), 0.0f);
    std::vector<std::string> patterns;
    auto mp = llama_model_default_params();
    auto cp = llama_context_default_params();
    mp.no_alloc = true;
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    mp.n_gpu_layers = -1;
    mp.use_extra_bufts = false;
    cp.n_ctx = 4096;
    cp.n_batch = 2048;
    cp.n_ubatch = 512;
    for (int i = 1; i < argc; i++) {
        const std::string a = argv[i];
        auto value = [&]() -> std::string {
            if (++i >= argc) { exit(2); }
            return argv[i];
        };
        auto number = [&]() { return atoi(value().c_str()); };
        if (a == "-m") { file = value(); }
        else if (a == "--devices") { n = number(); }
        else if (a == "-sm") {
            const auto v = value();
            mp.split_mode = v == "tensor" ? LLAMA_SPLIT_MODE_TENSOR : v == "none" ? LLAMA_SPLIT_MODE_NONE : LLAMA_SPLIT_MODE_LAYER;
        }
        else if (a == "-ts") {
            const auto v = value();
            size_t at = 0;
            for (char * p = (char *) v.c_str(); *p != 0 && at < proportions.size();) {
                proportions[at++] = strtof(p, &p);
                if (*p != 0) { p++; }
            }
        }
        else if (a == "-ngl") { mp.n_gpu_layers = number(); }
        else if (a == "-c") { cp.n_ctx = number(); }
        else if (a == "-b") { cp.n_batch = number(); }
        else if (a == "-ub") { cp.n_ubatch = number(); }
        else if (a == "-np") { cp.n_seq_max = number(); }
        else if (a == "-kvu") { cp.kv_unified = true; }
        else if (a == "--outputs") { cp.n_outputs_max = number(); }
        else if (a == "--snapshots") { cp.n_rs_seq = number(); }
        else if (a == "-ctk") { cp.type_k = cache_type(value()); }
        else if (a == "-ctv") { cp.type_v = cache_type(value()); }
        else if (a == "-fa") { cp.flash_attn_type = value() == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_ENABLED; }
        else if (a == "-nkvo") { cp.offload_kqv = false; }
        else if (a == "--swa-full") { cp.swa_full = true; }
        else if (a == "--no-swa-full") { cp.swa_full = false; }
        else if (a == "-cmoe") { ncmoe = 10000; }
        else if (a == "-ncmoe") { ncmoe = number(); }
        else if (a == "-ot") { patterns.push_back(value()); }
        else if (a == "--mtp") { drafts = true; }
        else if (a == "--moe-cache-mib") { cp.moe_cache_size = (size_t) number() << 20; }
        else if (a == "--pipelines") { pipelines = true; }
        else if (a == "--no-offload") { offloads = false; }
        else if (a == "--converts") { converts = true; }
        else if (a == "--make") {
            mp.no_alloc = false;
            mp.load_mode = LLAMA_LOAD_MODE_MMAP;
        }
        else if (a == "-v") { loud = true; }
        else { fprintf(stderr, "unknown option %s\n", a.c_str()); return 2; }
    }
    cp.swa_full = cp.swa_full && true;
    llama_log_set(logged, nullptr);
    llama_backend_init();
    std::vector<ggml_backend_dev_t> list;
    for (int i = 0; i < n; i++) {
        add_device(i);
        list.push_back(&devices.back()->device);
        ggml_backend_device_register(list.back());
    }
    list.push_back(nullptr);
    mp.devices = list.data();
    mp.tensor_split = proportions.data();
    mp.load_mtp = drafts;
    if (ncmoe >= 10000) {
        patterns.push_back("\\.ffn_(up|down|gate|gate_up)_(ch|)exps");
    } else {
        for (int l = 0; l < ncmoe; l++) {
            patterns.push_back("blk\\." + std::to_string(l) + "\\.ffn_(up|down|gate|gate_up)_(ch|)exps");
        }
    }
    std::vector<llama_model_tensor_buft_override> overrides;
    for (const auto & p : patterns) {
        overrides.push_back({ p.c_str(), ggml_backend_cpu_buffer_type() });
    }
    overrides.push_back({ nullptr, nullptr });
    if (!patterns.empty()) {
        mp.tensor_buft_overrides = overrides.data();
    }
    llama_model * model = llama_model_load_from_file(file.c_str(), mp);
    if (model == nullptr) { return 1; }
    loads_model = false;
    llama_context * ctx = llama_init_from_model(model, cp);
    if (ctx == nullptr) { return 1; }
    print("main", ctx);
    if (mp.split_mode == LLAMA_SPLIT_MODE_TENSOR) {
        print_divided(model, n);
    }
    if (drafts) {
        cp.ctx_type = LLAMA_CONTEXT_TYPE_MTP;
        cp.n_ctx = llama_n_ctx(ctx);
        cp.n_rs_seq = 0;
        cp.ctx_other = ctx;
        cp.type_k = cp.type_v = GGML_TYPE_F16;
        cp.moe_cache_size = 0;
        cp.n_outputs_max = cp.n_seq_max;
        llama_context * draft = llama_init_from_model(model, cp);
        if (draft == nullptr) { return 1; }
        print("draft", draft);
    }
    if (!mp.no_alloc) {
        print_made();
    }
    fflush(stdout);
    _Exit(0);
}
