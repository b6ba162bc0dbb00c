#!/bin/sh
# ggml's conformance suite of ops, run by llama.cpp's test-backend-ops over `tpc rpc --devices cpu`, an op at a time.
#
#   LLAMA_CPP=~/llama.cpp tests/engine/test-backend-ops.sh [OP…]
#
# LLAMA_CPP      llama.cpp's sources
# LLAMA_BUILD    its build, with -DGGML_RPC=ON -DLLAMA_BUILD_TESTS=ON [default: $LLAMA_CPP/build]
# TPC            the program [default: target/release/tpc]
# DEVICES        its devices [default: cpu]
# PROTOCOL       the version of the RPC protocol: 7 for llama.cpp 0.5 and 0.6 [default: 8]
# SECONDS_PER_OP the time for an op's cases [default: 600]
#
# Prints a line per op: passed, not supported by the engine's own reference, failed, and `whole` where all cases ran.
# Ends with 1 where one failed or not all ran.
set -u
: "${LLAMA_CPP:?the sources of llama.cpp}"
build=${LLAMA_BUILD:-$LLAMA_CPP/build}
here=$(cd "$(dirname "$0")" && pwd)
tpc=${TPC:-$here/../../target/release/tpc}
work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
cc -shared -fPIC "$here/rpc-device.c" -I "$LLAMA_CPP/ggml/include" -L "$build/bin" -lggml-rpc \
    -Wl,-rpath,"$build/bin" -o "$work/rpc-device.so" || exit 2
suite=$build/bin/test-backend-ops
[ $# -gt 0 ] || set -- $("$suite" --show-coverage | awk '/✓/ { print $2 }')
status=0
for op in "$@"; do
    : >"$work/out"
    "$tpc" rpc --devices "${DEVICES:-cpu}" --protocol "${PROTOCOL:-8}" --listen 127.0.0.1:0 >"$work/out" 2>"$work/err" &
    server=$!
    until grep -q listening "$work/out"; do
        kill -0 $server 2>/dev/null || { cat "$work/err"; exit 2; }
        sleep 0.1
    done
    address=$(sed -n 's/^listening on //p' "$work/out")
    GGML_BACKEND_PATH=$work/rpc-device.so RPC_DEVICE=$address \
        timeout "${SECONDS_PER_OP:-600}" "$suite" test -b RPC0 -o "$op" >"$work/cases" 2>&1
    ended=$?
    kill $server
    wait $server 2>/dev/null
    esc=$(printf '\033')
    sed -i "s/$esc\[[0-9;]*m//g" "$work/cases"
    passed=$(grep -c '): OK$' "$work/cases")
    failed=$(grep -c '): FAIL$' "$work/cases")
    unsupported=$(grep -c 'not supported' "$work/cases")
    case $ended in
        0 | 1) whole=whole ;;
        *) whole="ended with $ended" ;;
    esac
    printf '%s\t%s\t%s\t%s\t%s\n' "$op" "$passed" "$unsupported" "$failed" "$whole"
    [ $ended -eq 0 ] || { status=1; grep -h -A3 'TPC07[56]' "$work/err" | tail -n 4; grep FAIL "$work/cases" | head -5; }
    [ "$whole" = whole ] || tail -n 2 "$work/cases" "$work/err"
done
exit $status
