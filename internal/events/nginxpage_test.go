package events_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// nginxFrame is the rest of a configuration around a server of a page.
const nginxFrame = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`

// pagesServer is the server block of docs/operating.md, with our port, our
// certificate, and behind as the controller.
func pagesServer(t *testing.T, dir string, port int, behind string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/operating.md has no nginx block")
	}
	text := string(block[1])
	for old, now := range map[string]string{
		"listen 443 ssl":                   fmt.Sprintf("listen 127.0.0.1:%d ssl", port),
		"/etc/ssl/sluice/fullchain.pem":    filepath.Join(dir, "cert.pem"),
		"/etc/ssl/sluice/privkey.pem":      filepath.Join(dir, "key.pem"),
		"proxy_pass http://127.0.0.1:8420": "proxy_pass " + behind,
	} {
		if !strings.Contains(text, old) {
			t.Fatalf("the page's server has no %q", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	return text
}

// selfSigned writes a certificate for 127.0.0.1, and yields who trusts it.
func selfSigned(t *testing.T, dir string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		text := pem.EncodeToMemory(block)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if name == "cert.pem" {
			roots.AppendCertsFromPEM(text)
		}
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// TestThePagesNginxLetsInWhatIsMeant runs the proxy of docs/operating.md, TLS
// and all: GitLab's largest delivery and a stream pass, the rest stays inside.
func TestThePagesNginxLetsInWhatIsMeant(t *testing.T) {
	goOn := make(chan struct{})
	controller := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Accel-Buffering", "no") // as internal/api's streams
		_, _ = fmt.Fprintf(w, "%s %d\n", r.URL.Path, n)
		if r.URL.Path == "/api/v1/events" {
			_ = http.NewResponseController(w).Flush()
			<-goOn
		}
	}))
	t.Cleanup(controller.Close)
	dir, port := t.TempDir(), freePort(t)
	web := selfSigned(t, dir)
	address := startNginx(t, dir, port, fmt.Sprintf(nginxFrame, dir, pagesServer(t, dir, port, controller.URL)))
	url := "https://" + address

	const limit = 25 << 20 // of a delivery, as in internal/hooks
	for _, c := range []struct {
		path   string
		size   int
		status int
	}{
		{"/webhooks/gitlab", limit, 200},
		{"/webhooks/gitlab", limit + 1, 413},
		{"/api/v1/operations", 64 << 10, 200},
		{"/metrics", 0, 404},
		{"/readyz", 0, 404},
		{"/webhooks/gitlab/more", 0, 404},
	} {
		answer, err := web.Post(url+c.path, "application/json", bytes.NewReader(make([]byte, c.size)))
		if err != nil {
			t.Fatalf("%s, %d bytes: %v", c.path, c.size, err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != c.status || (c.status == 200 && string(text) != fmt.Sprintf("%s %d\n", c.path, c.size)) {
			t.Errorf("%s, %d bytes: %d %s", c.path, c.size, answer.StatusCode, text)
		}
	}
	answer, err := web.Get(url + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	defer close(goOn)
	line := make([]byte, len("/api/v1/events 0\n"))
	if _, err := io.ReadFull(answer.Body, line); err != nil {
		t.Errorf("a stream is held back: %v", err)
	}
}
