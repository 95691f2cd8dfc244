package engine_test

import (
	"context"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// faulty are hosts of which one instance has a fault.
type faulty struct {
	engine.Hosts
	instance string
	fault    func(*fleet.HostFacts)
}

func (h faulty) Inspect(ctx context.Context, t engine.Target) (*fleet.HostFacts, error) {
	f, err := h.Hosts.Inspect(ctx, t)
	if err == nil && t.Instance == h.instance {
		h.fault(f)
	}
	return f, err
}

// A second VM must go, but not where its stop would cut jobs, nor its shutdown end
// the whole fleet's token. A token that expires is a reason not to leave it.
func TestASecondVMIsRefusedForWhatItsEndWouldBreakAndNotForATokenThatExpires(t *testing.T) {
	expires := func(f *fleet.HostFacts) { f.Entries[0].TokenExpiresAt = f.Reading.TakenAt.Add(time.Hour) }
	unregisters := func(f *fleet.HostFacts) { f.Unregisters = []string{"remove-registration.service"} }
	for name, c := range map[string]struct {
		fault func(*fleet.HostFacts)
		goes  bool
	}{
		"its token expires":                     {expires, true},
		"it unregisters the token":              {unregisters, false},
		"its token expires, and it unregisters": {func(f *fleet.HostFacts) { expires(f); unregisters(f) }, false},
		"another runner is beside its unit":     {func(f *fleet.HostFacts) { f.RunnerPIDs = append(f.RunnerPIDs, 1) }, false},
		"a wrapper swallows SIGQUIT":            {func(f *fleet.HostFacts) { f.MainCommand = []string{"/bin/sh", "run.sh"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New("a")
			id, twin := twinned(w)
			w.With = func(f *engine.Fleet) { f.Hosts = faulty{f.Hosts, twin.ID, c.fault} }
			w.Run(2 * time.Hour)
			ended(t, w, id, fleet.PhaseSucceeded, "")
			if c.goes {
				left(t, w, w.Op(id).Create.New.Instance)
				return
			}
			untouched(t, w, twin, 0)
			says(t, w, "[warning] the second instance "+twin.ID+" of f/a is still there: f/a: ")
		})
	}
}
