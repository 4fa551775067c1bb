//go:build tools

// Package operators names the binaries to build, so that go.sum covers them.
package operators

import (
	_ "github.com/kubeflow/mpi-operator/pkg/controller"
	_ "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"
	_ "github.com/kubeflow/training-operator/pkg/controller.v1"
	_ "github.com/ray-project/kuberay/ray-operator/controllers/ray"
	_ "sigs.k8s.io/jobset"
	_ "sigs.k8s.io/lws/cmd"
)
