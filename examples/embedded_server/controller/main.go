// A controller in Go, as small as one can be: it makes a ConfigMap "<name>-greeting" for each one labelled greet.
package main

import (
	"context"
	"log"
	"os"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	labelled := informers.WithTweakListOptions(func(options *meta.ListOptions) { options.LabelSelector = "greet" })
	factory := informers.NewSharedInformerFactoryWithOptions(client, time.Hour, labelled)
	greet := func(obj any) {
		if err := reconcile(client, obj.(*core.ConfigMap)); err != nil {
			log.Print(err)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: greet, UpdateFunc: func(_, now any) { greet(now) }}
	if _, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(handler); err != nil {
		log.Fatal(err)
	}
	factory.Start(context.Background().Done())
	select {}
}

func reconcile(client kubernetes.Interface, seen *core.ConfigMap) error {
	owner := meta.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: seen.Name, UID: seen.UID}
	wanted := &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: seen.Name + "-greeting", OwnerReferences: []meta.OwnerReference{owner}},
		Data:       map[string]string{"text": "hello " + seen.Labels["greet"]},
	}
	maps := client.CoreV1().ConfigMaps(seen.Namespace)
	_, err := maps.Create(context.Background(), wanted, meta.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		_, err = maps.Update(context.Background(), wanted, meta.UpdateOptions{})
	}
	return err
}
