package clientgo

import (
	"net/url"
	"testing"

	"k8s.io/client-go/tools/remotecommand"
)

func spdyExecutor(t *testing.T, target string) (remotecommand.Executor, error) {
	t.Helper()
	parsed, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewSPDYExecutor(config(t), "POST", parsed)
}
