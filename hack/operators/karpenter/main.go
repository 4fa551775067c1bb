// Command karpenter runs Karpenter with the cloud provider that makes nodes of KWOK. Its own main serves health and
// metrics on every address of the machine; here health is on loopback, and there are no metrics.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

func main() {
	ctrl.SetLogger(zap.New())
	ctx := injection.WithOptionsOrDie(ctrl.SetupSignalHandler(), options.Injectables...)
	own := options.FromContext(ctx)
	rest := ctrl.GetConfigOrDie()
	rest.QPS, rest.Burst = float32(own.KubeClientQPS), own.KubeClientBurst
	manager, err := ctrl.NewManager(rest, ctrl.Options{
		Scheme:                 scheme.Scheme,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: fmt.Sprintf("127.0.0.1:%d", own.HealthProbePort),
		BaseContext:            func() context.Context { return ctx },
		Controller:             controllerconfig.Controller{CacheSyncTimeout: 10 * time.Minute}, // on a busy machine
	})
	must(err)
	index(ctx, manager)
	must(manager.AddReadyzCheck("readyz", healthz.Ping))
	types, err := kwok.ConstructInstanceTypes(ctx)
	must(err)
	store := nodeoverlay.NewInstanceTypeStore()
	bare := kwok.NewCloudProvider(ctx, manager.GetClient(), types)
	provider := overlay.Decorate(bare, manager.GetClient(), store)
	now := clock.RealClock{}
	recorder := events.NewRecorder(manager.GetEventRecorderFor("karpenter")) //nolint:staticcheck // what it takes
	cluster := state.NewCluster(now, manager.GetClient(), provider)
	(&operator.Operator{Manager: manager}).WithControllers(ctx, controllers.NewControllers(
		ctx, manager, now, manager.GetClient(), recorder, provider, bare, cluster, store,
	)...).Start(ctx)
}

// index has the caches find what Karpenter's controllers look for, as its own main has it.
func index(ctx context.Context, manager ctrl.Manager) {
	add := func(object client.Object, field string, value func(client.Object) string) {
		must(manager.GetFieldIndexer().IndexField(ctx, object, field, func(found client.Object) []string {
			return []string{value(found)}
		}))
	}
	add(&corev1.Pod{}, "spec.nodeName", func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName })
	add(&corev1.Node{}, "spec.providerID", func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID })
	add(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) string {
		return o.(*storagev1.VolumeAttachment).Spec.NodeName
	})
	add(&v1.NodeClaim{}, "status.providerID", func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID })
	ofClaim := func(o client.Object) *v1.NodeClassReference { return o.(*v1.NodeClaim).Spec.NodeClassRef }
	ofPool := func(o client.Object) *v1.NodeClassReference { return o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef }
	for field, part := range map[string]func(*v1.NodeClassReference) string{
		"group": func(class *v1.NodeClassReference) string { return class.Group },
		"kind":  func(class *v1.NodeClassReference) string { return class.Kind },
		"name":  func(class *v1.NodeClassReference) string { return class.Name },
	} {
		add(&v1.NodeClaim{}, "spec.nodeClassRef."+field, func(o client.Object) string { return part(ofClaim(o)) })
		add(&v1.NodePool{}, "spec.template.spec.nodeClassRef."+field, func(o client.Object) string { return part(ofPool(o)) })
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
