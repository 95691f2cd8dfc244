package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// recoverEvery is how soon a recovery that GitLab gave no word on is looked at
// again.
const recoverEvery = 2 * time.Second

// mostMoves bounds what one look does about one job: cancel, force, retry, and
// each once more.
const mostMoves = 8

// undecidedEvery is the same for a suspect of which it could not be told whether
// to act: its VM is on its way out.
const undecidedEvery = 5 * time.Second

// notYet is an answer of left: a later look tells.
const notYet = "not yet"

// hostPatience is how long a host that stays may be out of reach before what
// may be running on it is left to a person.
const hostPatience = 5 * time.Minute

// left says why a suspect is left to a person; "" = it may be acted on. A VM
// that stays is looked at once more: its runner must be down still. A cut job
// of one that is deleted waits until that is seen to be gone: it may run still.
func (r *errand) left(ctx context.Context, s *watchState, op *fleet.Operation, vm *fleet.VM, one *fleet.Suspect) string {
	switch {
	case r.f.Jobs == nil:
		return "there is no write token"
	case !r.f.Recovery.Orphans:
		return "recover_orphans is off"
	}
	if doubt := one.Doubt(); doubt != "" {
		return doubt
	}
	if s.Stray {
		if one.Runner != fleet.RunnerGone {
			return notYet // its own delete ends that
		}
		return ""
	}
	switch doomed := !op.Delete.IntentAt.IsZero(); {
	case doomed && one.Is() != fleet.SuspectOrphan && !absent(op):
		return notYet
	case doomed, vm.Missing, op.Phase.Finished() && replaced(vm, s.Subject.Instance):
		return ""
	}
	why, err := r.runsAgain(ctx, s, op, one)
	switch {
	case err == nil:
		return why
	case r.now().Sub(s.ExitAt) < hostPatience:
		return notYet
	default:
		return "its VM cannot be looked at"
	}
}

// absent says whether the operation has seen its old instance gone.
func absent(op *fleet.Operation) bool {
	switch op.Phase {
	case fleet.PhaseCreating, fleet.PhaseVerifying:
		return true
	case fleet.PhaseSucceeded:
		return op.Kind.Deletes()
	default:
		return op.Phase == fleet.PhaseFailed && !op.Create.Began.IsZero()
	}
}

// runsAgain looks at the host of a VM that stays.
func (r *errand) runsAgain(ctx context.Context, s *watchState, op *fleet.Operation, one *fleet.Suspect) (string, error) {
	reading, err := r.f.Hosts.Look(ctx, Target{Ref: r.c.Ref(), Instance: s.Subject.Instance, Address: op.OldAddr, HostKeys: op.OldKeys})
	switch {
	case err != nil:
		return "", err
	case !reading.Complete():
		return "", fleet.Errorf(fleet.CodeUnavailable, "%s: the host's answer is incomplete", r.c.Ref())
	case s.Subject.Check(reading.Subject) != nil || differ(s.Subject.BootID, reading.Subject.BootID),
		!reading.Unit.Stopped(), reading.Unit.Result != "success", !reading.DropIn.Effective:
		return "the runner was started again", nil
	case slices.ContainsFunc(reading.Containers, func(c fleet.Container) bool { return c.JobID == one.Job.ID }):
		return "a container of it is left on the VM", nil
	}
	return "", nil
}

// recovery finds the one of a job; nil = none was begun.
func (s *watchState) recovery(job int64) *fleet.Recovery {
	for i := range s.Recoveries {
		if s.Recoveries[i].Job.ID == job {
			return &s.Recoveries[i]
		}
	}
	return nil
}

// recovering says whether a recovery has not ended.
func (s *watchState) recovering() bool {
	return slices.ContainsFunc(s.Recoveries, func(rec fleet.Recovery) bool { return !rec.Ended() })
}

// unsettled leaves out the jobs that nothing more is to be done about, though
// GitLab may go on showing them as being canceled.
func (s *watchState) unsettled(jobs []fleet.Job) []fleet.Job {
	return slices.DeleteFunc(jobs, func(job fleet.Job) bool {
		rec := s.recovery(job.ID)
		return rec != nil && (rec.Result == fleet.RecoveryRecovered || rec.Result == fleet.RecoveryCanceled)
	})
}

// take begins a recovery. Its first step is committed before it is taken.
func (r *errand) take(s *watchState, one fleet.Suspect) {
	cut := one.Is() != fleet.SuspectOrphan
	rec := fleet.Recovery{
		Job: one.Job, SystemID: s.Subject.SystemID, Cut: cut, Again: !cut || r.f.Recovery.CutJobs, Since: r.now(),
	}
	if cut && !one.Recorded {
		r.cutJob()
		r.fact(fleet.FactCut, "%s is still shown running though its runner on %s has ended: it was cut", one.Job, r.c.Ref())
	} else if !cut {
		r.fact(fleet.FactNote, "%s was assigned to %s in the instant of the stop and never reached it: it is canceled, to be run again", one.Job, r.c.Ref())
	}
	if !slices.Contains(s.Known, one.Job.ID) {
		s.Known = append(s.Known, one.Job.ID)
	}
	s.Recoveries = append(s.Recoveries, rec)
}

