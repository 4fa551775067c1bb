#!/usr/bin/env bash
# Builds the pinned Helm into a directory named for the hash of its pins, once, and prints the path of the binary.
#
# exit:  3 a build is needed and there is no Go
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
cache="${SPINNEY_HELM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spinney/helm}"
hash=$(cat "$here"/* | sha256sum | cut -c1-12)
out="$cache/$hash"

if [ ! -f "$out/.complete" ]; then
  command -v go >/dev/null || { echo "building helm needs go on PATH" >&2; exit 3; }
  mkdir -p "$out"
  if command -v flock >/dev/null; then exec 9>"$out/.lock"; flock 9; fi
  if [ ! -f "$out/.complete" ]; then
    echo "building helm into $out (some minutes, once)" >&2
    # Without a cluster Helm renders for the Kubernetes it was built with, and a plain build says 1.20.
    minor=$(awk '$1 == "k8s.io/client-go" {split($2, part, "."); print part[2]}' "$here/go.mod")
    kubernetes="-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor"
    (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $kubernetes" -o "$out/" helm.sh/helm/v3/cmd/helm)
    touch "$out/.complete"
  fi
fi
echo "$out/helm"
