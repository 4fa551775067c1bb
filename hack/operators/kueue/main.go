// Command kueue runs Kueue's controllers, webhooks and scheduler: quotas, topology-aware scheduling and the kinds of
// workloads that its configuration names. Its own main reads the certificate of its metrics from a directory of the
// system, and serves lists of pending workloads; both are left out, and so are several clusters (MultiKueue).
package main

import (
	"flag"
	"log"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	autoscaling "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	configv1beta1 "sigs.k8s.io/kueue/apis/config/v1beta1"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueuev1alpha1 "sigs.k8s.io/kueue/apis/kueue/v1alpha1"
	kueuev1beta1 "sigs.k8s.io/kueue/apis/kueue/v1beta1"
	kueuev1beta2 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/config"
	"sigs.k8s.io/kueue/pkg/constants"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
	_ "sigs.k8s.io/kueue/pkg/controller/jobs"
	"sigs.k8s.io/kueue/pkg/controller/tas"
	tasindexer "sigs.k8s.io/kueue/pkg/controller/tas/indexer"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	"sigs.k8s.io/kueue/pkg/util/kubeversion"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

func main() {
	file := flag.String("config", "", "the configuration")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	scheme := schemeOfAll()
	options, cfg, err := config.Load(scheme, *file)
	must(err)
	must(config.LoadAndValidateFeatureGates("", cfg.FeatureGates).ToAggregate())
	must(config.Validate(&cfg, scheme).ToAggregate())
	config.AddWebhookSettingsTo(&options, &cfg)
	options.Controller.CacheSyncTimeout = 10 * time.Minute // on a busy machine
	options.Metrics = server.Options{BindAddress: "0"}
	rest := ctrl.GetConfigOrDie()
	rest.QPS, rest.Burst = *cfg.ClientConnection.QPS, int(*cfg.ClientConnection.Burst)
	manager, err := ctrl.NewManager(rest, options)
	must(err)
	ctx := ctrl.SetupSignalHandler()

	must(indexer.Setup(ctx, manager.GetFieldIndexer()))
	must(tasindexer.SetupIndexes(ctx, manager.GetFieldIndexer()))
	frameworks := jobframework.WithEnabledFrameworks(cfg.Integrations.Frameworks)
	must(jobframework.SetupIndexes(ctx, manager.GetFieldIndexer(), frameworks))

	cache := schdcache.New(manager.GetClient())
	requeuer := qcache.NewRequeuer()
	must(manager.Add(requeuer))
	preemptions := expectations.New()
	queues := qcache.NewManager(manager.GetClient(), cache, requeuer, qcache.WithPreemptionExpectations(preemptions))
	_, err = core.SetupControllers(manager, queues, cache, &cfg, core.SetupControllersOpts{PreemptionExpectations: preemptions})
	must(err)
	_, err = tas.SetupControllers(manager, queues, cache, &cfg, nil)
	must(err)
	must(jobframework.SetupControllers(ctx, manager, ctrl.Log, jobs(manager, &cfg, cache, queues, frameworks)...))
	_, err = webhooks.Setup(manager, nil)
	must(err)
	go queues.CleanUpOnContext(ctx)
	go cache.CleanUpOnContext(ctx)
	recorder := manager.GetEventRecorder(constants.AdmissionName)
	must(manager.Add(scheduler.New(queues, cache, manager.GetClient(), recorder,
		scheduler.WithPreemptionExpectations(preemptions))))
	must(manager.AddReadyzCheck("readyz", manager.GetWebhookServer().StartedChecker()))
	must(manager.Start(ctx))
}

func schemeOfAll() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, schedulingv1.AddToScheme, resourceapi.AddToScheme, autoscaling.AddToScheme,
		kueuev1alpha1.AddToScheme, kueuev1beta1.AddToScheme, kueuev1beta2.AddToScheme,
		configv1beta1.AddToScheme, configapi.AddToScheme,
	} {
		must(add(scheme))
	}
	must(jobframework.ForEachIntegration(func(_ string, found jobframework.IntegrationCallbacks) error {
		if found.AddToScheme == nil {
			return nil
		}
		return found.AddToScheme(scheme)
	}))
	return scheme
}

func jobs(
	manager ctrl.Manager, cfg *configapi.Configuration, cache *schdcache.Cache, queues *qcache.Manager,
	frameworks jobframework.Option,
) []jobframework.Option {
	client, err := discovery.NewDiscoveryClientForConfig(manager.GetConfig())
	must(err)
	versions := kubeversion.NewServerVersionFetcher(client)
	must(manager.Add(versions))
	must(versions.FetchServerVersion())
	namespaces, err := metav1.LabelSelectorAsSelector(cfg.ManagedJobsNamespaceSelector)
	must(err)
	return []jobframework.Option{
		frameworks,
		jobframework.WithManageJobsWithoutQueueName(cfg.ManageJobsWithoutQueueName),
		jobframework.WithManagedJobsNamespaceSelector(namespaces),
		jobframework.WithWaitForPodsReady(cfg.WaitForPodsReady),
		jobframework.WithKubeServerVersion(versions),
		jobframework.WithManagerName(constants.KueueName),
		jobframework.WithLabelKeysToCopy(cfg.Integrations.LabelKeysToCopy),
		jobframework.WithCache(cache),
		jobframework.WithQueues(queues),
		jobframework.WithObjectRetentionPolicies(cfg.ObjectRetentionPolicies),
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
