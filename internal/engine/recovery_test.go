package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine/enginetest"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const lostJob = 99

// losing is a world whose stop loses a job, with the right to recover it.
func losing(graceful bool) *enginetest.World {
	w := enginetest.New("a")
	w.Spec.HasWriteToken, w.Spec.Recovery = true, fleet.RecoveryPolicy{Orphans: true}
	w.Fences["stop"] = func() {
		w.Orphan("a", fleet.Job{ID: lostJob, URL: w.JobURL(lostJob), StartedAt: w.Now()})
		w.Lost[lostJob].Graceful = graceful
	}
	return w
}

func told(w *enginetest.World, kind string) (n int) {
	for _, f := range w.Store.Facts {
		if f.Kind == kind && strings.HasPrefix(f.Text, fmt.Sprintf("job %d ", lostJob)) {
			n++
		}
	}
	return n
}

func closed(t *testing.T, w *enginetest.World) {
	t.Helper()
	if open, _ := w.Store.UnfinishedChores(t.Context()); len(open) > 0 {
		t.Errorf("%s has not ended: %s", open[0].ID, open[0].State)
	}
}

// cases.md T22: found, canceled, run again, told and counted, once each.
func TestAnOrphanIsCanceledAndRunAgain(t *testing.T) {
	for _, kind := range []fleet.Kind{fleet.KindDrain, fleet.KindRecreate} {
		for _, graceful := range []bool{false, true} {
			w := losing(graceful)
			w.Ask(kind, "a")
			w.Run(time.Hour)
			l := w.Lost[lostJob]
			if l.Retries != 1 || l.Status != "canceled" || told(w, fleet.FactOrphan) != 1 || !strings.Contains(w.Story(), "runs again as job 1099") {
				t.Errorf("%s, graceful %v: %+v\n%s", kind, graceful, l, w.Story())
			}
			if w.Meter.Results[fleet.RecoveryRecovered] != 1 || w.Meter.Orphaned != 1 || w.Meter.Retried != 1 {
				t.Errorf("counted %+v", w.Meter)
			}
			closed(t, w)
		}
	}
}

// A crash at any point, the one between cancel and retry included: one retry,
// or a report; never two, and never nothing.
func TestACrashInARecoveryRunsNoJobTwice(t *testing.T) {
	for _, graceful := range []bool{false, true} {
		recovered := 0
		for die := 1; ; die++ {
			w := losing(graceful)
			w.Points.Die = die
			w.Ask(fleet.KindDrain, "a")
			w.Run(2 * time.Hour)
			l := w.Lost[lostJob]
			if l.Retries > 1 || told(w, fleet.FactOrphan) != 1 {
				t.Fatalf("killed at point %d: %d retries, told %d times\n%s", die, l.Retries, told(w, fleet.FactOrphan), w.Story())
			}
			recovered += l.Retries
			if len(w.Points.Passed) < die {
				if recovered < die-3 {
					t.Errorf("of %d crashes %d were recovered from", die, recovered)
				}
				break
			}
		}
	}
}

// The answer of any of the calls may be lost, and GitLab away at any of them.
func TestALostAnswerRunsNoJobTwice(t *testing.T) {
	for _, call := range []string{"cancel", "force", "retry"} {
		for _, times := range []int{1, 3} {
			w := losing(true)
			w.Lose[call] = times
			w.Ask(fleet.KindDrain, "a")
			w.Run(2 * time.Hour)
			if l := w.Lost[lostJob]; l.Retries > 1 || told(w, fleet.FactOrphan) != 1 {
				t.Errorf("%s lost %d times: %+v\n%s", call, times, l, w.Story())
			}
			closed(t, w)
		}
	}
	for _, call := range []string{"job", "cancel", "force", "retry"} {
		w := losing(true)
		for range 3 {
			w.Refuse[call] = append(w.Refuse[call], fleet.Errorf(fleet.CodeUnavailable, "503 for now"))
		}
		w.Ask(fleet.KindDrain, "a")
		w.Run(2 * time.Hour)
		if l := w.Lost[lostJob]; l.Retries > 1 || told(w, fleet.FactOrphan) != 1 {
			t.Errorf("%s unavailable: %+v\n%s", call, l, w.Story())
		}
		closed(t, w)
	}
}

// What people do meanwhile wins; nothing that they ended is run again, nothing
// that they retried is canceled or retried.
func TestWhatPeopleDoMeanwhileWins(t *testing.T) {
	for name, c := range map[string]struct {
		at     string
		do     func(*enginetest.World, *enginetest.Lost)
		result fleet.RecoveryResult
	}{
		"it ends before the first reading": {"job", func(w *enginetest.World, l *enginetest.Lost) { l.End("success", w.Now()) }, fleet.RecoveryOvertaken},
		"it ends before the cancel":        {"cancel", func(w *enginetest.World, l *enginetest.Lost) { l.End("success", w.Now()) }, fleet.RecoveryOvertaken},
		"it fails before the cancel":       {"cancel", func(w *enginetest.World, l *enginetest.Lost) { l.End("failed", w.Now()) }, fleet.RecoveryOvertaken},
		"somebody retries it before the first reading": {"job", func(w *enginetest.World, l *enginetest.Lost) {
			l.End("canceled", w.Now())
			l.Retry()
		}, fleet.RecoveryOvertaken},
		"somebody cancels the pipeline": {"cancel", func(w *enginetest.World, l *enginetest.Lost) {
			l.End("canceled", w.Now())
			l.Others = []int64{98}
		}, fleet.RecoveryOvertaken},
		"somebody retries it before our retry": {"retry", func(_ *enginetest.World, l *enginetest.Lost) { l.Retry() }, fleet.RecoveryRecovered},
	} {
		w := losing(false)
		w.Fences[c.at] = func() { c.do(w, w.Lost[lostJob]) }
		w.Ask(fleet.KindDrain, "a")
		w.Run(time.Hour)
		l := w.Lost[lostJob]
		if w.Meter.Results[c.result] != 1 || l.Retries > 1 || c.result == fleet.RecoveryOvertaken && strings.Contains(w.Story(), "retry of job") {
			t.Errorf("%s: %+v, %+v\n%s", name, l, w.Meter.Results, w.Story())
		}
	}
}

