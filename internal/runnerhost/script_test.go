package runnerhost

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var allScripts = []script{scriptLook, scriptGlance, scriptInspect, scriptStop, scriptStart, scriptRelease, scriptEnd, scriptWait}

func TestEveryScriptIsPlainPOSIXShell(t *testing.T) {
	shellcheck, err := exec.LookPath("shellcheck")
	if err != nil {
		missing(t, "shellcheck is not installed")
	}
	for _, s := range allScripts {
		file := filepath.Join(t.TempDir(), s.name+".sh")
		if err := os.WriteFile(file, []byte(compose(t, s)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), shellcheck, "-s", "sh", "-e", "SC2034,SC2317,SC2329", file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %s", s.name, out)
		}
	}
}

// compose yields a script as it is sent, with an order's variables.
func compose(t *testing.T, s script) string {
	t.Helper()
	more := orderVariables(fleet.Order{Owner: "sluice-a", Operation: "op-1", Number: 3, BootID: testBootID})
	if s.name == scriptWait.name {
		more = append(more, []variable{{"main_pid", "4711"}, {"limit", "2"}}...)
	}
	text, err := s.text("nonce-1", testSettings(), more...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAQuotedWordStaysOneWord(t *testing.T) {
	for _, text := range []string{"", "plain", "it's", `$(id) "x" \ ` + "`id`", "a\nb"} {
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("quote(%q) reads back as %q (%v)", text, out, err)
		}
	}
}

func TestSettingsThatAShellCouldMisreadAreRefused(t *testing.T) {
	for name, change := range map[string]func(*fleet.HostSettings){
		"host.unit":        func(s *fleet.HostSettings) { s.Unit = "a b.service" },
		"host.user":        func(s *fleet.HostSettings) { s.User = "-x" },
		"host.runner_user": func(s *fleet.HostSettings) { s.RunnerUser = "a;b" },
		"host.config":      func(s *fleet.HostSettings) { s.ConfigPath = "config.toml" },
	} {
		settings := testSettings()
		change(&settings)
		_, err := checkSettings(settings)
		if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
