package ci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func testLog() (*joblog, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &joblog{out: out, now: time.Now, sections: true}, out
}

func TestPatienceEndsWhenItsTimeIsUpAndTellsEachReasonOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := testLog()
		p := &patience{limit: 5 * time.Minute, now: time.Now, log: log}
		began, tries := time.Now(), 0
		err := p.try(t.Context(), false, func() error {
			tries++
			if tries < 4 {
				return fleet.Errorf(fleet.CodeUnavailable, "refused")
			}
			return fleet.Errorf(fleet.CodeRateLimited, "slow down").WithHint("wait")
		})
		if took := time.Since(began); fleet.CodeOf(err) != fleet.CodeRateLimited || took < 5*time.Minute || took > 5*time.Minute+longestPause {
			t.Errorf("%v after %s", err, took)
		}
		if n := strings.Count(out.String(), "\n"); n != 2 || tries > 40 {
			t.Errorf("%d lines for 2 reasons, %d tries:\n%s", n, tries, out)
		}
	})
}

func TestOnlyWhatMayPassIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		err     error
		reading bool
		tries   int
	}{
		{fleet.Errorf(fleet.CodeForbidden, "no"), true, 1},
		{fleet.Errorf(client.CodeUnauthorized, "no"), true, 1},
		{fleet.Errorf(fleet.CodeConflict, "no"), false, 1},
		{fleet.Errorf(fleet.CodeInternal, "bug"), false, 1},
		{fleet.Errorf(fleet.CodeInternal, "bug"), true, 3},
		{fleet.Errorf(fleet.CodeUnavailable, "gone"), false, 3},
		{errors.New("anything"), false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			log, _ := testLog()
			tries := 0
			err := (&patience{limit: time.Hour, now: time.Now, log: log}).try(t.Context(), c.reading, func() error {
				if tries++; tries == 3 {
					return nil
				}
				return c.err
			})
			if tries != c.tries || (err == nil) != (c.tries == 3) {
				t.Errorf("%v: %d tries, %v", c.err, tries, err)
			}
		})
	}
}

func TestACanceledJobDoesNotWaitForTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _ := testLog()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		began := time.Now()
		err := (&patience{limit: time.Hour, now: time.Now, log: log}).try(ctx, false, func() error { return fleet.Errorf(fleet.CodeUnavailable, "gone") })
		if err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestTheKeyIsTheSameForEveryTryAndAnotherForEveryJobAndOrder(t *testing.T) {
	type try struct {
		place Place
		order Order
	}
	one := try{
		Place{Instance: "https://gitlab.example.com", Project: "42", Pipeline: "1", Job: "recreate", URL: "https://gitlab.example.com/-/jobs/1"},
		Order{Fleet: "shared", VMs: []string{"a", "b"}, Image: "i-1"},
	}
	again := one
	again.place.URL = "https://gitlab.example.com/-/jobs/2"
	if one.place.Key(one.order) != again.place.Key(again.order) {
		t.Error("a retry has another key")
	}
	seen := map[string]try{one.place.Key(one.order): one}
	for _, change := range []func(*try){
		func(t *try) { t.place.Instance = "https://other.example.com" }, func(t *try) { t.place.Project = "421"; t.place.Pipeline = "" },
		func(t *try) { t.place.Pipeline = "2" }, func(t *try) { t.place.Job = "recreate 1/2" }, func(t *try) { t.place.Job = strings.Repeat("x", 500) },
		func(t *try) { t.order.Fleet = "other" }, func(t *try) { t.order.VMs = []string{"a"} }, func(t *try) { t.order.VMs = []string{"ab"} },
		func(t *try) { t.order.Image = "i-2" }, func(t *try) { t.order.Image = ""; t.order.Cap = "i-1" }, func(t *try) { t.order.OnOverrun = "wait" },
		func(t *try) { t.order.Parallel = 2 },
	} {
		other := one
		change(&other)
		key := other.place.Key(other.order)
		if before, twice := seen[key]; twice {
			t.Errorf("%+v and %+v have one key", before, other)
		}
		seen[key] = other
		if len(key) > 255 {
			t.Errorf("%d characters", len(key))
		}
	}
}

