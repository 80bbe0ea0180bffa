// Command cert-manager runs the controller, the webhook or the cainjector of cert-manager. Upstream's own main packages are in nested modules that no
// release publishes; this one starts the same controllers and servers from the published module, with the flags that the suite needs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	programs := map[string]func(context.Context, []string) error{"controller": runController, "webhook": runWebhook, "cainjector": runInjector}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cert-manager controller|webhook|cainjector [flags]")
		os.Exit(2)
	}
	if err := programs[os.Args[1]](ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
