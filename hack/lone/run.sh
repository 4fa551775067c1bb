#!/usr/bin/env bash
# run.sh VERSION TARGET...: runs make targets of the last commit as somebody does who has just cloned it: in a folder with
# nothing beside it, with an empty HOME, empty caches and this version of Python. Only what names the package index
# (pip's settings, proxies, certificates) is taken along. Variables for make are given as NAME=value.
#
# exit: 3 there is no such Python here
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$1; shift
python=$("$here/interpreter.sh" "$version")

room=$(mktemp -d "${TMPDIR:-/tmp}/lone.XXXXXX")
trap 'rm -rf "$room"' EXIT
mkdir -p "$room/home" "$room/tmp" "$room/alone"
git -C "$here" clone --quiet --no-hardlinks "$(git -C "$here" rev-parse --show-toplevel)" "$room/alone/spinney"

kept=()
while IFS='=' read -r -d '' name value; do
  case $name in
    PIP_*|*_proxy|*_PROXY|SSL_CERT_*|REQUESTS_CA_BUNDLE|LANG|LC_ALL|CI) kept+=("$name=$value") ;;
  esac
done < <(env -0)
for file in "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  if [ -z "${PIP_CONFIG_FILE:-}" ] && [ -f "$file" ]; then
    cp "$file" "$room/pip.conf"; kept+=("PIP_CONFIG_FILE=$room/pip.conf"); break
  fi
done
clean=(env -i "${kept[@]}" HOME="$room/home" TMPDIR="$room/tmp")

if [ "${python#debian:}" = "$python" ]; then
  "${clean[@]}" PATH=/usr/local/bin:/usr/bin:/bin make -C "$room/alone/spinney" PYTHON="$python" "$@" </dev/null
else
  root=${python#debian:}
  mkdir -p "$root$room"
  unshare --mount --propagation private bash -euo pipefail -c '
    root=$1 room=$2; shift 2
    for each in /proc /dev /sys "$room"; do mkdir -p "$root$each"; mount --rbind "$each" "$root$each"; done
    for each in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
      if [ -e "$each" ]; then mkdir -p "$root$(dirname "$each")"; touch "$root$each"; mount --bind "$each" "$root$each"; fi
    done
    exec chroot "$root" "$@"' lone "$root" "$room" \
    "${clean[@]}" PATH=/usr/local/bin:/usr/bin:/bin make -C "$room/alone/spinney" PYTHON="/usr/bin/python$version" "$@" </dev/null
  rmdir "$root$room" 2>/dev/null || true
fi
