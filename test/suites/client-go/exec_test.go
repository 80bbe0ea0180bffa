package clientgo

import (
	"bytes"
	"context"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

// KUB-10 exec over WebSocket and over SPDY returns the command's output and its exit code; logs follow.
func TestExecAndLogs(t *testing.T) {
	client := clientset(t)
	in := namespace(t, client)
	ctx := context.Background()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "runner", Annotations: map[string]string{
			"skiff.dev/simulated-exec": `{"true": {"stdout": "yes\n"}, "false": {"stderr": "no\n", "exitCode": 3}}`,
			"skiff.dev/simulated-logs": "one\ntwo",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/runner:1"}}},
	}
	if _, err := client.CoreV1().Pods(in).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod runs", func() (bool, string) {
		got, err := client.CoreV1().Pods(in).Get(ctx, "runner", metav1.GetOptions{})
		return err == nil && got.Status.Phase == corev1.PodRunning, string(got.Status.Phase)
	})
	request := func(command string) (*remotecommand.StreamOptions, *bytes.Buffer, *bytes.Buffer, string) {
		out, problems := &bytes.Buffer{}, &bytes.Buffer{}
		url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(in).Name("runner").SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{command}, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
		return &remotecommand.StreamOptions{Stdout: out, Stderr: problems}, out, problems, url.String()
	}
	for _, protocol := range []string{"websocket", "spdy"} {
		for command, want := range map[string]struct {
			out, problems string
			code          int
		}{"true": {"yes\n", "", 0}, "false": {"", "no\n", 3}} {
			options, out, problems, url := request(command)
			executor, err := executorOf(t, protocol, url)
			if err != nil {
				t.Fatal(err)
			}
			code := 0
			if err := executor.StreamWithContext(ctx, *options); err != nil {
				exit, ok := err.(exec.ExitError)
				if !ok {
					t.Fatalf("%s %s: %v", protocol, command, err)
				}
				code = exit.ExitStatus()
			}
			if out.String() != want.out || problems.String() != want.problems || code != want.code {
				t.Errorf("%s %s: %q, %q, exit %d", protocol, command, out, problems, code)
			}
		}
	}
	stream, err := client.CoreV1().Pods(in).GetLogs("runner", &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("logs: %q, %v", text, err)
	}
}

func executorOf(t *testing.T, protocol, target string) (remotecommand.Executor, error) {
	t.Helper()
	if protocol == "websocket" {
		return remotecommand.NewWebSocketExecutor(config(t), "GET", target)
	}
	return spdyExecutor(t, target)
}
