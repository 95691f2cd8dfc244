package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The orphan watch's moments and windows (design.md section 6).
var (
	watchLooks  = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 3 * time.Minute}
	watchEvery  = 2 * time.Minute  // after the last of them, while it is not clean
	watchLonger = 75 * time.Minute // a stuck job is failed by GitLab after an hour
)

const (
	windowBefore = time.Minute      // before the intake stop, by GitLab's clock
	windowAfter  = 30 * time.Second // after the exit
	firstTrace   = 10 * time.Second // by then a job that reached a runner has a trace
	cleanAge     = time.Minute      // readings count as clean from here on
	cleanWanted  = 2
)

// watchState is an orphan watch's own.
type watchState struct {
	Subject   fleet.Subject `json:"subject"`
	StopAt    time.Time     `json:"stop_at"`            // our clock, when intake was stopped
	StopSeen  time.Time     `json:"stop_seen,omitzero"` // our clock, when the first stop was answered
	ExitAt    time.Time     `json:"exit_at"`            // our clock, when the process was gone
	Looks     int           `json:"looks"`
	Clean     int           `json:"clean"`
	JobsSeen  []int64       `json:"jobs_seen,omitempty"`  // had a container: cut, not orphaned
	Known     []int64       `json:"known,omitempty"`      // reported already
	OpenedAt  time.Time     `json:"opened_at,omitzero"`   // our clock, when intake was first ordered open after the stop
	NoExit    bool          `json:"no_exit,omitempty"`    // nobody has seen the process gone
	Unsure    bool          `json:"unsure,omitempty"`     // GitLab was unknown between stop and exit
	Said      string        `json:"said,omitempty"`       // what GitLab said at the last look
	Told      int           `json:"told,omitempty"`       // how often that was news
	EndedWell bool          `json:"ended_well,omitempty"` // the process ended by itself, and well
	Reopened  bool          `json:"reopened,omitempty"`   // it was found running again after the stop
	Order     int64         `json:"order,omitempty"`      // the last that the host was given: a later one found it running again
	Recorded  []int64       `json:"recorded,omitempty"`   // as cut, by the operation
	Stray     bool          `json:"stray,omitempty"`      // of a second VM: neither the VM's row nor its operation is about it

	Recoveries []fleet.Recovery `json:"recoveries,omitempty"`

	soon bool // this look could not tell of a suspect whether to act
}

// watchOrphans adds the watch to a drain that has ended. A VM that no runner
// ran on, or whose runner is unknown to GitLab, has none.
func (w *work) watchOrphans() {
	d := &w.op.Drain
	answered := first(d.StoppedAt, d.InheritedStop)
	stop := answered
	if w.op.Order.Verb != "" { // given, and its answer lost, or not written: it may have taken effect
		stop = first(stop, d.OrderedAt)
	}
	if w.f.GitLab == nil || w.op.Old.SystemID == "" || stop.IsZero() {
		return
	}
	state := watchState{
		Subject: w.op.OldSubject(), StopAt: first(w.op.Drain.OrderedAt, stop),
		StopSeen: answered,
		ExitAt:   first(first(w.op.Drain.ExitSeenAt, w.op.Restore.OpenAt), w.now()), JobsSeen: w.op.Drain.JobsSeen, Unsure: w.op.Drain.GitLabUnsure,
		Said: w.said(fleet.SourceGitLab),
	}
	state.OpenedAt = w.op.Restore.StartedAt
	state.NoExit = d.ExitSeenAt.IsZero() && (answered.IsZero() || w.op.Restore.OpenAt.IsZero())
	state.EndedWell, state.Reopened = w.endedWell(), d.Reopened
	w.watch(state)
}

