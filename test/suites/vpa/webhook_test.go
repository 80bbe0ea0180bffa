package vpa

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const (
	system         = metav1.NamespaceSystem
	webhookService = "vpa-webhook"
)

// startWebhook starts the admission controller behind its Service, and waits until it has registered itself.
func startWebhook(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	directory := t.TempDir()
	writeCertificates(t, directory, webhookService+"."+system+".svc")
	port := freePort(t)
	serveFromHost(t, client, port)
	t.Setenv("NAMESPACE", system)
	in := func(name string) string { return filepath.Join(directory, name) }
	background(t, "admission-controller", fmt.Sprintf("--port=%d", port), "--webhook-failure-policy-fail",
		"--client-ca-file="+in("ca.crt"), "--tls-cert-file="+in("tls.crt"), "--tls-private-key="+in("tls.key"))
	eventually(t, "the admission controller registers itself", func() (bool, string) {
		_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "vpa-webhook-config", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// serveFromHost creates the Service of upstream's manifest with this host as its endpoint.
func serveFromHost(t *testing.T, client kubernetes.Interface, port int32) {
	t.Helper()
	_, err := client.CoreV1().Services(system).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: webhookService},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(port)}}},
	}, metav1.CreateOptions{})
	must(t, err)
	name, ready := "", true
	_, err = client.DiscoveryV1().EndpointSlices(system).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: webhookService + "-host", Labels: map[string]string{discoveryv1.LabelServiceName: webhookService}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{hostAddress(t)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// hostAddress is not a loopback address, which an EndpointSlice may not have.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			return network.IP.String()
		}
	}
	t.Fatal("the host has no IPv4 address but loopback")
	return ""
}

func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", ":0")
	must(t, err)
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// writeCertificates writes ca.crt, and tls.crt and tls.key of a server with this name.
func writeCertificates(t *testing.T, directory, name string) {
	t.Helper()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vpa-ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	must(t, err)
	writePEM(t, filepath.Join(directory, "ca.crt"), "CERTIFICATE", raw)
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err = x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, authorityKey)
	must(t, err)
	writePEM(t, filepath.Join(directory, "tls.crt"), "CERTIFICATE", raw)
	encoded, err := x509.MarshalPKCS8PrivateKey(serverKey)
	must(t, err)
	writePEM(t, filepath.Join(directory, "tls.key"), "PRIVATE KEY", encoded)
}

func writePEM(t *testing.T, file, kind string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
}
