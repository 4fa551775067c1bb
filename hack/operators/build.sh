#!/usr/bin/env bash
# Builds other people's controllers from the pins beside this file, each with the CRDs, webhooks and examples that
# its module publishes, into a directory named for the operator and the hash of its pins. Nothing is built twice: a
# second build of the same pins waits for the first and finds its result.
#
# usage: build.sh [NAME...]   builds these operators, all if none is named, and prints the directory of each; in it are
#                             `controller` and `published`
# exit:  3 a build is needed and there is no Go
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
cache="${SPINNEY_OPERATORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spinney/operators}"

# name, directory of its pins, package to build, module, what of the module's source is kept
operators="
jobset    .         sigs.k8s.io/jobset                                            sigs.k8s.io/jobset                          config
lws       .         sigs.k8s.io/lws/cmd                                           sigs.k8s.io/lws                             config,docs/examples
trainer   .         github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager github.com/kubeflow/trainer/v2              manifests,examples
mpi       .         ./mpi                                                         github.com/kubeflow/mpi-operator            manifests,examples
training  .         ./training                                                    github.com/kubeflow/training-operator       manifests,examples
kuberay   .         ./kuberay                                                     github.com/ray-project/kuberay/ray-operator config
kueue     kueue     .                                                             sigs.k8s.io/kueue                           config/components
karpenter karpenter .                                                             sigs.k8s.io/karpenter                       pkg/apis/crds,kwok/apis/crds
"

what() {  # all that says what is built: a line of the table, and the files that it names
  local pins=$2 package=$3
  echo "$@"
  cat "$here/$pins"/go.*
  [[ $package != .* ]] || cat "$here/$pins/$package"/*.go
}

build() {
  local name=$1 pins=$2 package=$3 module=$4 kept=$5 out=$6 source part
  echo "building $name into $out (some minutes, once)" >&2
  (cd "$here/$pins" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/controller" "$package")
  source=$(cd "$here/$pins" && go list -m -f '{{.Dir}}' "$module")
  for part in ${kept//,/ }; do
    mkdir -p "$out/published/$part"
    cp -r "$source/$part/." "$out/published/$part/"
  done
  chmod -R u+w "$out/published"
  touch "$out/.complete"
}

ready() {  # builds one operator where it is not there yet; prints its directory
  local name=$1 out
  out="$cache/$name-$(what "$@" | sha256sum | cut -c1-12)"
  if [ ! -f "$out/.complete" ]; then
    command -v go >/dev/null || { echo "building $name needs go on PATH" >&2; exit 3; }
    mkdir -p "$out"
    (
      if command -v flock >/dev/null; then exec 9>"$out/.lock"; flock 9; fi
      [ -f "$out/.complete" ] || build "$@" "$out"
    )
  fi
  echo "$out"
}

while read -r name pins package module kept; do
  [ -n "$name" ] || continue
  if [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; then ready "$name" "$pins" "$package" "$module" "$kept"; fi
done <<<"$operators"
