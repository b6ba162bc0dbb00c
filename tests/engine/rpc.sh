#!/usr/bin/env bash
# Compares llama.cpp alone with llama.cpp over `tpc rpc`: logits of each model, and 200 greedy tokens of f32 models.
#   LLAMA_CPP=SOURCE LLAMA_BUILD=BUILD TPC=target/release/tpc tests/engine/rpc.sh MODEL.gguf...
#   PROTOCOL=7 DEVICES=cpu,cpu,cpu tests/engine/rpc.sh ...
# BUILD is a build of llama.cpp with -DGGML_RPC=ON. PROTOCOL is 7 for llama.cpp 0.5 and 0.6.
set -euo pipefail
source=${LLAMA_CPP:?the folder of llama.cpp}
build=${LLAMA_BUILD:-$source/build}
tpc=${TPC:-target/release/tpc}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT
g++ -O2 -I"$source/include" -I"$source/ggml/include" "$here/contexts.cpp" -o "$scratch/contexts" -L"$build/bin" \
    -lllama -lggml -lggml-base -lggml-cpu -lggml-rpc -Wl,-rpath,"$build/bin"
# The engine's aborts would start a debugger.
export GGML_NO_BACKTRACE=1
port=$((20000 + RANDOM % 10000))

over_rpc() {
    port=$((port + 1))
    : >"$scratch/out"
    "$tpc" rpc --devices "${DEVICES:-cpu,cpu}" --protocol "${PROTOCOL:-8}" --listen "127.0.0.1:$port" --once \
        >"$scratch/out" 2>"$scratch/err" &
    until grep -q listening "$scratch/out" 2>/dev/null; do
        kill -0 $! 2>/dev/null || { cat "$scratch/err" >&2; exit 2; }
        sleep 0.05
    done
    "$scratch/contexts" "$@" --rpc "127.0.0.1:$port" 2>>"$scratch/engine" || kill $!
    wait $! 2>/dev/null || true
}

for model in "$@"; do
    : >"$scratch/engine"
    line="$(basename "$model"): NMSE $(over_rpc compare "$model")"
    case "$model" in *f32*)
        for mode in plain draft turns save shift; do
            # Recurrent models cannot remove tokens.
            "$scratch/contexts" "$mode" "$model" >"$scratch/alone" 2>/dev/null ||
                { line="$line, $mode impossible alone"; continue; }
            over_rpc "$mode" "$model" >"$scratch/remote"
            cmp -s "$scratch/alone" "$scratch/remote" && line="$line, $mode equal" || line="$line, $mode DIFFERS"
        done
        ;;
    esac
    echo "$line"
    # Notes of tpc about ops without a kernel are no errors.
    grep -h "×" "$scratch/err" || true
done
