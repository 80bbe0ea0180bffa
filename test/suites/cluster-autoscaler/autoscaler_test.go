// Package clusterautoscaler runs an autoscaler, which AUTOSCALER names, over the node groups of a Skiff cluster that KUBECONFIG, SKIFF and CLUSTER name.
package clusterautoscaler

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"skiff.dev/suites/cluster-autoscaler/provider"
)

const (
	patience     = 3 * time.Minute
	unneededTime = 10 * time.Second
	group        = "small"
	groupLabel   = "skiff.dev/node-group"
	mostNodes    = 3
)

var ctx = context.Background()

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
	client    *kubernetes.Clientset
	namespace string
}

func newLab(t *testing.T) lab {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	config.QPS, config.Burst = 200, 400
	client := kubernetes.NewForConfigOrDie(config)
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"}}, metav1.CreateOptions{})
	must(t, err)
	return lab{client, namespace.Name}
}

// nodes lists the names of the group's nodes that are ready.
func (l lab) nodes(t *testing.T) []string {
	t.Helper()
	list, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + group})
	must(t, err)
	names := []string{}
	for _, node := range list.Items {
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				names = append(names, node.Name)
			}
		}
	}
	return names
}

func (l lab) untilNodes(t *testing.T, count int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the group has %d ready nodes", count), func() (bool, string) {
		names := l.nodes(t)
		return len(names) == count, fmt.Sprint(names)
	})
}

