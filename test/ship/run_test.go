//go:build ship

package ship_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// one is a fleet as small as can be, served on loopback.
const one = `fleets:
  lab:
    vms: {names: [runner-01]}
    provider: {exec: {list: ["/bin/true"], describe: ["/bin/true"], prepare: ["/bin/true"], create: ["/bin/true"], delete: ["/bin/true"]}}
    host: {user: fedora, key: {file: /run/secrets/sluice/ssh-key}}
    runner: {id: 4711, token: {file: /run/secrets/sluice/runner-token}}
server:
  listen: 127.0.0.1:0
  tokens: [{name: alice, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}]
`

// furnished mounts a configuration, its secrets and a volume.
func furnished(t *testing.T, yaml string) map[string]string {
	t.Helper()
	key := must(t, "sh", "-c", `ssh-keygen -q -t ed25519 -N "" -f "$1/key" && cat "$1/key"`, "sh", t.TempDir())
	return map[string]string{
		"/etc/sluice":         files(t, map[string]string{"sluice.yaml": yaml}),
		"/run/secrets/sluice": files(t, map[string]string{"ssh-key": key + "\n", "runner-token": "glrt-test\n"}),
		"/var/lib/sluice":     writable(t),
	}
}

func TestImageSaysItsVersion(t *testing.T) {
	out, log, status := (&container{t: t, target: "server", args: []string{"version"}}).run()
	if status != 0 || !strings.HasPrefix(out, "sluice "+builtVersion(t)+" ") {
		t.Errorf("exit %d: %s%s", status, out, log)
	}
}

// builtVersion is what the same binary says outside of a container.
func builtVersion(t *testing.T) string {
	t.Helper()
	return strings.Fields(must(t, root+"/dist/sluice-linux-amd64", "version"))[1]
}

func TestImageChecksAConfigurationAndItsSecrets(t *testing.T) {
	good := &container{t: t, target: "ci", args: []string{"sluice", "config", "validate"}, mounts: furnished(t, one)}
	if out, log, status := good.run(); status != 0 {
		t.Errorf("exit %d: %s%s", status, out, log)
	}
	bad := &container{t: t, target: "server", args: []string{"config", "validate"}, mounts: furnished(t, strings.Replace(one, "ssh-key", "nothing", 1))}
	if out, log, status := bad.run(); status != 2 || !strings.Contains(log, "/run/secrets/sluice/nothing") {
		t.Errorf("a secret that is not there: exit %d: %s%s", status, out, log)
	}
}

var address = regexp.MustCompile(`msg=listening address=(\S+)`)

func TestImageServesFromAReadOnlyRootAndEndsOnSIGTERM(t *testing.T) {
	mounts := furnished(t, strings.ReplaceAll(one, "/bin/true", "/usr/local/bin/sluice")) // the one program there is
	c := (&container{t: t, target: "server", args: []string{"serve"}, mounts: mounts, env: []string{"TZ=Asia/Kolkata"}}).start()
	log := c.await("msg=ready")
	base := "http://" + address.FindStringSubmatch(log)[1]
	for path, want := range map[string]string{"/livez": "ok", "/readyz": "ok", "/metrics": "sluice_"} {
		if body := get(t, base+path); !strings.Contains(body, want) {
			t.Errorf("%s answers %q", path, body)
		}
	}
	// The image has no /usr/share/zoneinfo: the zone is in the binary.
	if !strings.Contains(log, "+05:30 ") {
		t.Errorf("the zone was not found:\n%s", log)
	}
	if _, err := os.Stat(mounts["/var/lib/sluice"] + "/sluice.db"); err != nil {
		t.Errorf("the journal is not in the volume: %v", err)
	}
	must(t, "crun", "--root", c.dir+"/state", "kill", c.id, "TERM")
	if status := c.wait(); status != 0 {
		t.Errorf("exit %d after SIGTERM:\n%s", status, c.log.String())
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s %v", url, response.Status, err)
	}
	return string(body)
}

func TestImageReplacesTheVMsOfTheDemo(t *testing.T) {
	// The simulated hosts use the image's own sed, awk and sort.
	c := &container{t: t, target: "ci", args: []string{"sluice", "demo", "--once"}}
	out, log, status := c.run()
	if status != 0 {
		t.Errorf("exit %d:\n%s\n%s", status, out, log)
	}
	without := &container{t: t, target: "server", args: []string{"demo", "--once"}}
	if out, log, status := without.run(); status == 0 || !strings.Contains(log, "sed") || !strings.Contains(log, "sluice/ci") {
		t.Errorf("without sed: exit %d:\n%s\n%s", status, out, log)
	}
}

func TestImageTrustsTheCARootsAtTheirPlace(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	ask := []string{"--server", server.URL, "status"}
	env := []string{"SLUICE_TOKEN=sluice_nothing"}

	_, log, _ := (&container{t: t, target: "server", args: ask, env: env}).run()
	if !strings.Contains(log, "certificate") {
		t.Errorf("a certificate of nobody's was not refused: %s", log)
	}
	var roots bytes.Buffer
	if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}); err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"/etc/ssl/certs": files(t, map[string]string{"ca-certificates.crt": roots.String()})}
	_, log, _ = (&container{t: t, target: "server", args: ask, env: env, mounts: own}).run()
	if strings.Contains(log, "certificate") || !strings.Contains(log, "404") {
		t.Errorf("with its own root it says: %s", log)
	}
}

func TestJobImageRunsAScriptAsARunnerWould(t *testing.T) {
	// What the Docker and Kubernetes executors send: a shell with pipefail and
	// a script on stdin or as an argument; facts of gitlab-runner's shells/bash.go.
	script := `set -o pipefail; set -o errexit; mkdir -p "$TMPDIR/builds" && cd "$TMPDIR/builds"
printf 'a\nb\n' | grep -c . >count; id -u >uid; sluice version | awk '{print $1}' >name; tar -cf - count | tar -tf - >list
cat count uid name list`
	c := &container{t: t, target: "ci", args: []string{"sh", "-c", script}, env: []string{"TMPDIR=/tmp"}}
	out, log, status := c.run()
	if status != 0 || out != "2\n65532\nsluice\ncount\n" {
		t.Errorf("exit %d: %q %s", status, out, log)
	}
}
