package clusterautoscaler

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
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// authority signs the certificates of both sides.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, directory string) authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "autoscaling-ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key, certificate := sign(t, template, nil)
	writePEM(t, filepath.Join(directory, "ca.crt"), "CERTIFICATE", certificate.Raw)
	return authority{certificate, key}
}

// issue writes NAME.crt and NAME.key, which are good for both sides of a connection to 127.0.0.1.
func (a authority) issue(t *testing.T, directory, name string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	key, certificate := sign(t, template, &a)
	writePEM(t, filepath.Join(directory, name+".crt"), "CERTIFICATE", certificate.Raw)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	writePEM(t, filepath.Join(directory, name+".key"), "PRIVATE KEY", encoded)
}

func sign(t *testing.T, template *x509.Certificate, by *authority) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(t, err)
	certificate, err := x509.ParseCertificate(raw)
	must(t, err)
	return key, certificate
}

func writePEM(t *testing.T, file, kind string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// skiff runs the command line of the cluster under test.
func skiff(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command(os.Getenv("SKIFF"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("skiff %v: %v\n%s", args, err, output)
	}
	return string(output)
}

// background runs a program until the test ends, with its output in a file, whose end is shown when the test fails.
func background(t *testing.T, log, program string, args ...string) {
	t.Helper()
	file, err := os.Create(log)
	must(t, err)
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = file, file
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(10*time.Second, func() { _ = command.Process.Kill() })
		_ = command.Wait()
		timer.Stop()
		_ = file.Close()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the end of %s:\n%s", log, text[max(0, len(text)-8000):])
		}
	})
}

// startServer starts the server of the cluster's node groups, and gives the file with its address and the certificates of a client.
func startServer(t *testing.T) (cloudConfig string) {
	t.Helper()
	work := os.Getenv("WORK")
	in := func(name string) string { return filepath.Join(work, name) }
	signer := newAuthority(t, work)
	signer.issue(t, work, "server")
	signer.issue(t, work, "client")
	address := freeAddress(t)
	background(t, in("serve.log"), os.Getenv("SKIFF"), "nodegroup", "serve", "--name", os.Getenv("CLUSTER"), "--listen", address,
		"--cert", in("server.crt"), "--key", in("server.key"), "--cacert", in("ca.crt"))
	config := fmt.Sprintf("address: %q\nkey: %q\ncert: %q\ncacert: %q\n", address, in("client.key"), in("client.crt"), in("ca.crt"))
	must(t, os.WriteFile(in("cloud-config.yaml"), []byte(config), 0o600))
	eventually(t, "the server of node groups listens", func() (bool, string) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return false, err.Error()
		}
		return connection.Close() == nil, "closing failed"
	})
	return in("cloud-config.yaml")
}

// startAutoscaler starts an autoscaler with upstream's flags, and gives the file of its log.
func startAutoscaler(t *testing.T, cloudConfig string) string {
	t.Helper()
	log := filepath.Join(os.Getenv("WORK"), "autoscaler.log")
	background(t, log, os.Getenv("AUTOSCALER"),
		"--cloud-provider=externalgrpc", "--cloud-config="+cloudConfig, "--kubeconfig="+os.Getenv("KUBECONFIG"),
		"--leader-elect=false", "--address=127.0.0.1:0", "--v=4", "--scan-interval=1s", "--scale-down-unneeded-time="+unneededTime.String(),
		"--scale-down-delay-after-add=1s", "--scale-down-delay-after-failure=1s", "--unremovable-node-recheck-timeout=5s")
	return log
}
