package clientgo

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// counted counts what an informer delivers, by name.
type counted struct {
	sync.Mutex
	added, updated, deleted map[string]int
}

func (c *counted) count(of map[string]int, object any) {
	c.Lock()
	defer c.Unlock()
	if stale, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = stale.Obj
	}
	of[object.(*corev1.ConfigMap).Name]++
}

func (c *counted) of(of map[string]int, name string) int {
	c.Lock()
	defer c.Unlock()
	return of[name]
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

// EXP-07 a shared informer lists by watch (WatchList), follows changes, and keeps its cache right over a restart of the API server.
func TestSharedInformerOverRestart(t *testing.T) {
	client := clientset(t)
	in := namespace(t, client)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	maps := client.CoreV1().ConfigMaps(in)
	for index := range 20 {
		if _, err := maps.Create(ctx, configMap(fmt.Sprintf("before-%d", index), "1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(in))
	informer := factory.Core().V1().ConfigMaps()
	seen := &counted{added: map[string]int{}, updated: map[string]int{}, deleted: map[string]int{}}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen.count(seen.added, object) },
		UpdateFunc: func(_, object any) { seen.count(seen.updated, object) },
		DeleteFunc: func(object any) { seen.count(seen.deleted, object) },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		t.Fatal("the cache never synced")
	}
	if got := seen.of(seen.added, "before-19"); got != 1 {
		t.Fatalf("before-19 was added %d times, want once", got)
	}

	skiff(t, "stop", os.Getenv("CLUSTER"), "-q")
	skiff(t, "start", os.Getenv("CLUSTER"), "-q")
	eventually(t, "a change after the restart is written", func() (bool, string) {
		_, err := maps.Update(ctx, configMap("before-0", "2"), metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	if err := maps.Delete(ctx, "before-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the informer sees both changes", func() (bool, string) {
		return seen.of(seen.updated, "before-0") > 0 && seen.of(seen.deleted, "before-1") == 1, fmt.Sprintf("%+v", seen.updated)
	})
	if got := seen.of(seen.added, "before-19"); got != 1 {
		t.Fatalf("before-19 was added %d times over the restart, want once", got)
	}
	kept, err := informer.Lister().ConfigMaps(in).Get("before-0")
	if err != nil || kept.Data["key"] != "2" {
		t.Fatalf("the lister has %v, %v", kept, err)
	}
}
