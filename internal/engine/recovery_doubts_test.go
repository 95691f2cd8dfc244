package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// bent is an engine.Jobs whose readings and calls are bent.
type bent struct {
	engine.Jobs
	reading func(fleet.Job, fleet.JobReading) fleet.JobReading
	force   error
}

func (b bent) Job(ctx context.Context, job fleet.Job) (fleet.JobReading, error) {
	g, err := b.Jobs.Job(ctx, job)
	if err == nil && b.reading != nil {
		g = b.reading(job, g)
	}
	return g, err
}

func (b bent) Cancel(ctx context.Context, job fleet.Job, force bool) error {
	if force && b.force != nil {
		return b.force
	}
	return b.Jobs.Cancel(ctx, job, force)
}

// A replica that lags two seconds behind our cancel: the job is canceled by us
// and must run again.
func TestACancelThatAReplicaDoesNotShowYetIsNotGivenUp(t *testing.T) {
	w := losing(false)
	w.With = func(f *engine.Fleet) {
		f.Jobs = bent{Jobs: f.Jobs, reading: func(job fleet.Job, g fleet.JobReading) fleet.JobReading {
			l := w.Lost[job.ID]
			if !l.Finished.IsZero() && w.Now().Before(l.Finished.Add(2*time.Second)) {
				g.Status, g.FinishedAt = "running", time.Time{}
			}
			return g
		}}
	}
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	if l := w.Lost[lostJob]; l.Retries != 1 {
		t.Errorf("canceled by us and not run again: %+v\n%s", l, w.Story())
	}
}

// The write side of GitLab is away for a moment (429, or a primary that fails
// over while replicas answer).
func TestACancelThatWasNotTakenIsTriedAgainLater(t *testing.T) {
	w := losing(false)
	for range 3 {
		w.Refuse["cancel"] = append(w.Refuse["cancel"], fleet.Errorf(fleet.CodeRateLimited, "429: left alone for 5 s"))
	}
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	if l := w.Lost[lostJob]; l.Retries != 1 {
		t.Errorf("not recovered: %+v\n%s", l, w.Story())
	}
}

// Two VMs lose a job each of one pipeline; both watches recover at once.
func TestTwoOrphansOfOnePipelineAreNoCanceledPipeline(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		w := enginetest.New(names...)
		w.Spec.HasWriteToken, w.Spec.Recovery, w.Spec.MaxUnavailable = true, fleet.RecoveryPolicy{Orphans: true}, 2
		others := func(job fleet.Job, g fleet.JobReading) fleet.JobReading {
			for id, l := range w.Lost { // of the same pipeline; a retried one is left out
				if id != job.ID && l.Newer == 0 && (l.Status == "canceled" || l.Status == "canceling") {
					g.Canceled = append(g.Canceled, id)
				}
			}
			return g
		}
		fails := map[int64]int{}
		w.With = func(f *engine.Fleet) {
			f.Jobs = bentOnce{bent{Jobs: f.Jobs, reading: others}, w, fails}
		}
		stop := func() {
			for i, n := range names {
				for _, id := range []int64{lostJob - int64(i), lostJob - int64(i) - 10} {
					w.Orphan(n, fleet.Job{ID: id, URL: w.JobURL(id), StartedAt: w.Now()})
				}
			}
		}
		w.Fences["stop"] = stop
		for _, n := range names {
			w.Ask(fleet.KindDrain, n)
		}
		w.Run(2 * time.Hour)
		for id, l := range w.Lost {
			if l.Status == "canceled" && l.Retries != 1 {
				t.Errorf("%v: job %d was canceled by us and is not run again\n%s", names, id, w.Story())
			}
		}
	}
}

// bentOnce fails the first reading after a cancel, of each job.
type bentOnce struct {
	bent
	w     *enginetest.World
	fails map[int64]int
}

func (b bentOnce) Job(ctx context.Context, job fleet.Job) (fleet.JobReading, error) {
	if b.w.Lost[job.ID].Status == "canceled" && b.fails[job.ID] == 0 {
		b.fails[job.ID]++
		return fleet.JobReading{}, fleet.Errorf(fleet.CodeUnavailable, "502 for a moment")
	}
	return b.bent.Job(ctx, job)
}

// A Developer's token cannot force: a cut job that stays canceling is not ended.
func TestACutJobThatStaysCancelingIsNotToldToBeCanceled(t *testing.T) {
	r := &fleet.Recovery{Job: fleet.Job{ID: 9}, SystemID: "s_a", Cut: true}
	now := time.Now()
	run := fleet.JobReading{ServerTime: now, Status: "running", SystemID: "s_a", PipelineStatus: "running"}
	r.Begin(r.Next(run, now), run, now)
	r.Answer(nil)
	canceling := run
	canceling.Status = "canceling"
	m := r.Next(canceling, now)
	if m.Step != fleet.RecoveryForce {
		t.Fatal(m)
	}
	r.Begin(m, canceling, now)
	r.Answer(fleet.Errorf(fleet.CodeForbidden, "403: Maintainer only"))
	m = r.Next(canceling, now)
	r.Close(m)
	if m.Result == fleet.RecoveryCanceled {
		t.Errorf("still canceling, and told: %q (%s)", r.Outcome(), m.Result)
	}
}

