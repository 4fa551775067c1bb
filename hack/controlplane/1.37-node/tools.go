//go:build tools

// Package controlplane names the binaries to build, so that go.sum covers them.
package controlplane

import (
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