// recoverAll goes on with what was begun, in this life or an earlier one.
// Errors: of the store only.
func (r *errand) recoverAll(ctx context.Context, s *watchState, vm *fleet.VM, g *fleet.GitLabReading) error {
	if !s.recovering() {
		return nil
	}
	op, err := r.Store.Operation(ctx, r.c.Operation)
	if err != nil {
		return err
	}
	for i := range s.Recoveries {
		rec := &s.Recoveries[i]
		switch {
		case rec.Ended():
			continue
		case rec.Step == fleet.RecoveryFound && s.reopened(op, vm, g, rec.Job):
			r.closes(rec, fleet.RecoveryMove{Step: fleet.RecoveryEnd, Result: fleet.RecoveryReported, Why: "intake was opened again since"})
			continue
		}
		if err := r.recoverJob(ctx, s, rec); err != nil {
			return err
		}
	}
	return nil
}

// withoutOurs leaves out of the canceled jobs of a pipeline those that Sluice
// itself has canceled: in this watch, or in another that has not ended.
func (r *errand) withoutOurs(ctx context.Context, s *watchState, canceled []int64) ([]int64, error) {
	if len(canceled) == 0 {
		return nil, nil
	}
	watches := []watchState{*s}
	chores, err := r.Store.UnfinishedChores(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range chores {
		var other watchState
		if c.Kind == fleet.ChoreOrphanWatch && c.ID != r.c.ID && json.Unmarshal(c.State, &other) == nil {
			watches = append(watches, other)
		}
	}
	return slices.DeleteFunc(slices.Clone(canceled), func(id int64) bool {
		return slices.ContainsFunc(watches, func(w watchState) bool {
			rec := w.recovery(id)
			return rec != nil && !rec.First.IsZero()
		})
	}), nil
}

// recoverJob reads, decides and acts until there is nothing to do now. Each
// step is committed before its call; after it the job is read again.
func (r *errand) recoverJob(ctx context.Context, s *watchState, rec *fleet.Recovery) error {
	if r.f.Jobs == nil {
		return r.keepWaiting(rec) // the token may come back into the configuration
	}
	for range mostMoves {
		reading, err := r.f.Jobs.Job(ctx, rec.Job)
		if code := fleet.CodeOf(err); rec.Step == fleet.RecoveryFound && (code == fleet.CodeForbidden || code == fleet.CodeNotFound) {
			r.closes(rec, fleet.RecoveryMove{Step: fleet.RecoveryEnd, Result: fleet.RecoveryReported, Why: text(err)})
			return nil
		}
		if err != nil {
			return r.keepWaiting(rec)
		}
		if reading.Canceled, err = r.withoutOurs(ctx, s, reading.Canceled); err != nil {
			return err
		}
		move := rec.Next(reading, r.now())
		switch move.Step {
		case fleet.RecoveryFound:
			return r.keepWaiting(rec)
		case fleet.RecoveryEnd:
			r.closes(rec, move)
			return nil
		default:
			rec.Begin(move, reading, r.now())
		}
		if err := r.saveNow(ctx, s); err != nil {
			return err
		}
		if err := r.send(ctx, rec); err != nil {
			return err
		}
		if err := r.saveNow(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// send gives the call of the committed step, and notes what came of it. Errors:
// the context has ended, so that nothing is known.
func (r *errand) send(ctx context.Context, rec *fleet.Recovery) (err error) {
	switch rec.Step {
	case fleet.RecoveryCancel:
		err = r.f.Jobs.Cancel(ctx, rec.Job, false)
	case fleet.RecoveryForce:
		err = r.f.Jobs.Cancel(ctx, rec.Job, true)
	default:
		var again int64
		if again, err = r.f.Jobs.Retry(ctx, rec.Job); err == nil && again != rec.Job.ID {
			rec.As = again
		}
	}
	rec.Answer(err)
	if err != nil {
		r.Log.WarnContext(ctx, "recovery", "op", r.c.Operation, "fleet", r.c.Fleet, "vm", r.c.VM, "job", rec.Job.ID, "step", rec.Step, "error", err)
		return ctx.Err()
	}
	return nil
}

// saveNow commits the watch's state. A crash after it looks again at once.
func (r *errand) saveNow(ctx context.Context, s *watchState) error {
	if err := r.keep(s, r.now()); err != nil {
		return err
	}
	return r.commit(ctx)
}

// keepWaiting looks again later, unless that was done for too long.
func (r *errand) keepWaiting(rec *fleet.Recovery) error {
	if move, overdue := rec.Overdue(r.now()); overdue {
		r.closes(rec, move)
	}
	return nil
}

// closes ends a recovery and tells of it.
func (r *errand) closes(rec *fleet.Recovery, move fleet.RecoveryMove) {
	rec.Close(move)
	if rec.Result == fleet.RecoveryRecovered {
		cut := rec.Cut
		r.count = append(r.count, func(o Observer) { o.JobsRetried(r.c.Fleet, cut, 1) })
	}
	if rec.Cut {
		r.fact(cutFact(rec.Result), "%s on %s: %s", rec.Job, r.c.Ref(), rec.Outcome())
		return
	}
	r.orphaned(rec.Result)
	r.fact(fleet.FactOrphan, "%s was assigned to %s in the instant of the stop and never reached it: %s", rec.Job, r.c.Ref(), rec.Outcome())
}

// cutFact is a note where a cut job, of which was told when it was found, is
// seen to; a warning where a person has to.
func cutFact(result fleet.RecoveryResult) string {
	switch result {
	case fleet.RecoveryReported, fleet.RecoveryRefused:
		return fleet.FactWarning
	default:
		return fleet.FactNote
	}
}

func (r *errand) orphaned(result fleet.RecoveryResult) {
	r.count = append(r.count, func(o Observer) { o.JobsOrphaned(r.c.Fleet, result, 1) })
}

func (r *errand) cutJob() {
	r.count = append(r.count, func(o Observer) { o.JobsCut(r.c.Fleet, 1) })
}
