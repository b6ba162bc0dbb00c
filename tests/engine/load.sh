#!/bin/sh
# Makes the `ARCH-tiny` file and the default file of every architecture with `tpc synth`, and loads each in llama.cpp.
#
#   LLAMA_CPP=~/llama.cpp tests/engine/load.sh [ARCH…]
#
# LLAMA_CPP      llama.cpp's sources
# LLAMA_BUILD    its build [default: $LLAMA_CPP/build]
# TPC            the program [default: target/release/tpc]
#
# Prints a line per file: `ok FILE`, or `no FILE: REASON`. Ends with 1 if a file does not load.
set -u
: "${LLAMA_CPP:?the sources of llama.cpp}"
build=${LLAMA_BUILD:-$LLAMA_CPP/build}
here=$(cd "$(dirname "$0")" && pwd)
tpc=${TPC:-$here/../../target/release/tpc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
c++ -std=c++17 "$here/load.cpp" -I "$LLAMA_CPP/include" -I "$LLAMA_CPP/ggml/include" -L "$build/bin" -lllama -lggml \
    -lggml-base -Wl,-rpath,"$build/bin" -o "$work/load" || exit 2
# The message for an unknown preset lists all presets.
[ $# -gt 0 ] || set -- $("$tpc" synth 0 -o /dev/null 2>&1 | grep -o '[a-z0-9_.-]*-tiny' | sed 's/-tiny$//')
failed=0
for arch; do
    for spec in "$arch-tiny" "$arch:"; do
        file=$work/$(echo "$spec" | tr : -)default.gguf
        case $spec in *-tiny) file=$work/$spec.gguf ;; esac
        if ! "$tpc" synth "$spec" -o "$file" >"$work/said" 2>&1; then
            echo "no $spec: $(head -n 1 "$work/said")"
            failed=1
            continue
        fi
        (cd "$work" && GGML_NO_BACKTRACE=1 ./load "$(basename "$file")" 2>"$work/said") || failed=1
        rm -f "$file"
    done
done
exit $failed
