// Loads model files in llama.cpp and decodes some tokens. Prints a line per file: `ok FILE`, or `no FILE: REASON`.
//
// Build: c++ -std=c++17 load.cpp -I$SRC/include -I$SRC/ggml/include -L$BUILD/bin -lllama -lggml -lggml-base -o load

#include "llama.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

// The last errors that the engine reported.
std::string errors;

void keep_error(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR) {
        errors += text;
    }
}

int fails(const char * file, const std::string & stage) {
    std::string why = errors;
    for (char & c : why) {
        c = c == '\n' ? ' ' : c;
    }
    printf("no %s: %s %s\n", file, stage.c_str(), why.c_str());
    fflush(stdout);
    return 1;
}

int load(const char * file, int n_tokens) {
    llama_log_set(keep_error, nullptr);
    llama_backend_init();
    llama_model * model = llama_model_load_from_file(file, llama_model_default_params());
    if (!model) {
        return fails(file, "loading");
    }
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_batch = params.n_ubatch = 64;
    params.n_threads = params.n_threads_batch = 1;
    // Fused attention of the CPU back end aborts for some sizes of heads.
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context * context = llama_init_from_model(model, params);
    if (!context) {
        return fails(file, "context");
    }
    std::vector<llama_token> tokens(n_tokens);
    for (int i = 0; i < n_tokens; i++) {
        tokens[i] = i % llama_vocab_n_tokens(llama_model_get_vocab(model));
    }
    if (llama_decode(context, llama_batch_get_one(tokens.data(), n_tokens)) != 0) {
        return fails(file, "decoding");
    }
    printf("ok %s\n", file);
    fflush(stdout);
    return 0;
}

} // namespace

int main(int argc, char ** argv) {
    const int n_tokens = 4;
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        // A failed assertion ends only the child.
        const pid_t child = fork();
        if (child == 0) {
            _exit(load(argv[i], n_tokens));
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            perror("fork");
            return 2;
        }
        if (WIFSIGNALED(status)) {
            printf("no %s: ended by signal %d\n", argv[i], WTERMSIG(status));
            fflush(stdout);
        }
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed > 0;
}
