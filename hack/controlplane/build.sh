#!/usr/bin/env bash
# Builds the programs of one Kubernetes minor that its tools.go names (those of a node are pinned beside them), or etcd,
# from the pins beside this file, into a directory named for the hash of those pins. Nothing is built twice: a second build of the same pins waits for the first
# and finds its result.
#
# usage: build.sh 1.35|1.36|1.37|1.37-node|etcd   prints the directory of the binaries; a minor brings etcd along
# exit:  2 no such pins, 3 a build is needed and there is no Go
set -euo pipefail

target=${1:?usage: build.sh 1.35|1.36|1.37|1.37-node|etcd}
here="$(cd "$(dirname "$0")" && pwd)"
pins="$here/$target"
[ -f "$pins/go.mod" ] || { echo "no pins for $target in $here" >&2; exit 2; }

cache="${SPINNEY_CONTROLPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spinney/controlplane}"
hash=$(cat "$pins/go.mod" "$pins/go.sum" "$pins"/*.go | sha256sum | cut -c1-12)
out="$cache/$target-$hash"

[ "$target" = etcd ] || "$here/build.sh" etcd >/dev/null

build() {
  echo "building $1 into $out (some minutes, once)" >&2
  (cd "$pins" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${3:-}" -o "$out/" $2)
}

build_kubernetes() {
  local version stamp package minor=${target%-node}
  version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}  $1 == "k8s.io/kubernetes" {print $2; exit}' "$pins/go.mod" | head -n 1)
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    stamp="${stamp:-} -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor#1.}"
  done
  build "Kubernetes $version" "$(grep -o 'k8s.io/kubernetes/cmd/[a-z-]*' "$pins/tools.go")" "$stamp"
}

if [ ! -f "$out/.complete" ]; then
  command -v go >/dev/null || { echo "building $target needs go on PATH" >&2; exit 3; }
  mkdir -p "$out"
  if command -v flock >/dev/null; then exec 9>"$out/.lock"; flock 9; fi
  if [ ! -f "$out/.complete" ]; then
    if [ "$target" = etcd ]; then build etcd .; else build_kubernetes; fi
    touch "$out/.complete"
  fi
fi
echo "$out"