// watchCut adds the watch over a VM that was deleted with its intake open: under
// a waiver, and no stop could be given. Its last jobs were cut with it.
func (w *work) watchCut() {
	d := &w.op.Drain
	if d.Watches > 0 && !d.StoppedAt.IsZero() || !d.Verdict.Waived() || w.f.GitLab == nil || w.op.Old.SystemID == "" {
		return
	}
	w.watch(watchState{
		Subject: w.op.OldSubject(), StopAt: d.VerdictAt, ExitAt: w.now(), JobsSeen: d.JobsSeen, Unsure: d.GitLabUnsure,
		Said: w.said(fleet.SourceGitLab),
	})
}

func (w *work) watch(state watchState) {
	state.Order, state.Stray = w.op.Order.Number, w.stray
	for _, job := range w.op.CutJobs {
		state.Known, state.Recorded = append(state.Known, job.ID), append(state.Recorded, job.ID)
	}
	suffix := "" // a drain that had to start again has a watch of its own
	if w.op.Drain.Watches++; w.op.Drain.Watches > 1 {
		suffix = strconv.Itoa(w.op.Drain.Watches)
	}
	c, err := newChore(w.op, fleet.ChoreOrphanWatch, suffix, state.ExitAt.Add(watchLooks[0]), state)
	if err != nil {
		w.fact(fleet.FactWarning, "no orphan watch: %s", text(err))
		return
	}
	w.chores = append(w.chores, c)
}

// endedWell says whether the runner's process was proven to have ended by
// itself and left nothing behind: every result of a job that it received was
// delivered.
func (w *work) endedWell() bool {
	d := &w.op.Drain
	return d.Verdict == fleet.VerdictDrained && d.Proof != nil && d.Proof.Unit.Result == "success" && len(d.Proof.Containers) == 0 && d.EndedAt.IsZero()
}

// watchOrphans looks for jobs that GitLab assigned to the VM in the instant of
// the stop and that it never received. It reports them with their links; a job
// outside the window is somebody else's, or a later life's, and left alone.
func watchOrphans(ctx context.Context, r *errand) error {
	var s watchState
	if err := r.load(&s); err != nil {
		return err
	}
	if r.f.GitLab == nil {
		return r.end("GitLab cannot be asked any more: no token is configured")
	}
	vm, err := r.Store.VM(ctx, r.c.Ref())
	if err != nil {
		return err
	}
	reading := r.readWatched(ctx, s.Subject)
	r.saw(&s, reading)
	s.opened(vm.OpenedAt)
	op, err := r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return err
	}
	suspects := s.suspects(reading, s.goneBy(op))
	if err := r.judgeSuspects(ctx, &s, op, vm, reading, suspects); err != nil {
		return err
	}
	if err := r.recoverAll(ctx, &s, vm, reading); err != nil {
		return err
	}
	suspects = s.unsettled(suspects)
	age := r.now().Sub(s.ExitAt)
	switch {
	case !usable(reading) || len(suspects) > 0:
		s.Clean = 0
	case age >= cleanAge && (s.Stray || absent(op) || op.Phase.Finished()): // until then somebody may start a runner again
		s.Clean++
	}
	s.Looks++
	open := s.recovering()
	if s.Clean >= cleanWanted && !open {
		return r.end("clean: %d found", len(s.Known))
	}
	if age > watchLonger && !open {
		return r.end("ended without two clean readings after %s: %d found", watchLonger, len(s.Known))
	}
	return r.keep(&s, s.next(r.now(), reading, suspects))
}

