// Package vpa runs upstream's VerticalPodAutoscaler, unmodified, against a Skiff cluster named by KUBECONFIG.
package vpa

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	vpav1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	vpaclient "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/client/clientset/versioned"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 3 * time.Minute

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

// installDefinitions creates the custom resource definitions of the module.
func installDefinitions(t *testing.T, config *rest.Config) {
	t.Helper()
	file, err := os.Open(os.Getenv("CRDS"))
	must(t, err)
	defer file.Close()
	definitions := dynamic.NewForConfigOrDie(config).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		definition := &unstructured.Unstructured{}
		err := decoder.Decode(&definition.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		if len(definition.Object) == 0 {
			continue
		}
		_, err = definitions.Create(ctx, definition, metav1.CreateOptions{})
		must(t, err)
	}
}

// background runs a program of the module until the test ends, and shows the end of its log when the test fails.
func background(t *testing.T, name string, args ...string) {
	t.Helper()
	log := filepath.Join(os.Getenv("WORK"), name+".log")
	file, err := os.Create(log)
	must(t, err)
	common := []string{"--kubeconfig=" + os.Getenv("KUBECONFIG"), "--address=127.0.0.1:0", "--v=4"}
	command := exec.Command(filepath.Join(os.Getenv("WORK"), "bin", name), append(common, args...)...)
	command.Stdout, command.Stderr = file, file
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = file.Close()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the end of %s:\n%s", log, text[max(0, len(text)-8000):])
		}
	})
}

// hungry is a Deployment of two pods that request a twentieth of a CPU and use 400m, and request 32Mi of memory and use 300 MiB.
func hungry() *appsv1.Deployment {
	replicas, labels := int32(2), map[string]string{"app": "hungry"}
	usage := map[string]string{"skiff.dev/simulated-cpu-milli": "400", "skiff.dev/simulated-memory-bytes": fmt.Sprint(300 << 20)}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("32Mi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "hungry"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: usage},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
		}},
	}
}

func TestVerticalPodAutoscaler(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	installDefinitions(t, config)
	client, autoscalers := kubernetes.NewForConfigOrDie(config), vpaclient.NewForConfigOrDie(config)
	namespace := "default"
	_, err = client.AppsV1().Deployments(namespace).Create(ctx, hungry(), metav1.CreateOptions{})
	must(t, err)
	mode := vpav1.UpdateModeInPlaceOrRecreate
	vpas := autoscalers.AutoscalingV1().VerticalPodAutoscalers(namespace)
	eventually(t, "the VerticalPodAutoscaler is created", func() (bool, string) {
		_, err := vpas.Create(ctx, &vpav1.VerticalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "hungry"},
			Spec: vpav1.VerticalPodAutoscalerSpec{
				TargetRef:    &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "hungry"},
				UpdatePolicy: &vpav1.PodUpdatePolicy{UpdateMode: &mode},
			},
		}, metav1.CreateOptions{})
		return err == nil, fmt.Sprint(err)
	})
	background(t, "recommender", "--recommender-interval=2s", "--confidence-interval-cpu=1m", "--confidence-interval-memory=1m")

	pods := func(t *testing.T) []corev1.Pod {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=hungry"})
		must(t, err)
		return list.Items
	}
	var before map[string]bool
	t.Run("AUT-03 the recommender recommends what the metrics API says that pods use", func(t *testing.T) {
		eventually(t, "a recommendation above the usage", func() (bool, string) {
			found, err := vpas.Get(ctx, "hungry", metav1.GetOptions{})
			must(t, err)
			if found.Status.Recommendation == nil || len(found.Status.Recommendation.ContainerRecommendations) != 1 {
				return false, fmt.Sprint(found.Status.Conditions)
			}
			target := found.Status.Recommendation.ContainerRecommendations[0].Target
			cpu, memory := target.Cpu().MilliValue(), target.Memory().Value()
			return cpu >= 400 && cpu <= 800 && memory >= 300<<20 && memory <= 600<<20, fmt.Sprint(target)
		})
		before = map[string]bool{}
		for _, pod := range pods(t) {
			before[string(pod.UID)] = true
		}
	})
	t.Run("AUT-03 the updater resizes the pods in place", func(t *testing.T) {
		background(t, "updater", "--updater-interval=3s", "--min-replicas=1", "--use-admission-controller-status=false")
		eventually(t, "both pods have what was recommended", func() (bool, string) {
			seen, resized := "", 0
			for _, pod := range pods(t) {
				requests := pod.Spec.Containers[0].Resources.Requests
				seen += fmt.Sprint(pod.Name, requests, " ")
				if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].Resources == nil {
					continue
				}
				actual := pod.Status.ContainerStatuses[0].Resources.Requests
				if before[string(pod.UID)] && requests.Cpu().MilliValue() >= 400 && actual.Cpu().MilliValue() >= 400 && pod.Status.ContainerStatuses[0].RestartCount == 0 {
					resized++
				}
			}
			return resized == 2, seen
		})
	})
}
