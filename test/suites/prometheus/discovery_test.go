// Prometheus' own discovery of Kubernetes against a simulated cluster: every role finds its targets, with their labels, and follows changes.
package prometheus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "example.com/web:1.0", ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec:
  rules: [{host: web.example.com, http: {paths: [{path: /shop, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
`

// Per role: how many targets, and what labels of each match.
var roles = map[kubernetes.Role]struct {
	targets int
	labels  map[string]string
}{
	kubernetes.RoleNode: {2, map[string]string{"node_name": ".+-sim-[12]", "node_address_InternalIP": `\d.*`, "node_label_kubernetes_io_os": "linux"}},
	kubernetes.RoleService: {1, map[string]string{"service_name": "web", "service_cluster_ip": `\d.*`, "service_port_name": "http"}},
	kubernetes.RolePod: {3, map[string]string{
		"pod_name": "web-.+", "pod_ip": `\d.*`, "pod_ready": "true", "pod_phase": "Running", "pod_node_name": ".+-sim-[12]",
		"pod_container_port_number": "8080", "pod_controller_kind": "ReplicaSet",
	}},
	kubernetes.RoleEndpoint: {3, map[string]string{
		"endpoints_name": "web", "endpoint_ready": "true", "endpoint_address_target_kind": "Pod", "pod_name": "web-.+", "service_name": "web",
	}},
	kubernetes.RoleEndpointSlice: {3, map[string]string{
		"endpointslice_name": "web-.+", "endpointslice_endpoint_conditions_ready": "true", "endpointslice_address_type": "IPv4", "service_name": "web",
	}},
	kubernetes.RoleIngress: {1, map[string]string{"ingress_name": "web", "ingress_host": "web.example.com", "ingress_path": "/shop"}},
}

func kubectl(t *testing.T, input string, args ...string) {
	t.Helper()
	command := exec.Command("kubectl", args...)
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// The groups by their source, as Prometheus keeps them.
type state map[string]*targetgroup.Group

func (s state) matching(labels map[string]string) (found int) {
	for _, group := range s {
		for _, target := range group.Targets {
			all := target.Merge(group.Labels)
			matches := true
			for name, pattern := range labels {
				value := string(all[model.LabelName("__meta_kubernetes_"+name)])
				matches = matches && regexp.MustCompile("^("+pattern+")$").MatchString(value)
			}
			if matches {
				found++
			}
		}
	}
	return found
}

func TestRoles(t *testing.T) {
	kubectl(t, objects, "apply", "-f", "-")
	kubectl(t, "", "rollout", "status", "deployment/web", "--timeout=60s")
	for role, want := range roles {
		t.Run(string(role), func(t *testing.T) {
			groups := discover(t, role)
			all := state{}
			until(t, groups, all, func() error { return expect(all, want.labels, want.targets) })
			if role != kubernetes.RolePod {
				return
			}
			kubectl(t, "", "scale", "deployment/web", "--replicas=1")
			until(t, groups, all, func() error { return expect(all, want.labels, 1) })
			kubectl(t, "", "scale", "deployment/web", "--replicas=3")
			until(t, groups, all, func() error { return expect(all, want.labels, 3) })
		})
	}
}

func expect(all state, labels map[string]string, want int) error {
	if found := all.matching(labels); found != want {
		return fmt.Errorf("%d targets instead of %d", found, want)
	}
	return nil
}

func discover(t *testing.T, role kubernetes.Role) <-chan []*targetgroup.Group {
	t.Helper()
	registry := prometheus.NewRegistry()
	refresh := discovery.NewRefreshMetrics(registry)
	config := kubernetes.DefaultSDConfig
	config.Role = role
	config.KubeConfig = os.Getenv("KUBECONFIG")
	metrics := config.NewDiscovererMetrics(registry, refresh)
	if err := metrics.Register(); err != nil {
		t.Fatal(err)
	}
	discoverer, err := config.NewDiscoverer(discovery.DiscovererOptions{Logger: slog.New(slog.DiscardHandler), Metrics: metrics})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	groups := make(chan []*targetgroup.Group)
	go discoverer.Run(ctx, groups)
	return groups
}

// Applies updates until the state is as expected.
func until(t *testing.T, groups <-chan []*targetgroup.Group, all state, check func() error) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case updates := <-groups:
			for _, group := range updates {
				all[group.Source] = group
			}
		case <-deadline:
			t.Fatal(check())
		}
		if check() == nil {
			return
		}
	}
}
