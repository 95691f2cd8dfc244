package ci

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// A fleet that never falls silent must not keep a job from seeing its own VMs
// done.
func TestABurstOfEventsThatNeverEndsIsLookedAtAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &job{progress: newProgress(&joblog{out: &strings.Builder{}, now: time.Now})}
		s := &stream{events: make(chan client.Event), lost: make(chan error)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for n := range 1000 {
				select {
				case s.events <- client.Event{Id: int64(n), Operation: new("op-1")}:
				case <-t.Context().Done():
					return
				case <-time.After(time.Hour):
					return
				}
				<-time.After(silence / 2)
			}
		}()
		began := time.Now()
		moved, err := j.gather(s)
		if took := time.Since(began); err != nil || took > lookEvery+silence || !moved["op-1"] {
			t.Errorf("after %s: %v, %v", took, moved, err)
		}
	})
}

// A job follows a hundred VMs and stays within what a caller may ask.
func TestOnlyWhatMovedIsReadAndWithoutNewsWhatIsUnderWay(t *testing.T) {
	var read []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		read = append(read, id)
		w.Header().Set("Content-Type", "application/json")
		phase := client.OperationPhaseQueued
		if id == "op-draining" {
			phase = client.OperationPhaseDraining
		}
		if err := json.NewEncoder(w).Encode(client.Operation{Id: id, Vm: id[3:], Phase: phase}); err != nil {
			t.Error(err)
		}
	})
	controller, err := client.New(client.Options{Handler: handler})
	if err != nil {
		t.Fatal(err)
	}
	log := &joblog{out: &strings.Builder{}, now: time.Now}
	j := &job{log: log, progress: newProgress(log), patience: &patience{now: time.Now, log: log}, ops: []client.Operation{
		{Id: "op-draining", Vm: "draining", Phase: client.OperationPhaseDraining},
		{Id: "op-a", Vm: "a", Phase: client.OperationPhaseQueued},
		{Id: "op-b", Vm: "b", Phase: client.OperationPhaseQueued},
		{Id: "op-done", Vm: "done", Phase: client.OperationPhaseSucceeded, Finished: true},
	}}
	for name, c := range map[string]struct {
		moved map[string]bool
		want  []string
	}{
		"one in line moved": {map[string]bool{"op-a": true}, []string{"op-a"}},
		"no news":           {nil, []string{"op-draining"}},
		"news of others":    {map[string]bool{"": true, "op-x": true, "op-done": true}, nil},
	} {
		read = nil
		if err := j.look(t.Context(), controller, c.moved); err != nil || !slices.Equal(read, c.want) {
			t.Errorf("%s: read %v, %v", name, read, err)
		}
	}
	j.ops = j.ops[1:]
	read = nil
	if err := j.look(t.Context(), controller, nil); err != nil || !slices.Equal(read, []string{"op-a", "op-b"}) {
		t.Errorf("nothing is under way: read %v, %v", read, err)
	}
}

func TestMoreVMsThanCanBeFollowedAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	o := Order{Fleet: "shared"}
	for n := range client.MostNamed + 1 {
		o.VMs = append(o.VMs, "vm-"+strings.Repeat("x", n))
	}
	if err := o.check(); err == nil || !strings.Contains(err.Error(), "101 VMs are too many for one job") {
		t.Errorf("%v", err)
	}
	o.VMs = o.VMs[:client.MostNamed]
	if err := o.check(); err != nil {
		t.Error(err)
	}
}

func TestEveryPhaseOfARecreateIsExplainedInTheLog(t *testing.T) {
	for _, phase := range fleet.Phases() {
		if text := phaseTexts[string(phase)]; text == "" && !phase.Finished() {
			t.Errorf("%s has no text", phase)
		}
	}
}
