#!/usr/bin/env bash
# Compares each op of captured graphs between tpc's reference and llama.cpp's CPU back end, or between two builds.
#   LLAMA_BUILD=BUILD TPC=target/release/tpc tests/engine/bisect.sh GRAPH.jsonl...
#   LLAMA_BUILD=BUILD LLAMA_OTHER=BUILD2 ... tests/engine/bisect.sh GRAPH.jsonl...
# A build of llama.cpp needs -DGGML_RPC=ON and the target ggml-rpc-server. The exit status is the number of graphs whose
# ops differ.
set -euo pipefail
build=${LLAMA_BUILD:?the folder of a build of llama.cpp}
tpc=${TPC:-target/release/tpc}
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$scratch"' EXIT
# The engine's aborts would start a debugger.
export GGML_NO_BACKTRACE=1
port=$((20000 + RANDOM % 10000))
servers=()

start() { # BUILD
    port=$((port + 1))
    LD_LIBRARY_PATH=$1/bin "$1/bin/ggml-rpc-server" -H 127.0.0.1 -p "$port" -d CPU -t "${THREADS:-2}" >"$scratch/$port" 2>&1 &
    for _ in $(seq 100); do
        if (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
        sleep 0.1
    done
    servers+=(--rpc "127.0.0.1:$port")
}

start "$build"
if [ -n "${LLAMA_OTHER:-}" ]; then start "$LLAMA_OTHER"; fi
differ=0
for graph in "$@"; do
    # Results of quantised products and attention are compared with the tolerances of the book.
    if "$tpc" bisect "$graph" "${servers[@]}" ${OPTIONS:-} >"$scratch/report" 2>"$scratch/errors"; then
        echo "$(basename "$graph"): $(head -1 "$scratch/report")"
    else
        differ=$((differ + 1))
        echo "$(basename "$graph"): $(head -1 "$scratch/report" "$scratch/errors" | sed -n 2p)"
        if [ -n "${VERBOSE:-}" ]; then cat "$scratch/report" "$scratch/errors"; fi
    fi
done
exit "$differ"
