package gitlab_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
)

// hooked is an instance whose project 42 has two webhooks, as GitLab's own
// client writes them.
func hooked(t *testing.T, status int, observe func(route, code string)) *gitlab.Instance {
	t.Helper()
	until := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	mux := http.NewServeMux()
	answer := func(value any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if err := json.NewEncoder(w).Encode(value); err != nil {
				t.Error(err)
			}
		}
	}
	mux.HandleFunc("GET /api/v4/projects/42/hooks", answer([]gl.ProjectHook{
		{ID: 1, URL: "https://elsewhere.example.com/x", PushEvents: true},
		{
			ID: 5, URL: "https://sluice.example.com/webhooks/gitlab", PipelineEvents: true, TagPushEvents: true, ReleasesEvents: true,
			MergeRequestsEvents: true, JobEvents: true, EnableSSLVerification: true, AlertStatus: "temporarily_disabled", DisabledUntil: &until,
		},
	}))
	mux.HandleFunc("GET /api/v4/projects/42/hooks/5/events", answer([]map[string]any{
		{"id": 8, "response_status": "200", "request_data": map[string]any{"object_kind": "push"}}, {"id": 9, "response_status": "401"},
	}))
	hs := httptest.NewServer(mux)
	t.Cleanup(hs.Close)
	in, err := gitlab.New(gitlab.Config{URL: hs.URL, Token: "glpat-x", Now: time.Now, Timeout: time.Minute, Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func ours(url string) bool { return strings.HasSuffix(url, "/webhooks/gitlab") }

func TestTheWebhooksOfAProjectAreListedWithTheLastAnswer(t *testing.T) {
	list, err := hooked(t, http.StatusOK, nil).Hooks(t.Context(), 42, ours)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	other, own := list[0], list[1]
	if other.Status != "" || !slices.Equal(other.Events, []string{"push"}) || other.VerifiesTLS {
		t.Errorf("%+v", other)
	}
	if own.ID != 5 || own.Status != "401" || own.Alert != "temporarily_disabled" || own.DisabledUntil.Hour() != 12 || !own.VerifiesTLS ||
		!slices.Equal(own.Events, []string{"pipeline", "tag", "release", "merge", "job"}) {
		t.Errorf("%+v", own)
	}
}

func TestARefusalOfTheWebhooksSaysWhichRightIsMissing(t *testing.T) {
	for status, code := range map[int]fleet.Code{http.StatusForbidden: fleet.CodeForbidden, http.StatusNotFound: fleet.CodeNotFound} {
		_, err := hooked(t, status, nil).Hooks(t.Context(), 42, ours)
		if fleet.CodeOf(err) != code || !strings.Contains(fleet.HintOf(err), "Maintainer role in the project") {
			t.Errorf("%d: %v", status, err)
		}
	}
}