func TestWithoutTheRightAnOrphanIsReportedWithItsLink(t *testing.T) {
	forbidden := fleet.Errorf(fleet.CodeForbidden, "403 Forbidden")
	for name, c := range map[string]struct {
		change func(*enginetest.World)
		result fleet.RecoveryResult
		text   string
	}{
		"no token":      {func(w *enginetest.World) { w.Spec.HasWriteToken = false }, fleet.RecoveryReported, "cancel and retry it"},
		"not wanted":    {func(w *enginetest.World) { w.Spec.Recovery.Orphans = false }, fleet.RecoveryReported, "cancel and retry it"},
		"may not":       {func(w *enginetest.World) { w.Refuse["cancel"] = []error{forbidden} }, fleet.RecoveryRefused, "refuses its cancel"},
		"may not retry": {func(w *enginetest.World) { w.Refuse["retry"] = []error{forbidden} }, fleet.RecoveryRefused, "retry it"},
		"may not read":  {func(w *enginetest.World) { w.Refuse["job"] = []error{forbidden} }, fleet.RecoveryReported, "403"},
		"may not force": {func(w *enginetest.World) {
			w.Refuse["force"] = []error{forbidden, forbidden}
		}, fleet.RecoveryRecovered, "only a Maintainer"},
	} {
		w := losing(true)
		c.change(w)
		w.Ask(fleet.KindDrain, "a")
		w.Run(90 * time.Second)
		w.ClearOrphans("a")
		w.Run(2 * time.Hour)
		if w.Meter.Results[c.result] != 1 || w.Meter.Orphaned != 1 || told(w, fleet.FactOrphan) != 1 || !strings.Contains(w.Story(), c.text) || !strings.Contains(w.Story(), w.JobURL(lostJob)) {
			t.Errorf("%s: %+v\n%s", name, w.Meter.Results, w.Story())
		}
		closed(t, w)
	}
}

// design.md section 6: report-only, whatever the token may.
func TestInDoubtNothingIsCanceled(t *testing.T) {
	for name, change := range map[string]func(*enginetest.World){
		"GitLab was out of reach between stop and exit": func(w *enginetest.World) {
			w.Job("a", 1, 3*time.Minute)
			w.Run(20 * time.Second)
			w.GitLabDown = true
			w.Run(70 * time.Second)
			w.GitLabDown = false
		},
		// facts/runner-host.md: the process gives up delivering, and ends well.
		"the runner ended 17 minutes after its stop": func(w *enginetest.World) { w.Job("a", 1, 17*time.Minute) },
		"intake was opened again": func(w *enginetest.World) {
			w.Run(2 * time.Second)
			w.Ask(fleet.KindUndrain, "a")
		},
		"somebody has started the runner again": func(w *enginetest.World) {
			w.Fences["trace"] = func() { w.VM("a").StartQueued = true; w.Advance(0) }
		},
		"something of it ran on the VM": func(w *enginetest.World) {
			w.VM("a").Leftovers = []fleet.Container{{Name: "left", JobID: lostJob}}
		},
	} {
		w := losing(false)
		w.Spec.Drain.Cap = time.Hour
		w.Ask(fleet.KindDrain, "a")
		change(w)
		w.Run(30 * time.Minute)
		l := w.Lost[lostJob]
		if l == nil || l.Cancels+l.Retries != 0 {
			t.Errorf("%s: %+v\n%s", name, l, w.Story())
		}
		if told(w, fleet.FactOrphan)+told(w, fleet.FactCut) != 1 {
			t.Errorf("%s: it is not reported\n%s", name, w.Story())
		}
	}
}

func TestACutJobIsEndedAndRunAgainOnlyIfThatIsWanted(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := losing(true)
		w.Spec.Recovery.CutJobs = again
		w.Fences["delete"] = func() { w.VM("a").Leftovers = nil }
		w.Ask(fleet.KindRecreate, "a")
		w.Fences["look"] = func() { w.VM("a").Leftovers = []fleet.Container{{Name: "left", JobID: lostJob}} }
		w.Run(time.Hour)
		l, want := w.Lost[lostJob], 0
		if again {
			want = 1
		}
		if l.Status != "canceled" || l.Retries != want || told(w, fleet.FactCut) != 1 || w.Meter.Orphaned != 0 || w.Meter.Retried != want {
			t.Errorf("retry_cut_jobs %v: %+v, %+v\n%s", again, l, w.Meter, w.Story())
		}
	}
}
