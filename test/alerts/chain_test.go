//go:build alerts

package alerts

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// TestADrainThatOverrunsReachesTheWebhookOfAlertmanager is the whole chain:
// Sluice on a small world, the shipped configurations with other addresses and
// shorter intervals, and a person's webhook.
func TestADrainThatOverrunsReachesTheWebhookOfAlertmanager(t *testing.T) {
	pager := newPager(t)
	s := serve(t)
	dir := t.TempDir()
	alertmanager := run(t, "prometheus-alertmanager", "--config.file="+shipped(t, dir, "alertmanager.yml",
		"http://127.0.0.1:9095/", pager.URL, "group_wait: 30s", "group_wait: 0s", "group_interval: 5m", "group_interval: 1s"),
		"--storage.path="+filepath.Join(dir, "alertmanager"), "--web.listen-address=127.0.0.1:0", "--cluster.listen-address=").
		address(t, listening)
	shipped(t, dir, rulesFile)
	prometheus := run(t, "prometheus", "--config.file="+shipped(t, dir, "prometheus.yml",
		"127.0.0.1:9093", alertmanager, "127.0.0.1:8420", s.address, "scrape_interval: 15s", "scrape_interval: 1s",
		"evaluation_interval: 15s", "evaluation_interval: 1s"),
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address=127.0.0.1:0").
		address(t, listening)

	await(t, "a scrape before the drain", func() bool {
		return query(t, prometheus, `sluice_drains_in_progress{job="sluice", fleet="lab"} == 0`) > 0
	})
	if told := pager.told(); len(told) != 0 {
		t.Fatalf("alerts before anything happened: %v", told)
	}
	asked, err := s.Ask(t.Context(), s.fleet, "", client.AskBody{Kind: client.AskBodyKindRecreate, Vms: []string{s.vm}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the overrun and the cut job at the webhook", func() bool {
		told := pager.told()
		return told["SluiceDrainOverrun"] != nil && told["SluiceJobCut"] != nil
	})
	alert := pager.told()["SluiceDrainOverrun"]
	if alert.Status != "firing" || alert.Labels["fleet"] != "lab" || alert.Labels["severity"] != "warning" ||
		!strings.Contains(alert.Annotations["description"], "the fleet's cap is 2s") ||
		!strings.HasSuffix(alert.Annotations["runbook_url"], "/docs/runbooks/SluiceDrainOverrun.md") {
		t.Errorf("the alert of %s is %+v", asked.Operations[0].Id, alert)
	}
	if told := pager.told(); len(told) != 2 {
		t.Errorf("other alerts came too: %v", told)
	}
}

// shipped copies a file of deploy/prometheus with replacements, each of which
// must be found, and yields the copy's path.
func shipped(t *testing.T, dir, name string, replace ...string) string {
	t.Helper()
	text := read(t, filepath.Join(deployed, name))
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s does not say %q", name, replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// query yields how many series an expression has in Prometheus.
func query(t *testing.T, prometheus, expression string) int {
	t.Helper()
	address := "http://" + prometheus + "/api/v1/query?query=" + url.QueryEscape(expression)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0 // it is still starting
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Data struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0
	}
	return len(answer.Data.Result)
}

// notice is one alert as Alertmanager's webhook tells of it.
type notice struct {
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// pager is a person's webhook: it remembers who was told what.
type pager struct {
	*httptest.Server
	mu    sync.Mutex
	heard map[string]*notice
}

func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{heard: map[string]*notice{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // cut off: no JSON, and nothing is heard
		var message struct {
			Alerts []*notice `json:"alerts"`
		}
		_ = json.Unmarshal(text, &message)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, alert := range message.Alerts {
			p.heard[alert.Labels["alertname"]] = alert
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// told is what has been heard so far, by alert.
func (p *pager) told() map[string]*notice {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]*notice{}
	for name, alert := range p.heard {
		all[name] = alert
	}
	return all
}
