package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/access"
)

// hooksOf is a GitLab whose project 42 has these webhooks; it knows nothing else.
func hooksOf(t *testing.T, list string) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(path, body string) {
		mux.HandleFunc("GET /api/v4/projects/42/"+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Private-Token") != "glpat-of-the-test" {
				t.Errorf("%s was asked for with %v", path, r.Header)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		})
	}
	answer("hooks", list)
	answer("hooks/5/events", `[{"id":1,"response_status":"200"},{"id":2,"response_status":"401"}]`)
	answer("hooks/6/events", `[{"id":1,"response_status":"200"}]`)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

const (
	elsewhere = `{"id":4,"url":"https://ci.example.com/hook","pipeline_events":true,"enable_ssl_verification":true,"alert_status":"executable"}`
	disabled  = `{"id":5,"url":"https://sluice.example.com/webhooks/gitlab","pipeline_events":true,"enable_ssl_verification":true,"alert_status":"temporarily_disabled","disabled_until":"2030-01-01T12:00:00Z"}`
	fine      = `{"id":6,"url":"https://sluice.example.com/webhooks/gitlab","pipeline_events":true,"enable_ssl_verification":true,"alert_status":"executable"}`
	wrong     = `{"id":6,"url":"https://sluice.example.com/webhooks/gitlab","push_events":true,"alert_status":"executable"}`
)

// What GitLab says of the webhooks that a trigger of the configuration needs is
// what `sluice doctor` finds.
func TestTheDoctorLooksAtTheWebhooksThatTheConfigurationsTriggersNeed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hooks string // "" = there is no gitlab.token
		url   string // webhooks.gitlab.url
		heard bool
		want  []string // what is found, in turn
	}{
		"missing":               {hooks: elsewhere, want: []string{"error project 42 has no webhook that comes here"}},
		"at another address":    {hooks: fine, url: "https://other.example.com/webhooks/gitlab", want: []string{"error project 42 has no webhook that comes here"}},
		"at its own address":    {hooks: elsewhere + "," + fine, url: "https://sluice.example.com/webhooks/gitlab"},
		"missing, but heard":    {hooks: elsewhere, heard: true},
		"disabled":              {hooks: disabled, want: []string{"error webhook 5 of project 42 is disabled by GitLab until 2030-01-01T12:00:00Z", "(last: 401)"}},
		"fine":                  {hooks: elsewhere + "," + fine},
		"of other events":       {hooks: wrong, want: []string{"error no webhook of project 42 sends pipeline events", "warning webhook 6 of project 42 does not verify"}},
		"nobody may look":       {want: []string{"warning nothing of project 42 was ever let in, and without gitlab.token"}},
		"nobody may, but heard": {heard: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := fmt.Sprintf(`
server: {tokens: [{name: alice, sha256: %s}]}
webhooks: {gitlab: {secret_tokens: [{file: %s}], url: %q}}
triggers: [{on: pipeline, project_id: 42, branch: main, fleet: gcp}]
`, access.Hash(bearer), written(t, hookToken), c.url)
			if c.url == "" {
				more = strings.Replace(more, `, url: ""`, "", 1)
			}
			if c.hooks != "" {
				more += fmt.Sprintf("gitlab: {url: %q, token: {file: %s}}\n", hooksOf(t, "["+c.hooks+"]"), written(t, "glpat-of-the-test"))
			}
			url := serving(t, configured(t, more))
			if c.heard {
				status, body := post(t, url+"/webhooks/gitlab",
					`{"object_kind":"push","project_id":42,"ref":"refs/heads/topic","after":"5f1d0c8e7a3b49d2a6c4e0f1b2d3948576a1c0de"}`,
					map[string]string{"X-Gitlab-Token": hookToken})
				if status != http.StatusOK {
					t.Fatalf("%d %s", status, body)
				}
			}
			if found := webhookFindings(t, url, "gcp"); !inTurn(found, c.want) || (found == "") != (len(c.want) == 0) {
				t.Errorf("found:\n%s\nwant:\n%s", found, strings.Join(c.want, "\n"))
			}
			if found := webhookFindings(t, url, "aws"); found != "" {
				t.Errorf("of a fleet without triggers: %s", found)
			}
		})
	}
}

// webhookFindings are the doctor's about webhooks, one a line.
func webhookFindings(t *testing.T, url, fleetName string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/fleets/"+fleetName+"/doctor", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Findings []struct{ Severity, Check, What, Mend string }
	}
	text := read(t, response)
	if err := json.Unmarshal([]byte(text), &report); err != nil || len(report.Findings) == 0 {
		t.Fatalf("%s: %v", text, err) // the VMs cannot be reached: that is found at least
	}
	var lines []string
	for _, f := range report.Findings {
		if f.Check == "webhook" {
			lines = append(lines, f.Severity+" "+f.What+"; "+f.Mend)
		}
	}
	return strings.Join(lines, "\n")
}

// inTurn says whether the parts come in text one after another.
func inTurn(text string, parts []string) bool {
	for _, part := range parts {
		_, after, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = after
	}
	return true
}
