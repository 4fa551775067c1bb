#!/usr/bin/env bash
# interpreter.sh VERSION: prints the path of a Python of this version (3.14), or `debian:ROOT` for one that Debian has and
# that runs in a root of its own. Looks on PATH, among pyenv's, at uv's builds, and at Debian's packages, in that order.
#
# exit: 3 there is none to be had here
set -euo pipefail
version=$1
cache="${XDG_CACHE_HOME:-$HOME/.cache}/spinney/python"
suite=${SPINNEY_DEBIAN_SUITE:-forky}

is_it() { [ -x "$1" ] && "$1" -c "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; }

candidates() {
  type -aP "python$version" python3 || true
  compgen -G "$HOME/.pyenv/versions/$version.*/bin/python" || true
  ! command -v uv >/dev/null || uv python find --no-project "$version" 2>/dev/null || true
}
while read -r found; do
  if is_it "$found"; then "$found" -c 'import sys; print(sys.executable)'; exit; fi
done < <(candidates)

if command -v uv >/dev/null && uv python install --quiet --install-dir "$cache/uv" "$version" 2>/dev/null; then
  uv python find --no-project --managed-python "$version" && exit
  compgen -G "$cache/uv/cpython-$version.*/bin/python$version" && exit
fi

if [ "$(id -u)" = 0 ] && command -v mmdebstrap >/dev/null; then
  root="$cache/debian-$suite-$version"
  if [ ! -f "$root/.complete" ]; then
    rm -rf "$root" && mkdir -p "$cache"
    echo "fetching Debian's Python $version into $root (about a minute, once)" >&2
    # A mirror that lags behind is as good: only the interpreter is wanted, and its signature is checked.
    if mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
      --include="python$version,python$version-venv,make,git,ca-certificates,bash,coreutils,dash,grep,sed,mawk,libstdc++6" \
      "$suite" "$root" >&2; then touch "$root/.complete"; fi
  fi
  if [ -f "$root/.complete" ]; then echo "debian:$root"; exit; fi
fi
echo "no Python $version here: not on PATH, not pyenv's, and neither uv nor Debian can be asked" >&2
exit 3
