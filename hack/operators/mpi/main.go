// Command mpi runs the MPI operator's controller. Its own main cannot be used in tests: it serves health on port 8080 of
// every address, and elects a leader first.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	informers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	"github.com/kubeflow/mpi-operator/pkg/controller"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	options := options.NewServerOption()
	options.AddFlags(flag.CommandLine)
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = float32(options.QPS), options.Burst
	if err := scheme.AddToScheme(kubescheme.Scheme); err != nil {
		log.Fatal(err)
	}
	kube, mpi := kubernetes.NewForConfigOrDie(config), clientset.NewForConfigOrDie(config)
	core, jobs := kubeinformers.NewSharedInformerFactory(kube, 0), informers.NewSharedInformerFactory(mpi, 0)
	ctx := context.Background()
	running, err := controller.NewMPIJobController(ctx, kube, mpi, nil, nil,
		core.Core().V1().ConfigMaps(), core.Core().V1().Secrets(), core.Core().V1().Services(),
		core.Batch().V1().Jobs(), core.Core().V1().Pods(), core.Scheduling().V1().PriorityClasses(),
		jobs.Kubeflow().V2beta1().MPIJobs(), options)
	if err != nil {
		log.Fatal(err)
	}
	core.Start(ctx.Done())
	jobs.Start(ctx.Done())
	log.Fatal(running.Run(options.Threadiness, ctx.Done()))
}
