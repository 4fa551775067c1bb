// Command kuberay runs KubeRay's controllers of RayCluster, RayJob and RayService. Its own main also links webhooks,
// which are off by default and do not build with the controller-runtime that the other operators here are pinned to.
package main

import (
	"flag"
	"log"
	"time"

	configapi "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/batchscheduler"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray/utils"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	probes := flag.String("health-probe-bind-address", "", "the address of the health probes")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(rayv1.AddToScheme(scheme))
	rest := ctrl.GetConfigOrDie()
	rest.QPS, rest.Burst = 500, 500
	made := labels.SelectorFromSet(labels.Set{utils.KubernetesCreatedByLabelKey: utils.ComponentName})
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: *probes,
		Controller:             controllerconfig.Controller{CacheSyncTimeout: 10 * time.Minute}, // on a busy machine
		Cache:                  cache.Options{ByObject: map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: made}}},
	})
	must(err)
	ctx := ctrl.SetupSignalHandler()
	config := configapi.Configuration{}
	schedulers, err := batchscheduler.NewSchedulerManager(ctx, config, rest, manager.GetClient())
	must(err)
	clusters := ray.RayClusterReconcilerOptions{BatchSchedulerManager: schedulers}
	must(ray.NewReconciler(ctx, manager, clusters).SetupWithManager(manager, 1))
	must(ray.NewRayServiceReconciler(ctx, manager, config).SetupWithManager(manager, 1))
	jobs := ray.RayJobReconcilerOptions{BatchSchedulerManager: schedulers}
	must(ray.NewRayJobReconciler(ctx, manager, jobs, config).SetupWithManager(manager, 1))
	must(manager.AddReadyzCheck("readyz", healthz.Ping))
	must(manager.Start(ctx))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
