package clientgo

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// API-08 a watch from a revision that is no longer kept gets Expired, and a reflector that resumes there lists again by itself.
func TestReflectorOverCompaction(t *testing.T) {
	client := clientset(t)
	in := namespace(t, client)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	maps := client.CoreV1().ConfigMaps(in)
	made, err := maps.Create(ctx, configMap("first", "1"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	// A server that has just started has no changes in memory from before, so that only the store's history counts.
	skiff(t, "stop", os.Getenv("CLUSTER"), "-q")
	skiff(t, "start", os.Getenv("CLUSTER"), "-q")

	// The first list answers as it was before a long sleep: its revision is compacted by the time the watch begins.
	lists := 0
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			lists++
			list, err := maps.List(ctx, options)
			if lists == 1 && err == nil {
				list.ResourceVersion = "1"
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}
	eventually(t, "revision 1 is compacted", func() (bool, string) {
		watcher, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: "1"})
		if err != nil {
			return apierrors.IsResourceExpired(err) || apierrors.IsGone(err), err.Error()
		}
		defer watcher.Stop()
		select {
		case event := <-watcher.ResultChan():
			failure := apierrors.FromObject(event.Object)
			return event.Type == watch.Error && (apierrors.IsResourceExpired(failure) || apierrors.IsGone(failure)), fmt.Sprint(event)
		case <-time.After(time.Second):
			return false, "no event"
		}
	})
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	go cache.NewReflector(listOnly{source}, &corev1.ConfigMap{}, store, 0).Run(ctx.Done())
	eventually(t, "the reflector has the object", func() (bool, string) {
		_, has, _ := store.Get(made)
		return has && lists > 1, fmt.Sprintf("%d lists, %d objects", lists, len(store.List()))
	})
}

// listOnly turns the list by watch off, so that the reflector begins with LIST.
type listOnly struct{ *cache.ListWatch }

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }
