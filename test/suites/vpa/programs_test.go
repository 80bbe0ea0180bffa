package vpa

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("kubectl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, output)
	}
	return string(output)
}

// install creates the custom resource definitions, the service accounts and their roles from upstream's manifests.
func install(t *testing.T) {
	t.Helper()
	for _, file := range []string{"vpa-v1-crd-gen.yaml", "vpa-rbac.yaml"} {
		kubectl(t, "apply", "--server-side", "-f", filepath.Join(os.Getenv("MANIFESTS"), file))
	}
	kubectl(t, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
}

// kubeconfigOf writes a kubeconfig with a token of the service account.
func kubeconfigOf(t *testing.T, serviceAccount string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	must(t, err)
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	user.ClientCertificate, user.ClientKey, user.ClientCertificateData, user.ClientKeyData = "", "", nil, nil
	user.Token = strings.TrimSpace(kubectl(t, "create", "token", serviceAccount, "-n", system, "--duration=1h"))
	file := filepath.Join(os.Getenv("WORK"), "kubeconfig-"+serviceAccount)
	must(t, clientcmd.WriteToFile(*config, file))
	return file
}

// background runs a program of the module as its service account until the test ends, and shows the end of its log when the test fails.
func background(t *testing.T, name string, args ...string) {
	t.Helper()
	kubeconfig := kubeconfigOf(t, "vpa-"+name)
	log := filepath.Join(os.Getenv("WORK"), name+".log")
	file, err := os.Create(log)
	must(t, err)
	common := []string{"--kubeconfig=" + kubeconfig, "--address=127.0.0.1:0", "--v=4"}
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
