package main

import (
	"log"

	corev1 "k8s.io/api/core/v1"
	"skiff.dev/suites/cluster-autoscaler/provider"
)

// grow adds nodes for pods that wait and would run on the group's next node. It says whether pods wait for this group.
func (a *autoscaler) grow(group provider.Group, target, upcoming int, seen world) (bool, error) {
	template, err := a.groups.Template(group.ID)
	if err != nil {
		return false, err
	}
	room := template.Status.Allocatable.Cpu().MilliValue()
	waiting := []*corev1.Pod{}
	for at := range seen.pods {
		if pod := &seen.pods[at]; isUnschedulable(pod) && selects(pod, template) && cpuOf(pod) <= room {
			waiting = append(waiting, pod)
		}
	}
	needed := nodesFor(waiting, room) - upcoming
	if needed <= 0 {
		return len(waiting) > 0, nil
	}
	if target >= group.Max {
		for _, pod := range waiting {
			a.events.Event(pod, corev1.EventTypeNormal, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")
		}
		return true, nil
	}
	delta := min(needed, group.Max-target)
	if err := a.groups.Increase(group.ID, delta); err != nil {
		return true, err
	}
	log.Printf("Increased %s from %d by %d", group.ID, target, delta)
	for _, pod := range waiting {
		a.events.Eventf(pod, corev1.EventTypeNormal, "TriggeredScaleUp", "pod triggered scale-up: [{%s %d->%d (max: %d)}]", group.ID, target, target+delta, group.Max)
	}
	return true, nil
}

func isUnschedulable(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
			return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func selects(pod *corev1.Pod, node *corev1.Node) bool {
	for name, value := range pod.Spec.NodeSelector {
		if node.Labels[name] != value {
			return false
		}
	}
	return true
}

func cpuOf(pod *corev1.Pod) int64 {
	sum := int64(0)
	for _, container := range pod.Spec.Containers {
		sum += container.Resources.Requests.Cpu().MilliValue()
	}
	return sum
}

// nodesFor counts the nodes that the pods fill, each placed on the first one with room.
func nodesFor(pods []*corev1.Pod, room int64) int {
	free := []int64{}
next:
	for _, pod := range pods {
		for at := range free {
			if free[at] >= cpuOf(pod) {
				free[at] -= cpuOf(pod)
				continue next
			}
		}
		free = append(free, room-cpuOf(pod))
	}
	return len(free)
}
