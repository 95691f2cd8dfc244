package simrunner_test

import (
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store counts containers.
type store struct {
	mu  sync.Mutex
	all map[string]bool
}

func (s *store) Run(name string, _ map[string]string) { s.set(name, true) }
func (s *store) Remove(name string)                   { s.set(name, false) }

func (s *store) set(name string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = there
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, there := range s.all {
		if there {
			n++
		}
	}
	return n
}

type lab struct {
	t      *testing.T
	gitlab *simgitlab.Server
	runner *simrunner.Runner
	store  *store
	exited chan int
}

func newLab(t *testing.T, change func(*simrunner.Options)) *lab {
	t.Helper()
	l := &lab{t: t, gitlab: simgitlab.New(simgitlab.Config{Now: time.Now, LongPoll: time.Minute}), store: &store{all: map[string]bool{}}, exited: make(chan int, 1)}
	server := httptest.NewServer(l.gitlab)
	t.Cleanup(server.Close)
	timing := simrunner.Measured()
	timing.Handlers, timing.Container, timing.Check, timing.Trace = time.Millisecond, 10*time.Millisecond, 10*time.Millisecond, 20*time.Millisecond
	timing.Died, timing.Removed, timing.Interrupt = time.Millisecond, time.Millisecond, 10*time.Millisecond
	o := simrunner.Options{
		Clock: simclock.NewReal(time.Now), Timing: timing, URL: server.URL, Token: simgitlab.DefaultRunnerToken,
		SystemID: "s_0123456789ab", Concurrent: 1, Containers: l.store, Exited: func(code int) { l.exited <- code },
	}
	if change != nil {
		change(&o)
	}
	l.runner = simrunner.Start(o)
	t.Cleanup(l.runner.Kill)
	t.Cleanup(server.CloseClientConnections)
	return l
}

func (l *lab) eventually(what string, cond func() bool) {
	l.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			l.t.Fatalf("never came: %s", what)
		}
	}
}

func (l *lab) verdict(id int64) simgitlab.Verdict {
	rec, _ := l.gitlab.Job(id)
	return rec.Verdict
}

func TestTwoJobsEndAndAThirdStaysAfterSIGQUIT(t *testing.T) {
	l := newLab(t, func(o *simrunner.Options) { o.Concurrent = 2 })
	var jobs []int64
	for range 2 {
		jobs = append(jobs, l.gitlab.Enqueue(simgitlab.JobSpec{Duration: 300 * time.Millisecond, AfterDuration: 50 * time.Millisecond}))
	}
	l.eventually("both containers", func() bool { return l.store.count() == 2 })
	l.runner.Signal(syscall.SIGQUIT)
	third := l.gitlab.Enqueue(simgitlab.JobSpec{})
	if code := <-l.exited; code != 0 {
		t.Errorf("exit status %d", code)
	}
	for _, id := range jobs {
		if rec, _ := l.gitlab.Job(id); rec.Verdict != simgitlab.VerdictSucceeded || !rec.AfterScriptEnded {
			t.Errorf("record = %+v", rec)
		}
	}
	if l.verdict(third) != simgitlab.VerdictPending || l.store.count() != 0 {
		t.Errorf("third job %s, %d containers", l.verdict(third), l.store.count())
	}
}

func TestALostTraceAnswerDoesNotLoseTheTrace(t *testing.T) {
	l := newLab(t, nil)
	l.gitlab.Inject(simgitlab.Fault{Kind: simgitlab.FaultDrop, Routes: []string{"PATCH /jobs/:id/trace"}, Count: 2})
	id := l.gitlab.Enqueue(simgitlab.JobSpec{Duration: 100 * time.Millisecond, AfterDuration: 10 * time.Millisecond})
	l.eventually("the job's end", func() bool { return l.verdict(id) == simgitlab.VerdictSucceeded })
	if rec, _ := l.gitlab.Job(id); !rec.ScriptEnded || !rec.AfterScriptEnded {
		t.Errorf("record = %+v", rec)
	}
}

func TestSIGTERMGivesTheReasonThatTheServerLists(t *testing.T) {
	l := newLab(t, nil)
	id := l.gitlab.Enqueue(simgitlab.JobSpec{Duration: time.Minute})
	l.eventually("the container", func() bool { return l.store.count() == 1 })
	l.runner.Signal(syscall.SIGTERM)
	l.eventually("the cut", func() bool { return l.verdict(id) == simgitlab.VerdictCut })
	if rec, _ := l.gitlab.Job(id); rec.FailureReason != "runner_interrupted" {
		t.Errorf("reason %q, though the server lists it", rec.FailureReason)
	}
}

func TestADeadTokenLetsTheRunnerGoOnAsking(t *testing.T) {
	l := newLab(t, func(o *simrunner.Options) { o.Token = "glrt-dead" })
	l.eventually("many refused requests", func() bool { return l.gitlab.Counts()["POST /jobs/request"] > 3 })
	if l.runner.State() != "running" {
		t.Errorf("state %s", l.runner.State())
	}
}
