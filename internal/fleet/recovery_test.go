package fleet

import (
	"testing"
	"time"
)

var (
	recoverNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	began      = recoverNow.Add(-15 * time.Second)
)

func runningReading(change ...func(*JobReading)) JobReading {
	g := JobReading{ServerTime: recoverNow, Status: "running", SystemID: "s_a", StartedAt: began, PipelineStatus: "running"}
	for _, c := range change {
		c(&g)
	}
	return g
}

func status(s string) func(*JobReading) { return func(g *JobReading) { g.Status = s } }

func ended(s string, at time.Time) func(*JobReading) {
	return func(g *JobReading) { g.Status, g.FinishedAt = s, at }
}

// at is a recovery whose last committed step is the given one.
func at(step RecoveryStep, change ...func(*Recovery)) *Recovery {
	r := &Recovery{Job: Job{ID: 9, StartedAt: began}, SystemID: "s_a", Again: true, Since: recoverNow}
	if step != RecoveryFound {
		r.Begin(RecoveryMove{Step: RecoveryCancel}, runningReading(), recoverNow)
		r.Answer(nil)
	}
	if step == RecoveryForce || step == RecoveryRetry {
		r.Begin(RecoveryMove{Step: step}, runningReading(), recoverNow)
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// design.md section 6; cases.md T22, T99.
func TestARecoveryGoesOnByWhatWasCommittedAndAFreshReading(t *testing.T) {
	soon := recoverNow.Add(time.Second)
	crashed := func(r *Recovery) { r.Answered = false }
	for name, c := range map[string]struct {
		r      *Recovery
		g      JobReading
		now    time.Time
		step   RecoveryStep
		result RecoveryResult
	}{
		"it runs: cancel": {at(RecoveryFound), runningReading(), soon, RecoveryCancel, ""},
		"it has ended: a cancel would be answered, and a retry would run it twice": {at(RecoveryFound), runningReading(ended("success", soon)), soon, RecoveryEnd, RecoveryOvertaken},
		"somebody has retried it before":                                           {at(RecoveryFound), runningReading(func(g *JobReading) { g.Newer = 10 }), soon, RecoveryEnd, RecoveryOvertaken},
		"somebody is canceling it":                                                 {at(RecoveryFound), runningReading(status("canceling")), soon, RecoveryEnd, RecoveryReported},
		"another VM's":                                                             {at(RecoveryFound), runningReading(func(g *JobReading) { g.SystemID = "s_b" }), soon, RecoveryEnd, RecoveryReported},
		"no manager claims it":                                                     {at(RecoveryFound), runningReading(func(g *JobReading) { g.SystemID = "" }), soon, RecoveryEnd, RecoveryReported},
		"it went back to the queue":                                                {at(RecoveryFound), runningReading(status("pending")), soon, RecoveryEnd, RecoveryOvertaken},
		"its pipeline is canceled":                                                 {at(RecoveryFound), runningReading(func(g *JobReading) { g.PipelineStatus = "canceled" }), soon, RecoveryEnd, RecoveryOvertaken},
		"canceled by us: retry":                                                    {at(RecoveryCancel), runningReading(ended("canceled", soon)), soon, RecoveryRetry, ""},
		"canceling by us: force":                                                   {at(RecoveryCancel), runningReading(status("canceling")), soon, RecoveryForce, ""},
		"canceling, force refused: it can be retried as it is":                     {at(RecoveryForce, func(r *Recovery) { r.NoForce = true }), runningReading(status("canceling")), soon, RecoveryRetry, ""},
		"forced: retry":                                                            {at(RecoveryForce), runningReading(ended("canceled", soon)), soon, RecoveryRetry, ""},
		"it ended well just before the cancel":                                     {at(RecoveryCancel), runningReading(ended("success", soon)), soon, RecoveryEnd, RecoveryOvertaken},
		"it was failed by its timeout just before the cancel":                      {at(RecoveryCancel), runningReading(ended("failed", soon)), soon, RecoveryEnd, RecoveryOvertaken},
		"somebody canceled it long before our cancel, a replica lagged":            {at(RecoveryCancel), runningReading(ended("canceled", recoverNow.Add(-5*time.Second))), soon, RecoveryEnd, RecoveryOvertaken},
		"somebody canceled its pipeline":                                           {at(RecoveryCancel), runningReading(ended("canceled", soon), func(g *JobReading) { g.Canceled = []int64{4} }), soon, RecoveryEnd, RecoveryOvertaken},
		"somebody has retried it after our cancel":                                 {at(RecoveryCancel), runningReading(ended("canceled", soon), func(g *JobReading) { g.Newer = 10 }), soon, RecoveryEnd, RecoveryOvertaken},
		"it runs still: the cancel did not arrive":                                 {at(RecoveryCancel, crashed), runningReading(), soon.Add(time.Minute), RecoveryCancel, ""},
		"it runs still: the cancel may be under way, or a replica lags":            {at(RecoveryCancel), runningReading(), soon, RecoveryFound, ""},
		"it runs still, after three":                                               {at(RecoveryCancel, func(r *Recovery) { r.Tries = 3 }), runningReading(), soon.Add(time.Minute), RecoveryEnd, RecoveryRefused},
		"no right to cancel":                                                       {at(RecoveryCancel, crashed, func(r *Recovery) { r.Refused = true }), runningReading(), soon, RecoveryEnd, RecoveryRefused},
		"no right to cancel, and somebody has":                                     {at(RecoveryCancel, crashed, func(r *Recovery) { r.Refused = true }), runningReading(ended("canceled", soon)), soon, RecoveryEnd, RecoveryRefused},
		"crashed after the cancel, which had its effect":                           {at(RecoveryCancel, crashed), runningReading(ended("canceled", soon)), soon.Add(time.Hour), RecoveryRetry, ""},
		"crashed before the cancel, and somebody canceled it in the outage":        {at(RecoveryCancel, crashed), runningReading(ended("canceled", recoverNow.Add(10*time.Minute))), soon.Add(time.Hour), RecoveryEnd, RecoveryOvertaken},
		"crashed about the cancel, and it is canceling: by whom is not told":       {at(RecoveryCancel, crashed), runningReading(status("canceling")), soon.Add(time.Hour), RecoveryEnd, RecoveryReported},
		"retried": {at(RecoveryRetry, func(r *Recovery) { r.As = 10 }), runningReading(ended("canceled", soon)), soon, RecoveryEnd, RecoveryRecovered},
		"crashed after the retry, which had its effect":               {at(RecoveryRetry), runningReading(ended("canceled", soon), func(g *JobReading) { g.Newer = 10 }), soon.Add(time.Hour), RecoveryEnd, RecoveryRecovered},
		"the retry may be under way":                                  {at(RecoveryRetry), runningReading(ended("canceled", soon)), soon, RecoveryFound, ""},
		"the retry never arrived":                                     {at(RecoveryRetry), runningReading(ended("canceled", soon)), soon.Add(time.Minute), RecoveryRetry, ""},
		"two retries never arrived":                                   {at(RecoveryRetry, func(r *Recovery) { r.Tries = 2 }), runningReading(ended("canceled", soon)), soon.Add(time.Minute), RecoveryEnd, RecoveryRefused},
		"no right to retry":                                           {at(RecoveryRetry, func(r *Recovery) { r.Refused = true }), runningReading(ended("canceled", soon)), soon, RecoveryEnd, RecoveryRefused},
		"refused, because somebody has retried it":                    {at(RecoveryRetry, func(r *Recovery) { r.Refused = true }), runningReading(ended("canceled", soon), func(g *JobReading) { g.Newer = 10 }), soon, RecoveryEnd, RecoveryRecovered},
		"a cut job that only a Maintainer can end":                    {at(RecoveryForce, func(r *Recovery) { r.Cut, r.Again, r.NoForce = true, false, true }), runningReading(status("canceling")), soon, RecoveryEnd, RecoveryRefused},
		"the retry never arrived, and somebody canceled the pipeline": {at(RecoveryRetry), runningReading(ended("canceled", soon), func(g *JobReading) { g.Canceled = []int64{4} }), soon.Add(time.Minute), RecoveryEnd, RecoveryOvertaken},
		"a cut job is ended, and not run again":                       {at(RecoveryCancel, func(r *Recovery) { r.Cut, r.Again = true, false }), runningReading(ended("canceled", soon)), soon, RecoveryEnd, RecoveryCanceled},
		"a cut job is run again, if that is wanted":                   {at(RecoveryCancel, func(r *Recovery) { r.Cut = true }), runningReading(ended("canceled", soon)), soon, RecoveryRetry, ""},
		"after the force a replica lags":                              {at(RecoveryForce), runningReading(), soon, RecoveryFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.r.Next(c.g, c.now)
			if got.Step != c.step || got.Result != c.result {
				t.Errorf("%+v, want %q %q", got, c.step, c.result)
			}
		})
	}
}

// Whatever a reading says, a retry follows only a canceled or canceling job
// that was running at the reading before, and that nobody has retried.
func TestNoReadingLeadsToARetryOfAJobThatMayHaveRun(t *testing.T) {
	states := []string{"created", "pending", "running", "canceling", "canceled", "success", "failed", "skipped", "manual", ""}
	for _, step := range []RecoveryStep{RecoveryFound, RecoveryCancel, RecoveryForce, RecoveryRetry} {
		for _, s := range states {
			for _, newer := range []int64{0, 10} {
				for _, answered := range []bool{false, true} {
					r := at(step, func(r *Recovery) { r.Answered, r.NoForce = answered, true })
					got := r.Next(runningReading(ended(s, recoverNow), func(g *JobReading) { g.Newer = newer }), recoverNow.Add(time.Hour))
					if got.Step == RecoveryRetry && (newer != 0 || step == RecoveryFound || s != "canceled" && s != "canceling") {
						t.Errorf("%q, %s, newer %d: retry", step, s, newer)
					}
				}
			}
		}
	}
}

// design.md section 6: what may be acted on, and what a person is told of.
func TestASuspectIsActedOnOnlyWithoutADoubt(t *testing.T) {
	sure := Suspect{
		Job: Job{ID: 9, StartedAt: began}, TraceEmpty: true, Runner: RunnerGone, CleanExit: true,
		StopAt: recoverNow.Add(-14 * time.Second), ExitAt: recoverNow.Add(-10 * time.Second),
	}
	if sure.Is() != SuspectOrphan || sure.Doubt() != "" {
		t.Fatalf("%d, %q", sure.Is(), sure.Doubt())
	}
	for name, c := range map[string]struct {
		change func(*Suspect)
		is     SuspectIs
		doubt  bool
	}{
		"a container of it was seen":                {func(s *Suspect) { s.ContainerSeen = true }, SuspectCut, false},
		"it has a trace, and its runner is gone":    {func(s *Suspect) { s.TraceEmpty, s.CleanExit = false, false }, SuspectCut, false},
		"it has a trace, and its runner ended well": {func(s *Suspect) { s.TraceEmpty = false }, SuspectCut, true},
		"it has a trace, and its runner goes on":    {func(s *Suspect) { s.TraceEmpty, s.Runner = false, RunnerStays }, SuspectGoesOn, false},
		"it has a trace, and its operation goes on": {func(s *Suspect) { s.TraceEmpty, s.Runner = false, RunnerInWork }, SuspectUndecided, false},
		"the runner did not end by itself":          {func(s *Suspect) { s.CleanExit = false }, SuspectOrphan, true},
		"intake is open again":                      {func(s *Suspect) { s.Reopened = true }, SuspectOrphan, true},
		"GitLab was away between stop and exit":     {func(s *Suspect) { s.Unsure = true }, SuspectOrphan, true},
		"the same of a cut job":                     {func(s *Suspect) { s.Unsure, s.TraceEmpty = true, false }, SuspectCut, true},
		"the 17-minute outage":                      {func(s *Suspect) { s.ExitAt = began.Add(17 * time.Minute) }, SuspectOrphan, true},
		"assigned long before the stop":             {func(s *Suspect) { s.StopAt = began.Add(30 * time.Second) }, SuspectOrphan, true},
		"assigned long after the exit":              {func(s *Suspect) { s.ExitAt = began.Add(-12 * time.Second) }, SuspectOrphan, true},
		"recorded as cut":                           {func(s *Suspect) { s.Recorded = true }, SuspectCut, false},
	} {
		s := sure
		c.change(&s)
		if s.Is() != c.is || (s.Doubt() != "") != c.doubt {
			t.Errorf("%s: %d, %q", name, s.Is(), s.Doubt())
		}
	}
}