// GitLab refuses a dotenv report with more than 20 variables or 5 KiB, and
// fails the job for it.
func TestADotenvReportOfManyVMsStaysWithinGitLabsLimits(t *testing.T) {
	for _, n := range []int{1, 5, 6, 20, 200} {
		r := Report{Fleet: "shared", URL: "https://sluice.example.com"}
		for i := range n {
			r.Cases = append(r.Cases, Case{VM: fmt.Sprintf("runner-%03d", i), ID: fmt.Sprintf("op-%012d", i), State: StateSucceeded, URL: "https://sluice.example.com/api/v1/operations/op"})
		}
		text := string(r.dotenv())
		if lines := strings.Count(text, "\n"); lines > maxVariables || len(text) > maxDotenv {
			t.Errorf("%d VMs: %d variables, %d bytes", n, lines, len(text))
		}
		if want := min(n, 5); strings.Count(text, "_STATE=")-1 != want || !strings.Contains(text, "SLUICE_OPERATIONS=op-") {
			t.Errorf("%d VMs:\n%s", n, text)
		}
	}
}

func TestTwoVMsWhoseVariablesWouldBeTheSameDoNotMix(t *testing.T) {
	r := Report{Fleet: "shared", Cases: []Case{{VM: "a-b", ID: "op-1", State: StateSucceeded}, {VM: "a.b", ID: "op-2", State: StateFailed}}}
	text := string(r.dotenv())
	if strings.Count(text, "SLUICE_A_B_STATE=") != 1 || !strings.Contains(text, "SLUICE_A_B_ID=op-1\nSLUICE_A_B_STATE=succeeded\n") {
		t.Error(text)
	}
	if !strings.Contains(text, "SLUICE_STATE=failed\n") {
		t.Errorf("the worst is not the state of all:\n%s", text)
	}
}

func TestAnInterruptedSubjectGoesOnInASectionOfItsOwn(t *testing.T) {
	log, out := testLog()
	p := newProgress(log)
	one, two := client.Operation{Id: "op-1", Fleet: "f", Vm: "a"}, client.Operation{Id: "op-2", Fleet: "f", Vm: "b"}
	note := func(op *client.Operation, text string) {
		p.event(op, &client.Event{At: noon, Kind: "note", Phase: new("draining"), Text: text})
	}
	note(&one, "first")
	note(&two, "second")
	note(&one, "third")
	note(&one, "third")
	log.end()
	log.end()
	text := out.String()
	if strings.Count(text, "section_start") != 3 || strings.Count(text, "section_end") != 3 || !strings.Contains(text, "f/a  op-1 (continued)") {
		t.Errorf("%q", text)
	}
	if strings.Count(text, "third") != 1 {
		t.Error("a repeat was told")
	}
}

func TestAHeldOperationIsShoutedOnceAndNamesTheWayOn(t *testing.T) {
	log, out := testLog()
	p := newProgress(log)
	op := client.Operation{Id: "op-1", Fleet: "f", Vm: "a", Phase: "creating", Held: new(true), Waiting: new("an image"), Failure: &client.Failure{Code: "image_missing", Message: "no image x"}}
	p.event(&op, &client.Event{At: noon, Kind: "phase", Phase: new("creating"), Text: "creating"})
	p.waiting(&op)
	p.waiting(&op)
	if strings.Count(out.String(), "HELD: an image: no image x") != 1 {
		t.Error(out)
	}
	if state := stateOf(&op); state != StateHeld || state.status() != 5 || !strings.Contains(strings.Join(reasons(&op), "\n"), "sluice op resume op-1") {
		t.Errorf("%s: %v", state, reasons(&op))
	}
	j := &job{ops: []client.Operation{op, {Id: "op-2", Phase: client.OperationPhaseQueued}}}
	if !j.settled(nil) {
		t.Error("it waits behind an operation that waits for a person")
	}
}

func TestOnlyALoopbackAddressMayBePlainHTTPInSilence(t *testing.T) {
	for server, want := range map[string]bool{
		"http://127.0.0.1:1": false, "http://[::1]:1": false, "http://localhost": false, "https://sluice.example.com": false,
		"http://sluice.example.com": true, "http://10.0.0.1": true,
	} {
		if got := plaintext(server); got != want {
			t.Errorf("%s: %t", server, got)
		}
	}
}
