package clientgo

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

// API-11 two managers apply one Deployment: a conflict names the other manager, force takes the field, and an extracted configuration applies again.
func TestServerSideApply(t *testing.T) {
	client := clientset(t)
	in := namespace(t, client)
	ctx := context.Background()
	deployments := client.AppsV1().Deployments(in)
	labels := map[string]string{"app": "web"}
	web := func(replicas int32) *appsv1.DeploymentApplyConfiguration {
		container := corev1.Container().WithName("web").WithImage("example.com/web:1")
		template := corev1.PodTemplateSpec().WithLabels(labels).WithSpec(corev1.PodSpec().WithContainers(container))
		return appsv1.Deployment("web", in).WithSpec(appsv1.DeploymentSpec().WithReplicas(replicas).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).WithTemplate(template))
	}
	if _, err := deployments.Apply(ctx, web(1), metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		t.Fatal(err)
	}
	scale := appsv1.Deployment("web", in).WithSpec(appsv1.DeploymentSpec().WithReplicas(3))
	_, err := deployments.Apply(ctx, scale, metav1.ApplyOptions{FieldManager: "second"})
	if !apierrors.IsConflict(err) {
		t.Fatalf("the second manager got %v, want a conflict", err)
	}
	status := err.(*apierrors.StatusError).ErrStatus
	if len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != ".spec.replicas" {
		t.Fatalf("causes of the conflict: %+v", status.Details.Causes)
	}
	taken, err := deployments.Apply(ctx, scale, metav1.ApplyOptions{FieldManager: "second", Force: true})
	if err != nil || *taken.Spec.Replicas != 3 {
		t.Fatalf("forced: %v", err)
	}
	extracted, err := appsv1.ExtractDeployment(taken, "first")
	if err != nil {
		t.Fatal(err)
	}
	if extracted.Spec.Replicas != nil {
		t.Fatalf("the first manager still owns replicas: %d", *extracted.Spec.Replicas)
	}
	if _, err := deployments.Apply(ctx, extracted, metav1.ApplyOptions{FieldManager: "first"}); err != nil {
		t.Fatalf("an extracted configuration is refused: %v", err)
	}
}