// A VM that Sluice knows is off: what stood for it alone goes with it.
func TestAKnownVMThatIsOffLeavesNothingBehindInGitLab(t *testing.T) {
	for _, own := range []bool{false, true} {
		w := enginetest.New("a")
		if own {
			w = w.OwnEntries()
		}
		w.Ask(fleet.KindDrain, "a")
		w.Run(time.Hour)
		vm := w.VM("a")
		row, _ := w.Store.VM(t.Context(), fleet.Ref{Fleet: enginetest.Fleet, VM: "a"})
		vm.Off = true
		w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
		w.Ask(fleet.KindDelete, "a")
		w.Run(2 * time.Hour)
		if own && len(w.RemovedEntries) != 1 || !own && len(w.Removed) != 1 {
			t.Errorf("own %v: the row knew %+v; removed managers %v, entries %v\n%s", own, row.Incarnation, w.Removed, w.RemovedEntries, w.Story())
		}
		if !strings.Contains(w.Story(), fmt.Sprintf("job %d", lostJob)) {
			t.Errorf("own %v: nothing tells of the job that GitLab shows on it", own)
		}
	}
}

// traced is GitLab where the lost job has a trace: a runner works on it.
type traced struct{ engine.GitLab }

func (traced) TraceEmpty(context.Context, fleet.Job) (bool, error) { return false, nil }

// b is a clone of a that could not be identified (out of reach from here, but
// it talks to GitLab). The runner of a ended well and left nothing: whatever
// has a trace and goes on under its system_id is another runner's.
func TestALiveJobOfACloneIsNotCanceled(t *testing.T) {
	w := enginetest.New("a", "b")
	w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true}
	w.VM("b").SystemID, w.VM("b").Cutoff = w.VM("a").SystemID, true
	w.With = func(f *engine.Fleet) { f.GitLab = traced{f.GitLab} }
	w.Fences["stop"] = func() { // b takes a job just then
		w.Orphan("b", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
	}
	w.Ask(fleet.KindRecreate, "a")
	w.Run(time.Hour)
	if l := w.Lost[lostJob]; l == nil || l.Cancels != 0 {
		t.Errorf("a job that runs on b was canceled: %+v\n%s", l, w.Story())
	}
}

// GitLab answers a retry with the very job: nothing was made.
type sameJob struct{ engine.Jobs }

func (s sameJob) Retry(_ context.Context, job fleet.Job) (int64, error) {
	return job.ID, fleet.Errorf(fleet.CodeUnavailable, "as Writer.Retry: an answer that is not as expected")
}

func TestARetryThatMadeNoJobIsNotToldAsOne(t *testing.T) {
	w := losing(false)
	w.With = func(f *engine.Fleet) { f.Jobs = sameJob{f.Jobs} }
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	if w.Meter.Results[fleet.RecoveryRecovered] != 0 {
		t.Errorf("%s", w.Story())
	}
}

// The first retry is not taken (503); before the second somebody cancels the
// pipeline: what people do meanwhile wins.
func TestARetryIsNotRepeatedIntoAPipelineThatSomebodyHasCanceled(t *testing.T) {
	w := losing(false)
	w.Refuse["retry"] = []error{fleet.Errorf(fleet.CodeUnavailable, "503")}
	w.With = func(f *engine.Fleet) {
		f.Jobs = bent{Jobs: f.Jobs, reading: func(_ fleet.Job, g fleet.JobReading) fleet.JobReading {
			if w.Calls["retry"] == 1 && g.Newer == 0 {
				g.Canceled, g.PipelineStatus = []int64{98, 97}, "canceled"
			}
			return g
		}}
	}
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	if l := w.Lost[lostJob]; l.Retries != 0 {
		t.Errorf("run again in a canceled pipeline: %+v\n%s", l, w.Story())
	}
}

// design.md section 6: report-only once intake on this system_id is open again.
func TestARecoveryThatWaitedIsReportOnlyOnceIntakeIsOpen(t *testing.T) {
	w := losing(false)
	for range 3 {
		w.Refuse["job"] = append(w.Refuse["job"], fleet.Errorf(fleet.CodeUnavailable, "502"))
	}
	w.Fences["job"] = func() { w.Ask(fleet.KindUndrain, "a") }
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	if l := w.Lost[lostJob]; l.Cancels != 0 {
		t.Errorf("canceled after intake was open: %+v\n%s", l, w.Story())
	}
}

// A 429 with Retry-After: 120 on the write token. While it lasts the client
// sends nothing at all, and yet each try counts.
func TestARetryThatWasNotSentIsSentLater(t *testing.T) {
	w := losing(false)
	for range 2 {
		w.Refuse["retry"] = append(w.Refuse["retry"], fleet.Errorf(fleet.CodeRateLimited, "was not asked: left alone for 2m"))
	}
	w.Ask(fleet.KindDrain, "a")
	w.Run(time.Hour)
	if l := w.Lost[lostJob]; l.Status == "canceled" && l.Retries != 1 {
		t.Errorf("canceled by us and not run again: %+v\n%s", l, w.Story())
	}
}
