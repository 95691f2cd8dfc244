package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const hookToken = "a-secret-token-of-the-test"

// hooked adds a webhook's token and a trigger to the settings.
func hooked(t *testing.T, c *config.Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(hookToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Webhooks.GitLab.SecretTokens = []*config.Secret{{File: path}}
	c.Triggers = []config.Trigger{{Name: "push-gcp", On: "push", ProjectID: 42, Branch: "main", Fleet: "gcp"}}
}

// The door for webhooks stands beside the API's: it needs no bearer token, and
// what comes in is listed by the API and counted.
func TestAWebhookIsTakenAndListed(t *testing.T) {
	c, fleets := settings(t)
	hooked(t, c)
	address := "http://" + listening(t, c, fleets)

	const body = `{"object_kind":"push","project_id":42,"ref":"refs/heads/topic","after":"5f1d0c8e7a3b49d2a6c4e0f1b2d3948576a1c0de"}`
	for token, want := range map[string]int{hookToken: http.StatusOK, "wrong": http.StatusUnauthorized} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/webhooks/gitlab", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Gitlab-Token", token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != want {
			t.Errorf("with %s: %d, %v", token, response.StatusCode, err)
		}
	}
	local, err := client.New(client.Options{Socket: c.Server.Socket})
	if err != nil {
		t.Fatal(err)
	}
	list, err := local.Deliveries(t.Context(), client.ListDeliveriesParams{})
	if err != nil || len(list.Deliveries) != 1 || list.Deliveries[0].Outcome != "ignored" {
		t.Errorf("%+v, %v", list, err)
	}
	metrics := get(t, address+"/metrics")
	for _, line := range []string{
		`sluice_webhook_deliveries_total{event="push",result="ignored"} 1`, `sluice_webhook_deliveries_total{event="other",result="unauthorized"} 1`,
		`sluice_webhook_deliveries_total{event="merge",result="accepted"} 0`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s", line)
		}
	}
}

func TestATokenOfWebhooksThatCannotBeOneIsRefused(t *testing.T) {
	c, fleets := settings(t)
	hooked(t, c)
	c.Webhooks.GitLab.SigningTokens = c.Webhooks.GitLab.SecretTokens
	_, err := Open(t.Context(), Options{Config: c, Role: RoleServe, Fleets: fleets, Log: &output{}})
	if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), "signing token 1 does not begin with whsec_") || strings.Contains(err.Error(), hookToken) {
		t.Errorf("got %v", err)
	}
}
