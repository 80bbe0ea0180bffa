// Package vpa runs upstream's VerticalPodAutoscaler, unmodified, against a Skiff cluster named by KUBECONFIG.
package vpa

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpaclient "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	patience  = 3 * time.Minute
	namespace = "default"
	// resized has pods that the updater resizes in place, evicted has pods that it evicts.
	resized, evicted = "resized", "evicted"
)

var ctx = context.Background()

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until the answer is yes, and fails the test when it stays no.
func eventually(t *testing.T, what string, ask func() (bool, string)) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		yes, seen := ask()
		if yes {
			return
		}
		last = seen
	}
	t.Fatalf("%s: not within %s; last: %s", what, patience, last)
}

// lab is the cluster under test.
type lab struct {
	client *kubernetes.Clientset
	vpas   *vpaclient.Clientset
}

// hungry is a Deployment of two pods that request a twentieth of a CPU and use 400m, and request 32Mi of memory and use 300 MiB.
func hungry(name string) *appsv1.Deployment {
	replicas, labels := int32(2), map[string]string{"app": name}
	usage := map[string]string{"skiff.dev/simulated-cpu-milli": "400", "skiff.dev/simulated-memory-bytes": fmt.Sprint(300 << 20)}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: usage},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
		}},
	}
}

func autoscalerOf(name string, mode vpav1.UpdateMode) *vpav1.VerticalPodAutoscaler {
	return &vpav1.VerticalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: vpav1.VerticalPodAutoscalerSpec{
			TargetRef:    &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			UpdatePolicy: &vpav1.PodUpdatePolicy{UpdateMode: &mode},
		},
	}
}

func (l lab) create(t *testing.T, name string, mode vpav1.UpdateMode) {
	t.Helper()
	_, err := l.client.AppsV1().Deployments(namespace).Create(ctx, hungry(name), metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the VerticalPodAutoscaler is created", func() (bool, string) {
		_, err := l.vpas.AutoscalingV1().VerticalPodAutoscalers(namespace).Create(ctx, autoscalerOf(name, mode), metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// pods lists those that are not being deleted.
func (l lab) pods(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	list, err := l.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	must(t, err)
	staying := []corev1.Pod{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			staying = append(staying, pod)
		}
	}
	return staying
}

func (l lab) uids(t *testing.T, name string) map[types.UID]bool {
	t.Helper()
	found := map[types.UID]bool{}
	for _, pod := range l.pods(t, name) {
		found[pod.UID] = true
	}
	return found
}

func isFed(requests corev1.ResourceList) bool {
	return requests.Cpu().MilliValue() >= 400 && requests.Memory().Value() >= 300<<20
}

func TestVerticalPodAutoscaler(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	install(t)
	lab := lab{kubernetes.NewForConfigOrDie(config), vpaclient.NewForConfigOrDie(config)}
	lab.create(t, resized, vpav1.UpdateModeInPlaceOrRecreate)
	lab.create(t, evicted, vpav1.UpdateModeRecreate)
	background(t, "recommender", "--recommender-interval=2s", "--confidence-interval-cpu=1m", "--confidence-interval-memory=1m")
	t.Run("AUT-03 the recommender recommends what the metrics API says that pods use", func(t *testing.T) {
		lab.untilRecommended(t, resized)
		lab.untilRecommended(t, evicted)
	})
	before := map[string]map[types.UID]bool{resized: lab.uids(t, resized), evicted: lab.uids(t, evicted)}
	startWebhook(t, lab.client)
	t.Run("AUT-03 the webhook gives a new pod what was recommended", func(t *testing.T) { createPod(t, lab, before[resized]) })
	t.Run("AUT-03 the webhook refuses a VerticalPodAutoscaler with a minimum of no replicas", func(t *testing.T) { refuseAutoscaler(t, lab) })
	// It waits for the Lease that the admission controller renews.
	background(t, "updater", "--updater-interval=3s", "--min-replicas=1")
	t.Run("AUT-03 the updater resizes the pods in place", func(t *testing.T) { resizeInPlace(t, lab, before[resized]) })
	t.Run("AUT-03 the updater evicts pods, and the webhook gives their successors what was recommended", func(t *testing.T) {
		recreate(t, lab, before[evicted])
	})
}

func (l lab) untilRecommended(t *testing.T, name string) {
	t.Helper()
	eventually(t, "a recommendation above the usage", func() (bool, string) {
		found, err := l.vpas.AutoscalingV1().VerticalPodAutoscalers(namespace).Get(ctx, name, metav1.GetOptions{})
		must(t, err)
		if found.Status.Recommendation == nil || len(found.Status.Recommendation.ContainerRecommendations) != 1 {
			return false, fmt.Sprint(found.Status.Conditions)
		}
		target := found.Status.Recommendation.ContainerRecommendations[0].Target
		return isFed(target) && target.Cpu().MilliValue() <= 800 && target.Memory().Value() <= 600<<20, fmt.Sprint(target)
	})
}

// createPod adds a third pod to a Deployment whose template still requests a twentieth of a CPU.
func createPod(t *testing.T, lab lab, before map[types.UID]bool) {
	_, err := lab.client.AppsV1().Deployments(namespace).Patch(ctx, resized, types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	must(t, err)
	eventually(t, "a third pod", func() (bool, string) {
		pods := lab.pods(t, resized)
		return len(pods) == 3, fmt.Sprint(len(pods))
	})
	for _, pod := range lab.pods(t, resized) {
		if before[pod.UID] {
			continue
		}
		if requests := pod.Spec.Containers[0].Resources.Requests; !isFed(requests) || !strings.Contains(pod.Annotations["vpaUpdates"], "Pod resources updated by "+resized) {
			t.Errorf("the new pod requests %v, with the annotations %v", requests, pod.Annotations)
		}
	}
}

func refuseAutoscaler(t *testing.T, lab lab) {
	wrong, none := autoscalerOf("wrong", vpav1.UpdateModeRecreate), int32(0)
	wrong.Spec.UpdatePolicy.MinReplicas = &none
	_, err := lab.vpas.AutoscalingV1().VerticalPodAutoscalers(namespace).Create(ctx, wrong, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), `admission webhook "vpa.k8s.io" denied the request`) {
		t.Errorf("not refused by the webhook: %v", err)
	}
}

func resizeInPlace(t *testing.T, lab lab, before map[types.UID]bool) {
	eventually(t, "both pods have what was recommended", func() (bool, string) {
		seen, fed := "", 0
		for _, pod := range lab.pods(t, resized) {
			requests := pod.Spec.Containers[0].Resources.Requests
			seen += fmt.Sprint(pod.Name, requests, " ")
			if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].Resources == nil {
				continue
			}
			status := pod.Status.ContainerStatuses[0]
			if before[pod.UID] && isFed(requests) && isFed(status.Resources.Requests) && status.RestartCount == 0 {
				fed++
			}
		}
		return fed == 2, seen
	})
}

func recreate(t *testing.T, lab lab, before map[types.UID]bool) {
	eventually(t, "two successors have what was recommended", func() (bool, string) {
		seen, fed := "", 0
		for _, pod := range lab.pods(t, evicted) {
			requests := pod.Spec.Containers[0].Resources.Requests
			seen += fmt.Sprint(pod.Name, requests, " ")
			if !before[pod.UID] && isFed(requests) {
				fed++
			}
		}
		return fed == 2, seen
	})
}
