package alerts

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated page anew")

const page = "../../docs/reference/alerts.md"

func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Alerts\n\nGenerated from [deploy/prometheus/sluice.rules.yml](../../deploy/prometheus/sluice.rules.yml); the [metrics](metrics.md) have a page of their own.\n\n")
	b.WriteString("| alert | severity | fires after | says |\n| --- | --- | --- | --- |\n")
	for _, r := range rules(t) {
		after := r.For
		if after == "" {
			after = "at once"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", r.Alert, strings.ToLower(r.Alert), r.Labels["severity"], after, r.Annotations["summary"])
	}
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			fmt.Fprintf(&b, "\n## %s\n\n%s [Runbook](../runbooks/%s.md).\n\n```promql\n%s\n```\n", r.Alert, readable(r.Annotations["description"]), r.Alert, strings.TrimSpace(r.Expr))
		}
	}
	return b.String()
}

// readable puts words in the place of what Prometheus fills in.
func readable(description string) string {
	const begin, end = "{{", "}}"
	text := strings.ReplaceAll(description, `{{ . | first | value | humanizeDuration }}{{ end }}`, "")
	for {
		before, rest, ok := strings.Cut(text, begin)
		if !ok {
			return text
		}
		inside, after, _ := strings.Cut(rest, end)
		word := "…"
		switch {
		case strings.Contains(inside, "sluice_drain_cap_seconds"):
			word = "*cap*"
		case strings.Contains(inside, "$labels."):
			_, label, _ := strings.Cut(inside, "$labels.")
			word = "*" + strings.TrimSpace(label) + "*"
		case strings.Contains(inside, "$value"):
			word = "*value*"
		}
		text = before + word + after
	}
}

func TestTheAlertsPageIsInStep(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, page); got != want {
		t.Errorf("%s is out of step: run go test ./test/alerts -run Page -update", page)
	}
}
