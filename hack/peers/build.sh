#!/usr/bin/env bash
# Builds the schedulers and the operator that do the same job as ours: KAI, Grove's operator, scheduler-plugins and
# Volcano, each with the CRDs of its source, into a directory named for the hash of the versions below.
# Nothing is built twice: a second build waits for the first and finds its result.
#
# usage: [PEERS=DIRECTORY] build.sh [--check] [kai] [grove] [scheduler-plugins] [volcano]
#        prints the directory; in it NAME/bin and NAME/crds for each peer. --check builds nothing
# PEERS: a directory with the projects' source archives (*.tar.gz, *.tar.xz); without it, Git gets their tags
# exit:  1 --check and a peer is not built, 2 no such peer or no source of it, 3 a build is needed and there is no Go
set -euo pipefail

cache="${SPINNEY_PEERS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spinney/peers}"

# name, repository, tag or commit, the tree's name in an archive, Go module in it, packages to build, directories of CRDs.
# scheduler-plugins has no tag yet for the Kubernetes that its peers are built on.
peers="
kai               kai-scheduler/KAI-Scheduler         v0.17.0          kai|KAI-Scheduler-0.17.0             .        ./cmd/scheduler,./cmd/binder                 deployments/kai-scheduler/crds
grove             ai-dynamo/grove                     v0.1.0-alpha.11  grove-alpha.11|grove-0.1.0-alpha.11  operator ./cmd                                         operator/api/core/v1alpha1/crds,scheduler/api/core/v1alpha1/crds
scheduler-plugins kubernetes-sigs/scheduler-plugins   903da7df         sp|scheduler-plugins-903da7df*       .        ./cmd/scheduler,./cmd/controller              config/crd/bases
volcano           volcano-sh/volcano                  v1.15.1          volcano|volcano-1.15.1               .        ./cmd/scheduler,./cmd/controller-manager      config/crd/volcano/bases,config/crd/jobflow/bases
"

out="$cache/$(sha256sum <<<"$peers" | cut -c1-12)"

field() { awk -v name="$1" -v number="$2" '$1 == name {print $number}' <<<"$peers"; }

# Archives may refer to each other (Grove's operator to KAI's source), so all of them are unpacked side by side.
unpack() {
  local archive
  for archive in "$PEERS"/*.tar.gz "$PEERS"/*.tar.xz; do
    [ ! -f "$archive" ] || tar xf "$archive" -C "$1"
  done
}

source_of() {
  local name=$1 trees=$2 pattern found
  if [ -z "${PEERS:-}" ]; then
    git clone --quiet --filter=blob:none --no-checkout "https://github.com/$(field "$name" 2)" "$trees/$name" >&2
    git -C "$trees/$name" -c advice.detachedHead=false checkout --quiet "$(field "$name" 3)" >&2
    echo "$trees/$name"
    return
  fi
  for pattern in $(field "$name" 4 | tr '|' ' '); do
    for found in "$trees"/$pattern; do
      if [ -f "$found/$(field "$name" 5)/go.mod" ]; then echo "$found"; return; fi
    done
  done
  echo "no archive in $PEERS holds the source of $name $(field "$name" 3): expected a directory $(field "$name" 4) in it" >&2
  return 2
}

build() {
  local name=$1 trees tree part target
  trees=$(mktemp -d "$out/.source-XXXXXX")
  trap 'chmod -R u+w "$trees"; rm -rf "$trees"' RETURN
  [ -z "${PEERS:-}" ] || unpack "$trees"
  tree=$(source_of "$name" "$trees") || return
  echo "building $name $(field "$name" 3) into $out (some minutes, once)" >&2
  mkdir -p "$out/$name/bin" "$out/$name/crds"
  target="$out/$name/bin/"
  [ "$name" != grove ] || target="$out/$name/bin/operator"
  (cd "$tree/$(field "$name" 5)" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$target" $(field "$name" 6 | tr ',' ' ')) || return
  for part in $(field "$name" 7 | tr ',' ' '); do cp "$tree/$part"/*.yaml "$out/$name/crds/"; done
  touch "$out/$name/.complete"
}

check=
[ "${1:-}" != --check ] || { check=yes; shift; }
[ $# -gt 0 ] || set -- kai grove scheduler-plugins volcano
for name in "$@"; do
  [ -n "$(field "$name" 2)" ] || { echo "no peer is called $name" >&2; exit 2; }
  if [ -f "$out/$name/.complete" ]; then continue; fi
  [ -z "$check" ] || { echo "$name is not built: run 'make peers'" >&2; exit 1; }
  command -v go >/dev/null || { echo "building $name needs go on PATH" >&2; exit 3; }
  mkdir -p "$out"
  if command -v flock >/dev/null; then exec 9>"$out/.lock"; flock 9; fi
  [ -f "$out/$name/.complete" ] || build "$name" || exit
done
echo "$out"
