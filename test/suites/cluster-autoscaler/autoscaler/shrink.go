package main

import (
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"skiff.dev/suites/cluster-autoscaler/provider"
)

// shrink removes one node that was not needed for long enough.
func (a *autoscaler) shrink(group provider.Group, nodes []*corev1.Node, seen world) error {
	limit, err := a.groups.Threshold(group.ID, threshold)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if !a.isUnneeded(node, nodes, seen, limit) {
			delete(a.unneededSince, node.Name)
			continue
		}
		since, known := a.unneededSince[node.Name]
		if !known {
			a.unneededSince[node.Name] = time.Now()
			continue
		}
		if time.Since(since) < *unneededTime || len(nodes) <= group.Min {
			continue
		}
		delete(a.unneededSince, node.Name)
		return a.remove(node, seen)
	}
	return nil
}

func podsOn(node *corev1.Node, pods []corev1.Pod) []*corev1.Pod {
	found := []*corev1.Pod{}
	for at := range pods {
		if pod := &pods[at]; pod.Spec.NodeName == node.Name && pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	return found
}

func used(pods []*corev1.Pod) int64 {
	sum := int64(0)
	for _, pod := range pods {
		sum += cpuOf(pod)
	}
	return sum
}

// isUnneeded says whether the node is hardly used, and its pods may leave it and have room together on another node of the group.
func (a *autoscaler) isUnneeded(node *corev1.Node, nodes []*corev1.Node, seen world, limit float64) bool {
	pods := podsOn(node, seen.pods)
	if float64(used(pods)) >= limit*float64(node.Status.Allocatable.Cpu().MilliValue()) {
		return false
	}
	for _, pod := range pods {
		if budget := keeping(pod, seen.budgets); budget != nil {
			log.Printf("Node %s cannot be removed: not enough pod disruption budget to move %s/%s", node.Name, pod.Namespace, pod.Name)
			return false
		}
	}
	if len(pods) == 0 {
		return true
	}
	for _, other := range nodes {
		if other.Name != node.Name && other.Status.Allocatable.Cpu().MilliValue()-used(podsOn(other, seen.pods)) >= used(pods) {
			return true
		}
	}
	return false
}

// keeping gives a budget that allows no disruption of the pod.
func keeping(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	for at := range budgets {
		budget := &budgets[at]
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) && budget.Status.DisruptionsAllowed < 1 {
			return budget
		}
	}
	return nil
}

// remove evicts the node's pods, which the budgets may refuse, and deletes the node from its group when they are gone.
func (a *autoscaler) remove(node *corev1.Node, seen world) error {
	group, err := a.groups.GroupOf(node)
	if err != nil {
		return err
	}
	if _, err := a.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	for _, pod := range podsOn(node, seen.pods) {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		if err := a.client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, eviction); err != nil {
			return err
		}
	}
	log.Printf("Removing node %s of %s", node.Name, group)
	return a.groups.Delete(group, node)
}
