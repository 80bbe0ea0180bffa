package controllerruntime

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	finalizer = "suite.skiff.dev/cleanup"
	patience  = 60 * time.Second
)

type reconciler struct {
	client.Client
	cleaned chan string
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(site, finalizer) {
			if err := r.Update(ctx, site); err != nil {
				return ctrl.Result{}, err
			}
			r.cleaned <- site.Name
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		return ctrl.Result{}, r.Update(ctx, site)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		labels := map[string]string{"site": site.Name}
		deployment.Spec.Replicas = &site.Spec.Replicas
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		deployment.Spec.Template.Labels = labels
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: site.Spec.Image}}
		return controllerutil.SetControllerReference(site, deployment, r.Scheme())
	})
	if err != nil || site.Status.ReadyReplicas == deployment.Status.ReadyReplicas {
		return ctrl.Result{}, err
	}
	site.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	return ctrl.Result{}, r.Status().Update(ctx, site)
}

type siteWebhooks struct{}

func (siteWebhooks) Default(_ context.Context, site *Site) error {
	if site.Spec.Image == "" {
		site.Spec.Image = "example.com/web:1"
	}
	return nil
}

func (siteWebhooks) ValidateCreate(_ context.Context, site *Site) (admission.Warnings, error) {
	if site.Spec.Replicas > 5 {
		return nil, fmt.Errorf("at most 5 replicas, not %d", site.Spec.Replicas)
	}
	return admission.Warnings{"sites are an example"}, nil
}

func (w siteWebhooks) ValidateUpdate(ctx context.Context, _, site *Site) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, site)
}

func (siteWebhooks) ValidateDelete(context.Context, *Site) (admission.Warnings, error) { return nil, nil }

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	os.Exit(m.Run())
}

// eventually fails the test when check has returned an error for as long as the suite is patient.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// The cluster that runs already: its controllers make the Deployment's pods, and its garbage collector deletes them.
func TestOperatorOnAnExistingCluster(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	existing := true
	runOperator(t, &envtest.Environment{UseExistingCluster: &existing, Config: config}, true)
}

// A control plane that envtest starts itself, from the programs in KUBEBUILDER_ASSETS. It has an API server only.
func TestOperatorOnAControlPlaneOfEnvtest(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS names no programs")
	}
	runOperator(t, &envtest.Environment{}, false)
}

func runOperator(t *testing.T, environment *envtest.Environment, hasControllers bool) {
	environment.CRDDirectoryPaths = []string{"config/crd.yaml"}
	environment.ErrorIfCRDPathMissing = true
	environment.WebhookInstallOptions = envtest.WebhookInstallOptions{Paths: []string{"config/webhooks.yaml"}}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	addToScheme(scheme)
	cleaned := make(chan string, 1)
	api := startManager(t, config, scheme, environment.WebhookInstallOptions, cleaned)
	ctx := context.Background()
	key := client.ObjectKey{Namespace: "default", Name: "home"}

	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: SiteSpec{Replicas: 2}}
	eventually(t, "creating a site once the webhooks answer", func() error { return api.Create(ctx, site.DeepCopyObject().(*Site)) })
	deployment := &appsv1.Deployment{}
	eventually(t, "a deployment with the image of the mutating webhook", func() error {
		if err := api.Get(ctx, key, deployment); err != nil {
			return err
		}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "example.com/web:1" || *deployment.Spec.Replicas != 2 {
			return fmt.Errorf("image %s, %d replicas", image, *deployment.Spec.Replicas)
		}
		return nil
	})
	if !metav1.IsControlledBy(deployment, mustGet(t, api, key)) {
		t.Error("the site does not control its deployment")
	}

	tooLarge := mustGet(t, api, key)
	tooLarge.Spec.Replicas = 6
	if err := api.Update(ctx, tooLarge); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "at most 5 replicas, not 6") {
		t.Errorf("the validating webhook refuses six replicas: %v", err)
	}

	if err := api.Delete(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new deployment after the old one was deleted", func() error {
		again := &appsv1.Deployment{}
		if err := api.Get(ctx, key, again); err != nil {
			return err
		}
		if again.UID == deployment.UID {
			return fmt.Errorf("the old deployment is there")
		}
		return nil
	})
	if hasControllers {
		eventually(t, "the pods' readiness in the site's status", func() error {
			if ready := mustGet(t, api, key).Status.ReadyReplicas; ready != 2 {
				return fmt.Errorf("%d ready replicas", ready)
			}
			return nil
		})
	}

	if err := api.Delete(ctx, site); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-cleaned:
		if name != key.Name {
			t.Errorf("the finalizer ran for %s", name)
		}
	case <-time.After(patience):
		t.Fatal("the finalizer did not run")
	}
	eventually(t, "the end of the site", func() error {
		if err := api.Get(ctx, key, &Site{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("get: %v", err)
		}
		return nil
	})
	if hasControllers {
		eventually(t, "the end of the site's deployment", func() error {
			if err := api.Get(ctx, key, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("get: %v", err)
			}
			return nil
		})
	}
}

// startManager runs the operator with its cache and its webhooks until the test ends, and returns a client without a cache.
func startManager(t *testing.T, config *rest.Config, scheme *runtime.Scheme, webhooks envtest.WebhookInstallOptions, cleaned chan string) client.Client {
	t.Helper()
	skipNameValidation := true
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: webhooks.LocalServingHost, Port: webhooks.LocalServingPort, CertDir: webhooks.LocalServingCertDir,
		}),
		LeaderElection:          true,
		LeaderElectionID:        "site-operator",
		LeaderElectionNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewWebhookManagedBy(manager, &Site{}).WithDefaulter(siteWebhooks{}).WithValidator(siteWebhooks{}).Complete(); err != nil {
		t.Fatal(err)
	}
	// Both tests use the same name in one process.
	options := controller.Options{SkipNameValidation: &skipNameValidation}
	builder := ctrl.NewControllerManagedBy(manager).For(&Site{}).Owns(&appsv1.Deployment{}).WithOptions(options)
	if err := builder.Complete(&reconciler{manager.GetClient(), cleaned}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func mustGet(t *testing.T, api client.Client, key client.ObjectKey) *Site {
	t.Helper()
	site := &Site{}
	if err := api.Get(context.Background(), key, site); err != nil {
		t.Fatal(err)
	}
	return site
}
