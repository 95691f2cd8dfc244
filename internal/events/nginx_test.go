package events_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// nginxConfig is the whole of it; the last word is a proxy's own way.
const nginxConfig = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen 127.0.0.1:%[2]d; location / { proxy_pass %[3]s; %[4]s } }
}
`

// nginx stands between: URL of it.
func nginx(t *testing.T, behind, way string) string {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	return "http://" + startNginx(t, dir, port, fmt.Sprintf(nginxConfig, dir, port, behind, way))
}

// startNginx checks a configuration that listens on the port of 127.0.0.1, as
// an operator does, and runs it: its address.
func startNginx(t *testing.T, dir string, port int, config string) string {
	t.Helper()
	binary := "/usr/sbin/nginx"
	if _, err := os.Stat(binary); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("nginx is missing: apt-get install nginx-light")
		}
		t.Skip("nginx is missing: apt-get install nginx-light")
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), binary, "-t", "-p", dir, "-c", file).CombinedOutput(); err != nil {
		t.Fatalf("nginx -t: %v\n%s", err, said)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-p", dir, "-c", file)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for limit := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return address
		}
		if time.Now().After(limit) {
			t.Fatalf("nginx does not answer: %s", said.String())
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

// TestNoEventIsLostBehindNginx follows through a real proxy: as it comes, as
// it breaks streams by holding them back, and as it cuts whatever is quiet.
func TestNoEventIsLostBehindNginx(t *testing.T) {
	for name, way := range map[string]string{
		"as it comes":        "",
		"HTTP/1.1 upstream":  `proxy_http_version 1.1; proxy_set_header Connection "";`,
		"it holds back":      "proxy_ignore_headers X-Accel-Buffering; proxy_buffering on;",
		"it cuts what rests": "proxy_read_timeout 1s;",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, op := benchStore(t)
			url := nginx(t, benchServer(t, s).URL, way)
			throughProxy(t, s, op, url)
		})
	}
}

// throughProxy writes an event when the one before was told, six times.
func throughProxy(t *testing.T, s *store.Store, op, url string) {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Token: benchToken})
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := s.AppendFacts(t.Context(), []fleet.Fact{{At: time.Now(), Operation: op, Kind: fleet.FactNote, Text: text}}); err != nil {
			t.Error(err)
		}
	}
	done := errors.New("done")
	told := 0
	err = c.Follow(t.Context(), client.Following{Operations: []string{op}, Patience: 2 * time.Minute}, func(e client.Event) error {
		if want := fmt.Sprint("event ", told); told > 0 && e.Text != want {
			t.Errorf("told %q, want %q", e.Text, want)
		}
		if told++; told > 6 {
			return done
		}
		next := fmt.Sprint("event ", told)
		time.AfterFunc(1500*time.Millisecond, func() { write(next) })
		return nil
	})
	if !errors.Is(err, done) {
		t.Error(err)
	}
}
