// Command training runs the training operator's controllers of PyTorchJob, TFJob, XGBoostJob, JAXJob and PaddleJob. Its
// own main also links webhooks, which do not build with the controller-runtime that the other operators here are pinned
// to, and serves MPIJobs of a version that the MPI operator has left behind.
package main

import (
	"flag"
	"log"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllerv1 "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func main() {
	probes := flag.String("health-probe-bind-address", "", "the address of the health probes")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(kubeflowv1.AddToScheme(scheme))
	must(volcano.AddToScheme(scheme)) // it watches PodGroups wherever their definitions are installed
	must(coscheduling.AddToScheme(scheme))
	rest := ctrl.GetConfigOrDie()
	rest.QPS, rest.Burst = 500, 500
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probes,
		Controller:             controllerconfig.Controller{CacheSyncTimeout: 10 * time.Minute}, // on a busy machine
	})
	must(err)
	for kind, setup := range controllerv1.SupportedSchemeReconciler {
		if kind != kubeflowv1.MPIJobKind {
			must(setup(manager, common.GenNonGangSchedulerSetupFunc(), 1))
		}
	}
	must(manager.AddReadyzCheck("readyz", healthz.Ping))
	must(manager.Start(ctrl.SetupSignalHandler()))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
