//go:build ship

package ship_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const unit = root + "/deploy/systemd/sluice.service"

// The bar of exposure: 0 is nothing, 10 everything (systemd-analyze(1)). What is
// left is what Sluice is for: the network, and commands of the operator's.
const bar = 1.5

func TestUnitIsHardened(t *testing.T) {
	text := readFile(t, unit)
	score := exposure(t, text)
	t.Logf("systemd-analyze security: %.1f of 10 (at most %.1f), by %s", score, bar, strings.SplitN(must(t, "systemd-analyze", "--version"), "\n", 2)[0])
	if score > bar {
		t.Errorf("exposure %.1f", score)
	}
	// The measure itself: it notices a line that is missing.
	for _, line := range []string{"PrivateMounts=yes\n", "SystemCallFilter=~@privileged @resources\n", "NoNewPrivileges=yes\n"} {
		without := strings.Replace(text, line, "", 1)
		if worse := exposure(t, without); without == text || worse <= score {
			t.Errorf("without %q it is %.1f", line, worse)
		}
	}
}

var overall = regexp.MustCompile(`Overall exposure level for \S+: (\d+\.\d)`)

func exposure(t *testing.T, text string) float64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.service")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := must(t, "systemd-analyze", "security", "--offline=true", "--no-pager", path)
	match := overall.FindStringSubmatch(out)
	if match == nil {
		t.Fatalf("no score in\n%s", out)
	}
	score, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return score
}

// The page names each credential that the unit loads, by the name that
// sluice.yaml has to use.
func TestUnitLoadsTheCredentialsThatThePageConfigures(t *testing.T) {
	loaded := regexp.MustCompile(`(?m)^LoadCredential=([a-z-]+):/etc/sluice/secrets/(\S+)$`).FindAllStringSubmatch(readFile(t, unit), -1)
	if len(loaded) != 3 {
		t.Errorf("%d credentials", len(loaded))
	}
	page := readFile(t, root+"/docs/operating.md")
	for _, c := range loaded {
		if c[1] != c[2] || !strings.Contains(page, "{credential: "+c[1]+"}") {
			t.Errorf("credential %s is loaded from %s, and the page does not configure it", c[1], c[2])
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
