#!/bin/sh
# Sees to it that the named tools are there: installs what a Debian machine's root can install, and names the rest in
# one line each.
set -eu

say() {
    echo "missing: $1" >&2
    missing=1
}

install() {
    # $1: command, $2: Debian package
    command -v "$1" >/dev/null 2>&1 && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing $2, for $1" >&2
        if { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$2"; } >/dev/null 2>&1; then
            return
        fi
    fi
    say "$1; on Debian or Ubuntu: apt-get install $2"
}

missing=0
for tool in "$@"; do
    case "$tool" in
    cargo)
        command -v cargo >/dev/null 2>&1 ||
            say "cargo; install Rust from https://rustup.rs, rust-toolchain.toml names the version"
        ;;
    go)
        command -v go >/dev/null 2>&1 ||
            say "go (1.26 or newer), which builds the Kubernetes control plane for the tests; see https://go.dev/dl"
        ;;
    cc) install cc gcc ;;
    ip) install ip iproute2 ;;
    *) say "$tool" ;;
    esac
done
exit "$missing"
