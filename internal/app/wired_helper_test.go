package app

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/config"
)

// written puts a secret into a file of the test's own.
func written(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sshKey is the file of a private key that opens nothing.
func sshKey(t *testing.T) (path string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	return written(t, string(pem.EncodeToMemory(block)))
}

// configured is the configuration of two fleets whose provider answers nothing,
// as it is read from a file, and more of it. The adapters are the real ones.
func configured(t *testing.T, more string) *config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	common := fmt.Sprintf(`, token: {file: %s}}
    provider: {exec: {list: ["false"], describe: ["false"], prepare: ["false"], create: ["false"], delete: ["false"]}}
    host: {user: fedora, key: {file: %s}}
`, written(t, "glrt-of-the-test\n"), sshKey(t))
	text := "fleets:\n  gcp:\n    vms: {names: [runner-01, spare-1, spare-2]}\n    runner: {id: 7" + common +
		"  aws:\n    vms: {names: [spare-1]}\n    runner: {id: 8" + common +
		"store: {sqlite: " + filepath.Join(dir, "a.db") + "}\n" + more
	c, err := config.Parse("sluice.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serving is Sluice of a configuration, behind an address.
func serving(t *testing.T, c *config.Config) (url string) {
	t.Helper()
	a := open(t, Options{Config: c, Role: RoleServe, Command: "sluice serve", Version: "test", Log: &output{}})
	server := httptest.NewServer(a.front())
	t.Cleanup(server.Close)
	return server.URL
}

// post sends JSON and yields the status and the answer.
func post(t *testing.T, url, body string, headers map[string]string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, read(t, response)
}
