# shellcheck shell=bash
# Process 1 of a node's namespaces. Sourced by hack/real-node.

program() { local name=$1; shift; "$@" > "$LOG/$name.log" 2>&1 & }

own_places() {  # the usual places, but the node's own: nothing is seen or left outside
  mount -t tmpfs tmpfs /run
  local folder; for folder in lib/kubelet lib/containerd lib/cni log; do
    mkdir -p "$NODE/var/$folder" "/var/$folder"; mount --bind "$NODE/var/$folder" "/var/$folder"
  done
  # The kubelet insists on kernel settings that are the whole machine's; it finds them as it wants them, in files.
  local setting; mkdir -p /run/sysctl
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
                 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    echo "${setting#*=}" > "/run/sysctl/$(basename "${setting%=*}")"
    mount --bind "/run/sysctl/$(basename "${setting%=*}")" "/proc/sys/${setting%=*}"
  done
}

own_network() {
  ip link set lo up
  while ! ip link show eth0 >/dev/null 2>&1; do sleep 0.1; done   # boot() moves it here
  ip address add "$NODE_IP/24" dev eth0; ip link set eth0 up; ip route add default via "$HOST_IP"
  echo 1 > /proc/sys/net/ipv4/ip_forward
}

inside() {
  own_places; own_network
  local etcd=http://127.0.0.1:2379 peer=http://127.0.0.1:2380
  program etcd etcd --name=default --data-dir="$NODE/var/etcd" --unsafe-no-fsync=true --log-level=warn \
    --listen-client-urls=$etcd --advertise-client-urls=$etcd \
    --listen-peer-urls=$peer --initial-advertise-peer-urls=$peer --initial-cluster=default=$peer
  program containerd containerd --config "$ETC/containerd.toml"
  until echo > /dev/tcp/127.0.0.1/2379; do sleep 0.2; done 2>/dev/null
  program kube-apiserver kube-apiserver --etcd-servers=$etcd --advertise-address="$NODE_IP" --secure-port=6443 \
    --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
    --kubelet-client-certificate="$PKI/admin.crt" --kubelet-client-key="$PKI/admin.key" \
    --kubelet-preferred-address-types=InternalIP --authorization-mode=Node,RBAC --allow-privileged=true \
    --enable-admission-plugins=NodeRestriction --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$PKI/sa.key" --service-account-signing-key-file="$PKI/sa.key" \
    --service-cluster-ip-range="$SERVICES"
  until kubectl --kubeconfig "$ETC/admin.kubeconfig" get --raw /readyz >/dev/null 2>&1; do sleep 0.5; done
  program kube-controller-manager kube-controller-manager --kubeconfig="$ETC/controller-manager.kubeconfig" \
    --leader-elect=false --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
    --use-service-account-credentials=true --flex-volume-plugin-dir=/var/lib/kubelet/volumeplugins
  program kube-scheduler kube-scheduler --kubeconfig="$ETC/scheduler.kubeconfig" --leader-elect=false
  until ctr version >/dev/null 2>&1; do sleep 0.2; done
  program kubelet kubelet --config="$ETC/kubelet.yaml" --kubeconfig="$ETC/kubelet.kubeconfig" \
    --hostname-override="$NAME" --node-ip="$NODE_IP"
  program kube-proxy kube-proxy --config="$ETC/proxy.yaml"
  trap 'exit 0' TERM
  while :; do wait -n || sleep 1; done   # reaps what containers leave behind; a program that ends is seen in its log
}
