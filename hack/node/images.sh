# shellcheck shell=bash
# Images of a node. No registry is needed: pause and busybox are Debian's static busybox, and where the base of our own
# image cannot be pulled it is made of Debian's packages. Sourced by hack/real-node.

IMAGES=$NODE/images
BASE=localhost/python-of-debian:13

load_image() { enter ctr --namespace k8s.io images import "$1"; }

podman_here() { podman --root "$NODE/podman" --runroot "$NODE/podman-run" --cgroup-manager=cgroupfs --runtime="$(command -v runc)" "$@"; }

base_images() {
  if [ ! -f "$IMAGES/pause.tar" ]; then
    local root="$IMAGES/busybox"; mkdir -p "$root/bin" "$root/tmp" "$root/etc"; chmod 1777 "$root/tmp"
    cp /bin/busybox "$root/bin/busybox"
    (cd "$root/bin" && for applet in $(./busybox --list | grep -vx busybox); do ln -sf busybox "$applet"; done)
    printf 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' > "$root/etc/passwd"
    import_folder "$root" docker.io/library/busybox:latest busybox --change 'ENV PATH=/bin' --change 'CMD ["sh"]'
    import_folder "$root" registry.k8s.io/pause:3.10 pause --change 'ENV PATH=/bin' --change 'USER 65534' \
      --change 'ENTRYPOINT ["/bin/sh", "-c", "trap \"exit 0\" TERM INT; while :; do sleep 3600 & wait; done"]'
  fi
  load_image "$IMAGES/busybox.tar"; load_image "$IMAGES/pause.tar"
}

import_folder() {  # folder name:tag archive podman-import-options...
  local folder=$1 name=$2 archive=$3; shift 3
  tar -C "$folder" --numeric-owner --owner=0 --group=0 -cf "$IMAGES/$archive.layer.tar" .
  podman_here import "$@" "$IMAGES/$archive.layer.tar" "$name" >&2
  rm -f "$IMAGES/$archive.tar" "$IMAGES/$archive.layer.tar"
  podman_here save --output "$IMAGES/$archive.tar" "$name" >&2
}

debian_mirror() { apt-get indextargets --format '$(REPO_URI)' | grep -v security | sort -u | head -1; }

base_of() {  # the build argument that names the base: none where the Containerfile's own can be pulled
  local wanted; wanted=$(sed -n 's/^ARG BASE=//p' "$1/Containerfile")
  if podman_here pull --quiet "$wanted" >/dev/null 2>&1; then return; fi
  if ! podman_here image exists "$BASE"; then
    [ -f "$IMAGES/trixie.tar" ] || mmdebstrap --variant=minbase --include=python3,python3-venv,ca-certificates \
      --customize-hook='for name in python python3; do ln -s /usr/bin/python3 "$1/usr/local/bin/$name"; done' \
      trixie "$IMAGES/trixie.tar" "$(debian_mirror)" >&2
    podman_here import "$IMAGES/trixie.tar" "$BASE" >&2
  fi
  echo "--build-arg=BASE=$BASE"
}

build_image() {  # folder name:tag
  mkdir -p "$IMAGES"
  local base certificates=/etc/ssl/certs/ca-certificates.crt; base=$(base_of "$1")
  # chroot: RUN without runc, whose default limits cannot be set everywhere; the certificates are this machine's.
  # shellcheck disable=SC2086
  podman_here build --isolation=chroot --network=host $base --volume "$certificates:$certificates:ro" \
    --env "PIP_CERT=$certificates" --tag "docker.io/library/$2" --file "$1/Containerfile" "$1" >&2
  rm -f "$IMAGES/built.tar"; podman_here save --output "$IMAGES/built.tar" "docker.io/library/$2" >&2
  load_image "$IMAGES/built.tar"
}
