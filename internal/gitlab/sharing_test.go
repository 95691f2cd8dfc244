package gitlab_test

import (
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

const managersRoute = "GET /runners/:id/managers"

func TestAskersWhoMayShareOneRequestDo(t *testing.T) {
	w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) { g.Fresh = time.Minute })
	w.join("s_aaa")
	w.join("s_bbb")
	w.Inject(simgitlab.Fault{Kind: simgitlab.FaultSlow, Delay: 30 * time.Millisecond})
	since := time.Now()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			id := []string{"s_aaa", "s_bbb"}[i%2]
			r := w.entry.Read(t.Context(), about(id), since)
			if r.Unknown != "" || r.Manager.SystemID != id || r.TakenAt.Before(since) {
				t.Errorf("reading = %+v", r)
			}
		})
	}
	wg.Wait()
	if n := w.Counts()[managersRoute]; n != 1 {
		t.Errorf("managers were listed %d times, want once for the fleet", n)
	}
	if n := w.Counts()["GET /runners/:id/jobs"]; n != 4 {
		t.Errorf("jobs were listed %d times, want two lists for each of two VMs", n)
	}
}

func TestAReadingIsNeverOlderThanAskedFor(t *testing.T) {
	w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) { g.Fresh = time.Minute })
	w.join("s_aaa")
	first := w.read("s_aaa")
	p := w.start("s_aaa", simgitlab.JobSpec{})
	if r := w.entry.Read(t.Context(), about("s_aaa"), first.TakenAt); r.Busy() != fleet.BusyIdle {
		t.Errorf("an asker content with the first reading got another: %+v", r)
	}
	asked := time.Now()
	r := w.entry.Read(t.Context(), about("s_aaa"), asked)
	if r.TakenAt.Before(asked) || r.Busy() != fleet.BusyActive {
		t.Errorf("taken %s before it was asked for, %s", asked.Sub(r.TakenAt), r.Busy())
	}
	w.succeed(p)
}

func TestAskingAgainAfterAWhileLooksAgain(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) { g.Fresh, g.Now = time.Second, clock })
	w.join("s_aaa")
	since := now
	for range 3 {
		w.entry.Read(t.Context(), about("s_aaa"), since)
	}
	if n := w.Counts()[managersRoute]; n != 1 {
		t.Errorf("%d requests within a second, want 1", n)
	}
	mu.Lock()
	now = now.Add(time.Second)
	mu.Unlock()
	w.entry.Read(t.Context(), about("s_aaa"), since)
	if n := w.Counts()[managersRoute]; n != 2 {
		t.Errorf("%d requests, want 2: the same question later must look again", n)
	}
}

func TestAFailureServesNobodyWhoComesLater(t *testing.T) {
	w := newWorld(t, func(_ *simgitlab.Config, g *gitlab.Config) { g.Fresh = time.Minute })
	w.join("s_aaa")
	since := time.Now()
	w.Inject(simgitlab.Fault{Code: 403, Count: 1, Routes: []string{managersRoute}})
	if r := w.entry.Read(t.Context(), about("s_aaa"), since); r.Unknown == "" {
		t.Errorf("reading = %+v", r)
	}
	if r := w.entry.Read(t.Context(), about("s_aaa"), since); r.Busy() != fleet.BusyIdle {
		t.Errorf("again = %+v", r)
	}
}
