#!/usr/bin/env bash
# Builds the controllers of other people's workloads from the pins beside this file, each with the CRDs, webhooks and
# examples that its module publishes, into a directory named for the hash of those pins. Nothing is built twice: a second
# build of the same pins waits for the first and finds its result.
#
# usage: build.sh   prints the directory; in it NAME/controller and NAME/published for each operator
# exit:  3 a build is needed and there is no Go
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
cache="${SPINNEY_OPERATORS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spinney/operators}"
hash=$(cat "$here"/build.sh "$here"/*/* "$here"/go.* | sha256sum | cut -c1-12)
out="$cache/$hash"

# name, package to build, module, what of the module's source is kept
operators="
jobset   sigs.k8s.io/jobset                                            sigs.k8s.io/jobset                          config
lws      sigs.k8s.io/lws/cmd                                           sigs.k8s.io/lws                             config,docs/examples
trainer  github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager github.com/kubeflow/trainer/v2              manifests,examples
mpi      ./mpi                                                         github.com/kubeflow/mpi-operator            manifests,examples
training ./training                                                    github.com/kubeflow/training-operator       manifests,examples
kuberay  ./kuberay                                                     github.com/ray-project/kuberay/ray-operator config
"

build() {
  local name=$1 package=$2 module=$3 kept=$4 source part
  echo "building $name into $out (some minutes, once)" >&2
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/$name/controller" "$package")
  source=$(cd "$here" && go list -m -f '{{.Dir}}' "$module")
  for part in ${kept//,/ }; do
    mkdir -p "$out/$name/published/$part"
    cp -r "$source/$part/." "$out/$name/published/$part/"
  done
  chmod -R u+w "$out/$name/published"
}

if [ ! -f "$out/.complete" ]; then
  command -v go >/dev/null || { echo "building the operators needs go on PATH" >&2; exit 3; }
  mkdir -p "$out"
  if command -v flock >/dev/null; then exec 9>"$out/.lock"; flock 9; fi
  if [ ! -f "$out/.complete" ]; then
    while read -r name package module kept; do
      [ -z "$name" ] || build "$name" "$package" "$module" "$kept"
    done <<<"$operators"
    touch "$out/.complete"
  fi
fi
echo "$out"
