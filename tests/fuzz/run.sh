#!/bin/sh
# Runs both fuzz targets for this many executions each: tests/fuzz/run.sh 10000000
# What they find lies in tests/fuzz/artifacts, and is run again with `cargo fuzz run --fuzz-dir tests/fuzz TARGET FILE`.
set -eu

runs=${1:-10000000}
cd "$(dirname "$0")/../.."
# Coverage of the compiled code is an unstable flag; the code is built by the compiler of rust-toolchain.toml.
export RUSTC_BOOTSTRAP=1
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
cargo run --quiet --manifest-path tests/fuzz/Cargo.toml --example seeds
# There is no unsafe code of ours that a sanitizer could watch, and it costs half of the runs. Compares are not traced
# where most inputs choose a generated case: no byte of those is ever compared with a word.
run() {
    cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none --release --strip-dead-code "$@" -- \
        -runs="$runs" -max_len=65536 -timeout=10 -rss_limit_mb=4096
}
run --no-trace-compares review
run policy
