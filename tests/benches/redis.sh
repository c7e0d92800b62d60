#!/usr/bin/env bash
# The example `redis` beside the same program on tokio: the server's CPU time of a GET, under
# redis-benchmark with 50 connections, without pipelining and with 16 requests in a write. Prints a
# line for each depth: the medians in microseconds, and the median of the ratios of pairs, with the
# least and the most. Needs taskset and redis-tools, and two idle cores. Build first:
#
#     cargo build --release -p trapline-benches && cargo build --release --example redis
#
# Then: tests/benches/redis.sh [ROUNDS] [REQUESTS]
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-11} requests=${2:-100000}
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT

# Prints the microseconds of CPU that a request costs a server, a fresh process.
cost() {
    local depth=$1
    shift
    : >"$scratch/out"
    taskset -c 1 "$@" --addr 127.0.0.1:0 >"$scratch/out" 2>/dev/null &
    server=$!
    until port=$(sed -n 's/^listening on .*://p' "$scratch/out") && [ -n "$port" ]; do sleep 0.02; done
    redis-cli -p "$port" set key value >/dev/null
    load() { taskset -c 0 redis-benchmark -p "$port" -c 50 -P "$depth" -n "$1" -q get key >/dev/null 2>&1; }
    load 5000
    before=$(cut -d ' ' -f 1 "/proc/$server/schedstat")
    load "$requests"
    after=$(cut -d ' ' -f 1 "/proc/$server/schedstat")
    kill "$server"
    wait "$server" 2>/dev/null || true
    server=
    echo "$before $after $requests" | awk '{ printf "%.4f\n", ($2 - $1) / $3 / 1000 }'
}

for depth in 1 16; do
    : >"$scratch/pairs"
    for round in $(seq "$rounds"); do
        # Each is the first one in every second round.
        if [ $((round % 2)) = 0 ]; then
            ours=$(cost "$depth" target/release/examples/redis)
            theirs=$(cost "$depth" target/release/bench serve redis-on-tokio)
        else
            theirs=$(cost "$depth" target/release/bench serve redis-on-tokio)
            ours=$(cost "$depth" target/release/examples/redis)
        fi
        echo "$ours $theirs" | awk '{ print $1, $2, $1 / $2 }' >>"$scratch/pairs"
    done
    median() { cut -d ' ' -f "$1" "$scratch/pairs" | sort -n | sed -n "$((rounds / 2 + 1))p"; }
    range=$(cut -d ' ' -f 3 "$scratch/pairs" | sort -n | sed -n '1p;$p' | tr '\n' ' ')
    echo "depth $depth: ours $(median 1) us, tokio $(median 2) us, ratio $(median 3) (${range% })"
done
