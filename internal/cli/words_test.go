package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

func wordsOf(e client.Event) string {
	var out bytes.Buffer
	p := &program{Env: Env{Stdout: &out, Now: time.Now}, output: "text"}
	e.Fleet, e.Vm = new("lab"), new("a")
	p.watch(nil, following{ops: []client.Operation{{Fleet: "lab", Vm: "a"}}}).event(&e)
	_, text, _ := strings.Cut(out.String(), "lab/a  ")
	return strings.Join(strings.Fields(text), " ")
}

func TestALineSaysThePhaseOnce(t *testing.T) {
	for text, want := range map[string]string{
		"failed: lab/a exists already": "failed lab/a exists already", "failed": "failed",
	} {
		if got := wordsOf(client.Event{Kind: "phase", Phase: new("failed"), Text: text}); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestAMessageNamesTheVMOnce(t *testing.T) {
	op := &client.Operation{Fleet: "lab", Vm: "a"}
	for text, want := range map[string]string{
		"lab/a exists already": "lab/a exists already", "the host is gone": "lab/a: the host is gone", "lab/ab is in the way": "lab/a: lab/ab is in the way",
	} {
		if got := about(op, text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestAMomentThatHasPassedIsNotPromised(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &program{Env: Env{Now: func() time.Time { return now }}}
	op := &client.Operation{Id: "op-1", Waiting: new("job 7"), Until: new(now.Add(time.Minute)), Then: new("the delete")}
	if got := p.waitsFor(op); !strings.Contains(got, "until ") || !strings.Contains(got, "then the delete") {
		t.Errorf("before: %q", got)
	}
	op.Until = new(now.Add(-time.Minute))
	if got := p.waitsFor(op); got != "job 7" {
		t.Errorf("after: %q", got)
	}
	p.idle = func() bool { return true }
	if got := p.waitsFor(op); got != "nobody works on this: `sluice serve`, or `sluice op resume op-1`" {
		t.Errorf("with nobody at work: %q", got)
	}
}
