// A small autoscaler with the flags of upstream's that the suite gives: it grows a group for pods that have no room, and removes nodes that are hardly used.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"skiff.dev/suites/cluster-autoscaler/provider"
)

var (
	cloudConfig  = flag.String("cloud-config", "", "address and certificates of the server of node groups")
	kubeconfig   = flag.String("kubeconfig", "", "")
	scanInterval = flag.Duration("scan-interval", time.Second, "")
	unneededTime = flag.Duration("scale-down-unneeded-time", 10*time.Minute, "how long a node must be hardly used")
	ctx          = context.Background()
)

// threshold is the default of --scale-down-utilization-threshold.
const threshold = 0.5

// autoscaler keeps what one loop hands the next.
type autoscaler struct {
	client        *kubernetes.Clientset
	groups        *provider.Client
	events        record.EventRecorder
	unneededSince map[string]time.Time
}

// world is the cluster as one loop sees it.
type world struct {
	nodes   map[string]*corev1.Node
	pods    []corev1.Pod
	budgets []policyv1.PodDisruptionBudget
}

func main() {
	for _, ignored := range []string{"cloud-provider", "leader-elect", "address", "v", "scale-down-delay-after-add", "scale-down-delay-after-failure", "unremovable-node-recheck-timeout"} {
		flag.String(ignored, "", "accepted, without effect")
	}
	flag.Parse()
	log.SetFlags(log.Ltime)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	groups, err := provider.Connect(*cloudConfig)
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "cluster-autoscaler"})
	a := &autoscaler{client, groups, events, map[string]time.Time{}}
	for ; ; time.Sleep(*scanInterval) {
		if err := a.runOnce(); err != nil {
			log.Print(err)
		}
	}
}

func (a *autoscaler) runOnce() error {
	if err := a.groups.Refresh(); err != nil {
		return err
	}
	seen, err := a.look()
	if err != nil {
		return err
	}
	groups, err := a.groups.Groups()
	if err != nil {
		return err
	}
	for _, group := range groups {
		if err := a.scale(group, seen); err != nil {
			return err
		}
	}
	return nil
}

func (a *autoscaler) look() (world, error) {
	seen := world{nodes: map[string]*corev1.Node{}}
	nodes, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return seen, err
	}
	for at := range nodes.Items {
		seen.nodes[nodes.Items[at].Spec.ProviderID] = &nodes.Items[at]
	}
	pods, err := a.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return seen, err
	}
	budgets, err := a.client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	seen.pods, seen.budgets = pods.Items, budgets.Items
	return seen, err
}

// scale changes one group: nodes are removed only while no pod waits and every node of the group is there.
func (a *autoscaler) scale(group provider.Group, seen world) error {
	target, err := a.groups.TargetSize(group.ID)
	if err != nil {
		return err
	}
	instances, err := a.groups.Instances(group.ID)
	if err != nil {
		return err
	}
	nodes := []*corev1.Node{}
	for _, instance := range instances {
		if node := seen.nodes[instance.ID]; node != nil && isReady(node) {
			nodes = append(nodes, node)
		}
	}
	waits, err := a.grow(group, target, target-len(nodes), seen)
	if err != nil || waits || len(nodes) < target {
		return err
	}
	return a.shrink(group, nodes, seen)
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
