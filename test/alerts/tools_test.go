//go:build alerts

package alerts

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestPromtoolFindsNothingWrongWithTheRules(t *testing.T) {
	check(t, "promtool", "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(deployed, rulesFile))
}

func TestTheShippedConfigurationsAreValid(t *testing.T) {
	check(t, "promtool", "check", "config", filepath.Join(deployed, "prometheus.yml"))
	check(t, "amtool", "check-config", filepath.Join(deployed, "alertmanager.yml"))
}

func TestEveryAlertFiresAndIsSilentWhereItsCasesSaySo(t *testing.T) {
	for _, path := range caseFiles(t) {
		check(t, "promtool", "test", "rules", path)
	}
}

func TestPromtoolFindsNothingWrongWithARealScrape(t *testing.T) {
	s := serve(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "metrics")
	cmd.Stdin = response.Body
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, text)
	}
}