// deploy creates pods that run on nodes of the group alone.
func (l lab) deploy(t *testing.T, name string, replicas int32, cpu string) {
	t.Helper()
	none := int64(0)
	labels := map[string]string{"app": name}
	_, err := l.client.AppsV1().Deployments(l.namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{groupLabel: group}, TerminationGracePeriodSeconds: &none,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/app:1", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
				}}},
			},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func (l lab) remove(t *testing.T, name string) {
	t.Helper()
	must(t, l.client.AppsV1().Deployments(l.namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// available counts the pods of a Deployment that are available.
func (l lab) available(t *testing.T, name string) int32 {
	t.Helper()
	found, err := l.client.AppsV1().Deployments(l.namespace).Get(ctx, name, metav1.GetOptions{})
	must(t, err)
	return found.Status.AvailableReplicas
}

func (l lab) untilAvailable(t *testing.T, name string, count int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d pods of %s are available", count, name), func() (bool, string) {
		there := l.available(t, name)
		return there == count, fmt.Sprint(there)
	})
}

func (l lab) untilEvent(t *testing.T, reason, message string) {
	t.Helper()
	eventually(t, "an event "+reason, func() (bool, string) {
		list, err := l.client.CoreV1().Events(l.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		must(t, err)
		for _, event := range list.Items {
			if strings.Contains(event.Message, message) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d events", len(list.Items))
	})
}

func TestNodeGroup(t *testing.T) {
	lab := newLab(t)
	cluster := os.Getenv("CLUSTER")
	skiff(t, "nodegroup", "create", group, "--name", cluster, "--min", "0", "--max", fmt.Sprint(mostNodes), "--like", "node.yaml", "-q")
	cloudConfig := startServer(t)
	t.Run("AUT-05 Go's gRPC gets upstream's codes and Node", func(t *testing.T) { askByHand(t, cloudConfig) })
	log := startAutoscaler(t, cloudConfig)
	t.Run("AUT-05 pending pods make an empty group grow", func(t *testing.T) { growFromZero(t, lab) })
	t.Run("AUT-05 idle nodes leave after the unneeded time", func(t *testing.T) { shrinkToZero(t, lab) })
	t.Run("AUT-05 a PodDisruptionBudget keeps a node that is hardly used", func(t *testing.T) { respectBudget(t, lab, log) })
	t.Run("AUT-05 a group does not grow over its maximum", func(t *testing.T) { stopAtMaximum(t, lab) })
}

// askByHand needs an empty group.
func askByHand(t *testing.T, cloudConfig string) {
	client, err := provider.Connect(cloudConfig)
	must(t, err)
	template, err := client.Template(group)
	must(t, err)
	if template.Labels[groupLabel] != group || template.Status.Allocatable.Cpu().Value() != 4 || template.Status.Capacity.Memory().Value() != 8<<30 {
		t.Errorf("the template is %v with %v", template.Labels, template.Status.Capacity)
	}
	if found, err := client.Threshold(group, 0.25); err != nil || found != 0.25 {
		t.Errorf("the threshold is %v: %v", found, err)
	}
	_, err = client.Call("PricingNodePrice", "Empty", "Empty", func(protoreflect.Message) {})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a price: %v", err)
	}
	for message, refused := range map[string]error{
		"NodeGroup \"none\", not found":               client.Increase("none", 1),
		"size increase must be positive":              client.Increase(group, 0),
		"size increase too large, desired: 4 max: 3":  client.Increase(group, mostNodes+1),
		"size decrease must be negative":              client.DecreaseTarget(group, 1),
		"min size reached, nodes will not be deleted": client.Delete(group, template),
	} {
		if status.Code(refused) != codes.Unknown || status.Convert(refused).Message() != message {
			t.Errorf("%v, not %s", refused, message)
		}
	}
}

// growFromZero needs two nodes of four CPUs for four pods of one and a half.
func growFromZero(t *testing.T, lab lab) {
	lab.deploy(t, "load", 4, "1500m")
	lab.untilAvailable(t, "load", 4)
	lab.untilNodes(t, 2)
	lab.untilEvent(t, "TriggeredScaleUp", group)
}

func shrinkToZero(t *testing.T, lab lab) {
	lab.remove(t, "load")
	started := time.Now()
	eventually(t, "the first node leaves", func() (bool, string) {
		names := lab.nodes(t)
		return len(names) < 2, fmt.Sprint(names)
	})
	if waited := time.Since(started); waited < unneededTime {
		t.Errorf("a node left %s after its pods, before the unneeded time", waited)
	}
	lab.untilNodes(t, 0)
}

// respectBudget leaves one small pod on each of two nodes: either node could take both.
func respectBudget(t *testing.T, lab lab, log string) {
	lab.deploy(t, "filler", 2, "3")
	lab.untilAvailable(t, "filler", 2)
	lab.deploy(t, "guarded", 2, "900m")
	lab.untilAvailable(t, "guarded", 2)
	lab.untilNodes(t, 2)
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	}
	budgets := lab.client.PolicyV1().PodDisruptionBudgets(lab.namespace)
	_, err := budgets.Create(ctx, budget, metav1.CreateOptions{})
	must(t, err)
	lab.remove(t, "filler")
	eventually(t, "the autoscaler finds that the budget keeps a node", func() (bool, string) {
		text, err := os.ReadFile(log)
		must(t, err)
		return strings.Contains(string(text), "not enough pod disruption budget to move "+lab.namespace+"/guarded-"), ""
	})
	for until := time.Now().Add(2 * unneededTime); time.Now().Before(until); time.Sleep(time.Second) {
		if names := lab.nodes(t); len(names) != 2 {
			t.Fatalf("a node left in spite of the budget: %v are there", names)
		}
	}
	_, err = budgets.Patch(ctx, "guarded", types.MergePatchType, []byte(`{"spec":{"maxUnavailable":1}}`), metav1.PatchOptions{})
	must(t, err)
	eventually(t, "one node takes both pods", func() (bool, string) {
		if lab.available(t, "guarded") < 1 {
			t.Fatal("both pods were evicted at the same time")
		}
		names := lab.nodes(t)
		return len(names) == 1, fmt.Sprint(names)
	})
	lab.untilAvailable(t, "guarded", 2)
	lab.remove(t, "guarded")
	lab.untilNodes(t, 0)
}

func stopAtMaximum(t *testing.T, lab lab) {
	lab.deploy(t, "much", mostNodes+2, "3")
	lab.untilAvailable(t, "much", mostNodes)
	lab.untilEvent(t, "NotTriggerScaleUp", "max node group size reached")
	if names := lab.nodes(t); len(names) != mostNodes {
		t.Errorf("the group has %v", names)
	}
}