// judgeSuspects finds out what each suspect is, and reports it or begins its
// recovery.
func (r *errand) judgeSuspects(ctx context.Context, s *watchState, op *fleet.Operation, vm *fleet.VM, g *fleet.GitLabReading, suspects []fleet.Job) error {
	s.recorded(op)
	fate, err := r.fate(ctx, s, op, vm)
	if err != nil {
		return err
	}
	for _, job := range suspects {
		if s.young(g, job) {
			continue // a later look tells
		}
		runner, another := fate, false
		if !s.NoExit && !s.later(g, job) {
			runner = fleet.RunnerGone // whatever the VM does, the runner that had it is gone
		}
		if end := s.end(op); !end.IsZero() && job.StartedAt.After(end.Add(serverOffset(g)+fleet.RequestOutlives)) {
			another = true // under the same system_id
			switch gone := s.goneBy(op); {
			case !job.StartedAt.After(gone.Add(serverOffset(g))):
				runner = fleet.RunnerGone // somebody had started one again, and its VM is gone
			case fate != fleet.RunnerInWork:
				runner = fleet.RunnerStays
			}
		}
		if began := op.Create.Began; runner == fleet.RunnerInWork && !s.Stray && absent(op) && !began.IsZero() && job.StartedAt.Before(began.Add(serverOffset(g))) {
			runner = fleet.RunnerGone // the next one was not even asked for
		}
		err := r.judge(ctx, s, op, vm, fleet.Suspect{
			Job: job, Runner: runner, ContainerSeen: slices.Contains(s.JobsSeen, job.ID), Recorded: slices.Contains(s.Recorded, job.ID),
			Another: another, Exited: !s.NoExit, CleanExit: s.EndedWell, StopAt: s.StopAt.Add(serverOffset(g)), ExitAt: s.ExitAt.Add(serverOffset(g)), Unsure: s.Unsure,
			Reopened: s.reopened(op, vm, g, job),
		})
		if err != nil && (!fleet.Retryable(fleet.CodeOf(err)) || r.now().Sub(s.ExitAt) > watchLonger) {
			s.Known = append(s.Known, job.ID)
			r.fact(fleet.FactWarning, "%s is still shown running though its runner on %s has ended; whether it reached the runner is not known: %s", job, r.c.Ref(), text(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// saw tells what GitLab says, if that is news.
func (r *errand) saw(s *watchState, g *fleet.GitLabReading) {
	words := g.Words()
	if old(s.Said, words) {
		return
	}
	s.Said = words
	if s.Told++; s.Told > mostReadings {
		return
	}
	r.facts = append(r.facts, fleet.Fact{
		At: g.TakenAt, Operation: r.c.Operation, Fleet: r.c.Fleet, VM: r.c.VM,
		Kind: fleet.FactReading, Text: words, Data: about(telling{Source: fleet.SourceGitLab}),
	})
}

// usable says whether a reading without suspects means anything. A manager
// that is gone has no executing jobs of its own.
func usable(g *fleet.GitLabReading) bool { return g != nil && g.Unknown == "" }

// next is when to look again: sooner for a job that was too young to be judged,
// and for a recovery that GitLab keeps waiting.
func (s *watchState) next(now time.Time, g *fleet.GitLabReading, suspects []fleet.Job) time.Time {
	at := s.scheduled(now)
	if s.soon {
		at = earlier(at, now.Add(min(max(now.Sub(s.ExitAt)/12, undecidedEvery), watchEvery)))
	}
	if s.recovering() {
		at = earlier(at, now.Add(recoverEvery))
	}
	for _, job := range suspects {
		if s.young(g, job) {
			at = earlier(at, job.StartedAt.Add(firstTrace-serverOffset(g)))
		}
	}
	if floor := now.Add(time.Second); at.Before(floor) {
		return floor
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (s *watchState) scheduled(now time.Time) time.Time {
	if s.Looks < len(watchLooks) {
		if at := s.ExitAt.Add(watchLooks[s.Looks]); at.After(now) {
			return at
		}
		return now.Add(time.Second)
	}
	return now.Add(watchEvery)
}

// suspects are the executing jobs of this system_id that began between a
// minute before the intake stop and half a minute after the exit, or the end of
// the VM, by GitLab's own clock: ours is converted by the distance seen in the reading. Where
// intake was opened again, the window ends there.
func (s *watchState) suspects(g *fleet.GitLabReading, gone time.Time) []fleet.Job {
	offset := serverOffset(g)
	end := later(s.ExitAt.Add(windowAfter), gone)
	if !s.OpenedAt.IsZero() && s.OpenedAt.Before(end) {
		end = s.OpenedAt
	}
	from, to := s.StopAt.Add(offset-windowBefore), end.Add(offset)
	var found []fleet.Job
	for _, job := range g.Executing() {
		if !job.StartedAt.Before(from) && !job.StartedAt.After(to) {
			found = append(found, job)
		}
	}
	return found
}

// opened keeps the first moment at which intake was opened again. The VM's row
// has the last: another operation may have stopped and opened it since.
func (s *watchState) opened(at time.Time) {
	if at.After(first(s.StopSeen, s.StopAt)) && (s.OpenedAt.IsZero() || at.Before(s.OpenedAt)) {
		s.OpenedAt = at
	}
}

// serverOffset is GitLab's clock minus ours, as far as a reading shows it.
func serverOffset(g *fleet.GitLabReading) time.Duration {
	if g == nil || g.ServerTime.IsZero() {
		return 0
	}
	return g.ServerTime.Sub(g.TakenAt)
}

// young says whether a job began just before the reading: an empty trace says
// nothing about it yet.
func (s *watchState) young(g *fleet.GitLabReading, job fleet.Job) bool {
	return g.TakenAt.Add(serverOffset(g)).Sub(job.StartedAt) < firstTrace
}

// advice says what to do about an orphan. A job that ran while GitLab was out
// of reach has an empty trace too, and would run twice (design.md section 6).
func (s *watchState) advice() string {
	if s.Unsure {
		return "probably never reached it, but GitLab was out of reach at the time: see whether it did anything before you cancel and retry it"
	}
	return "never reached it: GitLab shows it running until its timeout; cancel and retry it"
}

// judge says once what became of a job, and has it recovered where that may be
// done. Of one that may run still, a later look tells.
func (r *errand) judge(ctx context.Context, s *watchState, op *fleet.Operation, vm *fleet.VM, one fleet.Suspect) error {
	if s.recovery(one.Job.ID) != nil || slices.Contains(s.Known, one.Job.ID) && !one.Recorded {
		return nil
	}
	var err error
	if one.TraceEmpty, err = r.f.GitLab.TraceEmpty(ctx, one.Job); err != nil {
		return err
	}
	is := one.Is()
	if is == fleet.SuspectUndecided {
		s.soon = true
		return nil
	}
	if is != fleet.SuspectGoesOn {
		switch r.left(ctx, s, op, vm, &one) {
		case notYet:
			s.soon = true
			return nil
		case "":
			r.take(s, one)
			return nil
		}
	}
	if slices.Contains(s.Known, one.Job.ID) {
		return nil // recorded, and told then
	}
	s.Known = append(s.Known, one.Job.ID)
	told, err := r.toldBeside(ctx, one.Job.ID)
	if !told && err == nil {
		r.report(s, one)
	}
	return err
}

// toldBeside says whether another watch of the operation has told of a job: the
// windows of two stops overlap.
func (r *errand) toldBeside(ctx context.Context, job int64) (bool, error) {
	chores, err := r.Store.UnfinishedChores(ctx)
	return slices.ContainsFunc(chores, func(c fleet.Chore) bool {
		var other watchState
		return c.Kind == fleet.ChoreOrphanWatch && c.Operation == r.c.Operation && c.ID != r.c.ID &&
			json.Unmarshal(c.State, &other) == nil && slices.Contains(other.Known, job)
	}), err
}

// report tells of a job that is left to a person.
func (r *errand) report(s *watchState, one fleet.Suspect) {
	switch one.Is() {
	case fleet.SuspectOrphan:
		r.orphaned(fleet.RecoveryReported)
		r.fact(fleet.FactOrphan, "%s was assigned to %s in the instant of the stop and %s", one.Job, r.c.Ref(), s.advice())
	case fleet.SuspectGoesOn:
		r.fact(fleet.FactNote, "%s goes on on %s, whose runner was started again or never seen to end", one.Job, r.c.Ref())
	default:
		r.cutJob()
		r.fact(fleet.FactCut, "%s is still shown running though its runner on %s has ended: it was cut", one.Job, r.c.Ref())
	}
}
