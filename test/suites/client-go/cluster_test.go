// Package clientgo runs client-go, unmodified, against a Skiff cluster named by KUBECONFIG. Nothing here knows that it is not upstream's server.
package clientgo

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = 60 * time.Second

func config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	return config
}

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	return kubernetes.NewForConfigOrDie(config(t))
}

// namespace makes a namespace that ends with the test.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	made, err := client.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.CoreV1().Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{}) })
	return made.Name
}

// eventually asks until the answer is yes, and fails the test when it stays no.
func eventually(t *testing.T, what string, ask func() (bool, string)) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		yes, seen := ask()
		if yes {
			return
		}
		last = seen
	}
	t.Fatalf("%s: not within %s; last: %s", what, patience, last)
}

// skiff runs the command line of the cluster under test.
func skiff(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.Command(os.Getenv("SKIFF"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("skiff %v: %v\n%s", args, err, output)
	}
}
