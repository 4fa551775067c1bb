#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager, kube-scheduler and kubectl of one Kubernetes minor from the
# pins beside this file, into a directory named for the hash of those pins. Nothing is built twice: a second
# build of the same pins waits for the first and finds its result.
#
# usage: build.sh MINOR        (1.35, 1.36 or 1.37); prints the directory of the binaries
# exit:  2 no such minor, 3 a build is needed and there is no Go
set -euo pipefail

minor=${1:?usage: build.sh MINOR}
pins="$(cd "$(dirname "$0")" && pwd)/$minor"
[ -f "$pins/go.mod" ] || { echo "no pins for Kubernetes $minor in $(dirname "$pins")" >&2; exit 2; }

cache="${SPINNEY_CONTROLPLANE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spinney/controlplane}"
hash=$(cat "$pins/go.mod" "$pins/go.sum" "$pins/tools.go" | sha256sum | cut -c1-12)
out="$cache/$minor-$hash"

if [ ! -f "$out/.complete" ]; then
  command -v go >/dev/null || { echo "building Kubernetes $minor needs go on PATH" >&2; exit 3; }
  mkdir -p "$out"
  if command -v flock >/dev/null; then exec 9>"$out/.lock"; flock 9; fi
fi

if [ ! -f "$out/.complete" ]; then
  version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" {print $3}  $1 == "k8s.io/kubernetes" {print $2; exit}' "$pins/go.mod" | head -n 1)
  echo "building the Kubernetes $version control plane into $out (some minutes, once)" >&2
  stamp="-X k8s.io/component-base/version.gitVersion=$version"
  stamp="$stamp -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor#1.}"
  stamp="$stamp -X k8s.io/client-go/pkg/version.gitVersion=$version"
  stamp="$stamp -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=${minor#1.}"
  (cd "$pins" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $stamp" -o "$out/" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager \
    k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kubectl)
  touch "$out/.complete"
fi
echo "$out"
