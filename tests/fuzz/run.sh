#!/usr/bin/env bash
# Builds all fuzz targets, and runs each for a while on a copy of its corpus.
#
#     tests/fuzz/run.sh [SECONDS [TARGET]...]
#
# SECONDS is 10 unless given, and the targets are all. It needs a C++ compiler, for libFuzzer, and no
# nightly toolchain: the crates have next to no unsafe code, so no sanitizer runs. An input that
# crashes a target is kept in tests/fuzz/artifacts/TARGET.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-10}
[ $# = 0 ] || shift
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    for file in fuzz_targets/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi
command -v c++ >/dev/null || { echo "the fuzz targets need a C++ compiler: install g++"; exit 1; }

# The flags of cargo-fuzz without a sanitizer. With a target, they are not those of build scripts.
host=$(rustc -vV | sed -n 's/^host: //p')
flags="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1"
for flag in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=" -Cllvm-args=-sanitizer-coverage-$flag"
done
RUSTFLAGS=$flags cargo build --quiet --release --locked --target "$host" \
    $(printf -- '--bin %s ' "${targets[@]}")

for target in "${targets[@]}"; do
    # A copy, because libFuzzer adds what it finds.
    corpus=target/corpus/$target
    rm -rf "$corpus"
    mkdir -p "$corpus" "artifacts/$target"
    cp "corpus/$target"/* "$corpus"
    log=target/$target.log
    if ! "target/$host/release/$target" "$corpus" -max_total_time="$seconds" -timeout=60 \
        -artifact_prefix="artifacts/$target/" -print_final_stats=1 >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "$target: FAILED; the input is in tests/fuzz/artifacts/$target"
        exit 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    [ "${runs:-0}" -gt "$(ls "corpus/$target" | wc -l)" ] || { cat "$log"; exit 1; }
    echo "$target: $runs inputs"
done
rmdir artifacts/* artifacts 2>/dev/null || true
