# Sourced by deploy/demo and tests/run: what they need of a fresh Debian or Ubuntu, said before it is done.
say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

# Compiled files stay outside the checkout, so that a fresh clone on the same machine builds incrementally.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/freshet/target}"
mkdir -p "$CARGO_TARGET_DIR"

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        echo "This needs root: $*" >&2; return 1
    fi
}

apt_updated=
install_packages() {
    say "Installing from the distribution: $*"
    [ -n "$apt_updated" ] || { as_root apt-get update -qq; apt_updated=1; }
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

need_cargo() {
    command -v cargo >/dev/null || [ ! -f "$HOME/.cargo/env" ] || . "$HOME/.cargo/env"
    command -v cargo >/dev/null || { echo "A Rust toolchain is needed: install rustup, then run this again." >&2; exit 1; }
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(cargo --version | cut -d' ' -f2)
    if [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
        echo "Rust $wanted or later is needed, here is $found: install rustup, which brings it, then run this again." >&2
        exit 1
    fi
    command -v cc >/dev/null || install_packages gcc libc6-dev
}

# The newest server that the distribution brings, or one named by THROWAWAY_PG_BIN (a folder with initdb and postgres).
need_postgres() {
    if [ -n "${THROWAWAY_PG_BIN:-}" ] && [ -x "$THROWAWAY_PG_BIN/initdb" ]; then return; fi
    if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
        # The package would start a cluster of its own on 5432; the tests and the demo make throwaway ones.
        local choice=/etc/postgresql-common/createcluster.conf made=
        as_root mkdir -p "$(dirname "$choice")"
        if [ ! -e "$choice" ]; then
            made=1
            echo 'create_main_cluster = false' | as_root tee "$choice" >/dev/null
        fi
        install_packages postgresql
        [ -z "$made" ] || as_root rm -f "$choice"
    fi
    THROWAWAY_PG_BIN=$(dirname "$(ls -d /usr/lib/postgresql/*/bin/initdb | sort -V | tail -1)")
    export THROWAWAY_PG_BIN
}
