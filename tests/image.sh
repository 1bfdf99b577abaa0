#!/usr/bin/env bash
# Checks the Dockerfile without a container engine: replays its steps on a plain Debian root made by debootstrap.
# The build stage's toolchain is this machine's; the binary is built by the Dockerfile's own command.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/prepare.sh
need_cargo
need_postgres
command -v debootstrap >/dev/null || install_packages debootstrap
root=$(mktemp -d)
# The image's user must get in.
chmod 755 "$root"
trap 'as_root umount "$root/proc" 2>/dev/null || true; as_root rm -rf "$root"' EXIT

say "build stage"
build=$(sed -n 's/^RUN \(cargo build .*\) --target-dir .*/\1/p' Dockerfile)
[ -n "$build" ] || { echo "no build command in the Dockerfile" >&2; exit 1; }
$build
strip -o "$root.freshet" "$CARGO_TARGET_DIR/release/freshet"

say "runtime stage"
as_root debootstrap --variant=minbase --include="ca-certificates" bookworm "$root" >/dev/null
sed -n '/^FROM debian/,$p' Dockerfile | sed -n 's/^RUN \(useradd .*\)/\1/p' | as_root chroot "$root" sh -eu
as_root install -D "$root.freshet" "$root/usr/local/bin/freshet"
as_root install -D -m 644 config/freshet.toml "$root/etc/freshet/freshet.toml"
rm -f "$root.freshet"
sed -n '/^FROM debian/,$p' Dockerfile | sed -n 's/^RUN \(sed .*\)/\1/p' | as_root chroot "$root" sh -eu
grep -q '^addresses = \["0.0.0.0:5433"\]' "$root/etc/freshet/freshet.toml" || { echo "it listens inside the container only" >&2; exit 1; }
as_root mount -t proc proc "$root/proc"
user=$(sed -n 's/^USER \(.*\)/\1/p' Dockerfile)
health=$(sed -n 's/^HEALTHCHECK .* CMD \[\(.*\)\]/\1/p' Dockerfile | tr -d '",')
variables=$(sed -n 's/^ENV \(.*\)/\1/p' Dockerfile)
command=$(sed -n 's/^CMD \[\(.*\)\]/\1/p' Dockerfile | tr -d '",')

say "run as $user: $command"
# shellcheck disable=SC2086
as_root chroot --userspec="$user" "$root" env $variables FRESHET_UPSTREAM_URL=postgres://nobody@127.0.0.1:1/db \
    FRESHET_LISTEN_ADDRESSES=127.0.0.1:0 /usr/local/bin/freshet $command >"$root/tmp/log" 2>&1 &
pid=$!
ok=
for _ in $(seq 1 100); do
    # shellcheck disable=SC2086
    if as_root chroot --userspec="$user" "$root" env $variables /usr/local/bin/$health >/dev/null 2>&1; then ok=1; break; fi
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
# With sudo in front, the process is its child.
served=$(pgrep -n -f '^/usr/local/bin/freshet serve' || true)
uid=$([ -z "$served" ] || awk '/^Uid:/ {print $2}' "/proc/$served/status")
[ -z "$served" ] || as_root kill -TERM "$served"
wait $pid || true
tail -n 5 "$root/tmp/log"
[ -n "$ok" ] || { echo "the health check never passed" >&2; exit 1; }
[ "${uid:-0}" != 0 ] || { echo "it ran as root" >&2; exit 1; }
say "image: healthy, ran as $user (uid $uid), size of the root: $(du -sh "$root" 2>/dev/null | cut -f1)"
