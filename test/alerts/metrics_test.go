package alerts

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/metrics"
)

type stillClock struct{}

func (stillClock) Now() time.Time { return time.Unix(1_900_000_000, 0) }

// series are the label sets of every series that Sluice has from the start, by
// name.
func series(t *testing.T) map[string][]map[string]string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var refusals []string
	for _, reason := range access.Reasons() {
		refusals = append(refusals, string(reason))
	}
	_, err := metrics.New(registry, metrics.Options{
		Fleets: map[string]fleet.Spec{"lab": {Name: "lab", VMs: []string{"runner-01"}}}, Version: "test", Clock: stillClock{},
		State:  func(context.Context) (metrics.State, error) { return metrics.State{}, nil },
		Routes: gitlab.Routes(), Providers: []string{"exec"}, Refusals: refusals, Events: hooks.Events(), Results: hooks.Results(),
	})
	if err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]map[string]string{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range one.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			names := []string{family.GetName()}
			if one.GetHistogram() != nil {
				names = []string{family.GetName() + "_bucket", family.GetName() + "_sum", family.GetName() + "_count"}
			}
			for _, name := range names {
				all[name] = append(all[name], labels)
			}
		}
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b((?:sluice|process)_[a-z_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
)

// TestRulesAndRunbooksAskForSeriesThatExist: a selector that nothing can match
// is an alert that never fires.
func TestRulesAndRunbooksAskForSeriesThatExist(t *testing.T) {
	known, asked := series(t), 0
	for _, path := range append(runbookFiles(t), filepath.Join(deployed, rulesFile), filepath.Join(deployed, "README.md")) {
		for _, match := range selector.FindAllStringSubmatch(read(t, path), -1) {
			asked++
			if !found(t, known[match[1]], match[2]) {
				t.Errorf("%s asks for %s, and there is no such series", path, match[0])
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d selectors were found", asked)
	}
}

func TestASelectorThatNothingMatchesIsSeen(t *testing.T) {
	known := series(t)
	for text, want := range map[string]bool{
		`sluice_vms{state="held"}`:  true,
		`sluice_vms{state="lost"}`:  false,
		`sluice_vms{state!="held"}`: true,
		`sluice_vms`:                true,
		`sluice_wms`:                false,
		`sluice_vms{job="x", fleet="mine", state=~"he.*"}`:                               true,
		`sluice_gitlab_requests_total{code=~"401|403", route!~".*"}`:                     false,
		`sluice_gitlab_requests_total{code=~"401|403", route=~"GET /runners/:id"}`:       true,
		`sluice_gitlab_requests_total{code="401", route=~"GET /runners", fleet="a"}`:     false, // anchored
		`sluice_drain_duration_seconds_bucket{fleet="lab", outcome="drained", le="600"}`: true,
	} {
		match := selector.FindStringSubmatch(text)
		if got := found(t, known[match[1]], match[2]); got != want {
			t.Errorf("%s: found %t", text, got)
		}
	}
}

// found says whether a series matches. Labels whose values are the operator's
// own, or Prometheus', match anything.
func found(t *testing.T, list []map[string]string, matchers string) bool {
	t.Helper()
	for _, labels := range list {
		all := true
		for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
			if strings.Contains(" fleet job instance le ", " "+m[1]+" ") {
				continue
			}
			all = all && holds(t, labels[m[1]], m[2], m[3])
		}
		if all {
			return true
		}
	}
	return false
}

// holds is one matcher, as PromQL has it: expressions are anchored.
func holds(t *testing.T, value, operator, text string) bool {
	t.Helper()
	switch operator {
	case "=":
		return value == text
	case "!=":
		return value != text
	}
	expression, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		t.Fatal(err)
	}
	return expression.MatchString(value) == (operator == "=~")
}
