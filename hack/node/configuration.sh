# shellcheck shell=bash
# Keys and configuration of a node's programs, made anew at every start. Sourced by hack/real-node.

certificate() {  # file, subject, further extension lines
  openssl req -newkey rsa:2048 -nodes -keyout "$PKI/$1.key" -subj "$2" -out "$PKI/$1.csr" 2>/dev/null
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 365 -out "$PKI/$1.crt" \
    -extfile <(printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:-}") 2>/dev/null
}

kubeconfig() {  # file; its certificate has the same name
  cat > "$ETC/$1.kubeconfig" <<EOT
apiVersion: v1
kind: Config
current-context: node
clusters: [{name: node, cluster: {server: "https://$NODE_IP:6443", certificate-authority: $PKI/ca.crt}}]
users: [{name: $1, user: {client-certificate: $PKI/$1.crt, client-key: $PKI/$1.key}}]
contexts: [{name: node, context: {cluster: node, user: $1}}]
EOT
}

configuration() {
  rm -rf "$PKI" "$ETC"; mkdir -p "$PKI" "$ETC/cni"; chmod 700 "$PKI"
  openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=real-node -keyout "$PKI/ca.key" -out "$PKI/ca.crt" 2>/dev/null
  openssl genrsa -out "$PKI/sa.key" 2048 2>/dev/null
  certificate apiserver /CN=kube-apiserver "subjectAltName=IP:$NODE_IP,IP:$API_SERVICE,IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"
  certificate admin /O=system:masters/CN=admin
  certificate controller-manager /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate proxy /CN=system:kube-proxy
  certificate kubelet "/O=system:nodes/CN=system:node:$NAME"
  local who; for who in admin controller-manager scheduler proxy kubelet; do kubeconfig "$who"; done

  cat > "$ETC/kubelet.yaml" <<EOT
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failCgroupV1: false                # 1.35 and later refuse v1 by default, and some machines have nothing else
cgroupDriver: cgroupfs             # no systemd in the namespace
failSwapOn: false
oomScoreAdj: 0                     # without CAP_SYS_RESOURCE a score can be raised, never lowered (default -999)
clusterDomain: cluster.local
volumePluginDir: /var/lib/kubelet/volumeplugins   # the default is under /usr/libexec, which is the machine's
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
imageGCHighThresholdPercent: 100   # images were imported and cannot be pulled again
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
EOT
  cat > "$ETC/proxy.yaml" <<EOT
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $ETC/proxy.kubeconfig}
hostnameOverride: $NAME
clusterCIDR: $PODS
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}   # the machine's settings stay
EOT
  cat > "$ETC/containerd.toml" <<EOT
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"   # made by base_images
  restrict_oom_score_adj = true                  # pause asks for -998, which needs CAP_SYS_RESOURCE
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$ETC/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
EOT
  cat > "$ETC/cni/10-bridge.conflist" <<EOT
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOT
}
