package clientgo

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// CTL-02 of two candidates one leads; when it releases the Lease, the other one leads, and never both at once.
func TestLeaderElection(t *testing.T) {
	client := clientset(t)
	in := namespace(t, client)
	var leaders atomic.Int32
	var both atomic.Bool
	started := make(chan string, 2)
	candidate := func(name string) context.CancelFunc {
		ctx, cancel := context.WithCancel(context.Background())
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: in},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					if leaders.Add(1) > 1 {
						both.Store(true)
					}
					started <- name
					<-ctx.Done()
					leaders.Add(-1)
				},
				OnStoppedLeading: func() {},
			},
		})
		return cancel
	}
	stops := map[string]context.CancelFunc{"a": candidate("a"), "b": candidate("b")}
	next := func() string {
		select {
		case name := <-started:
			return name
		case <-time.After(patience):
			t.Fatal("nobody leads")
			return ""
		}
	}
	first := next()
	stops[first]()
	second := next()
	defer stops[second]()
	if second == first || both.Load() {
		t.Fatalf("%s led first, %s second, both at once: %v", first, second, both.Load())
	}
}
