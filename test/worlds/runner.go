package worlds

import (
	"slices"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The runner process and its unit, as facts/runner-host.md measured them.

// job is one CI job and what really became of it.
type job struct {
	id       int64
	length   time.Duration
	on       *machine
	assigned time.Duration // GitLab's commit; the job shows running from here on
	received bool          // its runner has it
	ends     time.Duration // when its script ends by itself
	traced   bool          // something of it has reached GitLab
	shownEnd time.Duration // GitLab shows it ended from here on; 0 = not
	cutBy    string        // who ended it before its time; "" = nobody
	cutAt    time.Duration
	orphanBy string // whose stop cut its way to the runner; "" = none
	gaveUp   bool   // ran to its end, but GitLab was away for too long
	stopped  *event
	after    afterlifeOf
}

// shown says whether GitLab shows the job executing at a moment.
func (j *job) shown(at time.Duration) bool {
	return j.on != nil && j.assigned <= at && (j.shownEnd == 0 || j.shownEnd > at)
}

// jobTimeout is when GitLab itself fails a job that nobody finishes.
const jobTimeout = time.Hour

// processUp lets a fresh runner process run.
func (w *World) processUp(m *machine, by string) {
	m.pids++
	m.unit = fleet.UnitState{ActiveState: "active", SubState: "running", Result: "success", MainPID: 1000 + m.pids, Restart: "always"}
	m.quit, m.startQueued, m.pidSince, m.startedBy = false, false, w.now, by
	pid := m.unit.MainPID
	w.say("%s   runner starts (%s)", m, by)
	w.after(300*time.Millisecond, func() {
		if m.unit.MainPID == pid {
			w.contact(m)
			w.takeWork(m)
		}
	})
}

// processGone ends the process. What it ran, its caller has dealt with.
func (w *World) processGone(m *machine, state, result string) {
	w.contact(m)
	m.unit.ActiveState, m.unit.SubState, m.unit.Result, m.unit.MainPID = state, "dead", result, 0
	m.quit, m.goneAt = false, w.now
	w.say("%s   runner process is gone (%s, %s)", m, state, result)
	waiting := m.waiters
	m.waiters = nil
	for _, p := range waiting {
		p.rouse(2 * time.Millisecond)
	}
	switch {
	case m.startQueued:
		w.after(10*time.Millisecond, func() {
			if m.startQueued && m.unit.MainPID == 0 && m.guest() {
				w.processUp(m, m.queuedBy)
			}
		})
	case state == "activating":
		w.after(5*time.Second, func() {
			if m.unit.ActiveState == "activating" && m.guest() {
				w.processUp(m, "restart")
			}
		})
	}
}

// asks says whether the runner asks for jobs.
func (m *machine) asks(w *World) bool {
	return m.guest() && m.unit.MainPID != 0 && !m.quit && m.unit.ActiveState == "active" &&
		w.now >= m.pidSince+300*time.Millisecond && w.now >= m.hungUntil && len(m.jobs)+len(m.coming) < m.concurrent
}

// offer gives pending jobs to runners that ask.
func (w *World) offer() {
	for _, m := range w.machines {
		w.takeWork(m)
	}
}

func (w *World) takeWork(m *machine) {
	for len(w.pending) > 0 && w.gitlab.answers(w) && m.asks(w) {
		j := w.pending[0]
		w.pending = w.pending[1:]
		w.assign(j, m, w.plan.GitLab.Answer)
	}
}

// assign is GitLab's commit. The answer is on its way from here on.
func (w *World) assign(j *job, m *machine, answer time.Duration) {
	j.on, j.assigned = m, w.now
	m.coming = append(m.coming, j)
	w.contact(m)
	w.say("gitlab   job %d is assigned to %s", j.id, m)
	pid := m.unit.MainPID
	w.after(answer, func() {
		if m.unit.MainPID == pid && !m.quit && slices.Contains(m.coming, j) {
			m.coming = without(m.coming, j)
			w.receive(j, m)
		}
	})
	w.after(jobTimeout, func() {
		if j.shown(w.now) && j.on == m {
			j.shownEnd, j.after.as = w.now, "failed"
			w.say("gitlab   job %d is failed by its timeout", j.id)
		}
	})
}

func (w *World) receive(j *job, m *machine) {
	j.received, j.ends = true, w.now+j.length
	m.jobs = append(m.jobs, j)
	w.say("%s   job %d runs, for %s", m, j.id, j.length)
	w.after(min(3*time.Second, j.length), func() { j.traced = j.traced || j.cutBy == "" && w.gitlab.answers(w) })
	j.stopped = w.after(j.length, func() { w.scriptEnds(j, m, 1) })
}

// scriptEnds delivers the result: ten tries, one second doubling
// (facts/runner-host.md), then the runner gives up.
func (w *World) scriptEnds(j *job, m *machine, try int) {
	if w.now < m.hungUntil {
		j.ends = m.hungUntil
		j.stopped = w.after(m.hungUntil-w.now, func() { w.scriptEnds(j, m, try) })
		return
	}
	j.ends = min(j.ends, w.now)
	switch {
	case w.gitlab.answers(w):
		w.after(100*time.Millisecond, func() { w.resultIs(j, m, "") })
	case try > 10:
		j.gaveUp = true
		w.resultIs(j, m, "gave up")
	default:
		j.stopped = w.after(time.Second<<(try-1), func() { w.scriptEnds(j, m, try+1) })
	}
}

func (w *World) resultIs(j *job, m *machine, how string) {
	if j.cutBy != "" || !slices.Contains(m.jobs, j) {
		return
	}
	m.jobs = without(m.jobs, j)
	if how == "" {
		j.shownEnd, j.traced, j.after.as = w.now, true, "success"
	}
	w.say("%s   job %d ended by itself %s", m, j.id, how)
	w.contact(m)
	if !m.quit {
		w.takeWork(m)
		return
	}
	w.quitIfIdle(m)
}

func (w *World) quitIfIdle(m *machine) {
	if !m.quit || len(m.jobs) > 0 || m.unit.MainPID == 0 {
		return
	}
	pid := m.unit.MainPID
	w.after(20*time.Millisecond, func() {
		if m.unit.MainPID == pid && m.quit {
			w.processGone(m, "inactive", "success")
		}
	})
}

// sigquit lets the process end after its jobs. The open request is cut: a job
// that was assigned and has not arrived will never do.
func (w *World) sigquit(m *machine, by string) {
	if m.quit {
		return
	}
	m.quit = true
	m.unit.ActiveState, m.unit.SubState = "deactivating", "stop-sigterm"
	w.lose(m, by)
	if w.now < m.pidSince+50*time.Millisecond { // the handler is not installed yet
		w.after(time.Millisecond, func() {
			if m.quit && m.unit.MainPID != 0 {
				w.processGone(m, "failed", "exit-code")
			}
		})
		return
	}
	w.quitIfIdle(m)
}

// lose is what becomes of jobs on their way to a runner that stops listening.
func (w *World) lose(m *machine, by string) {
	for _, j := range m.coming {
		j.orphanBy = by
		w.say("gitlab   job %d was on its way to %s and is lost (%s)", j.id, m, by)
		if w.plan.GitLab.TwoPhase {
			w.after(time.Minute, func() {
				j.on, j.orphanBy = nil, ""
				w.pending = append(w.pending, j)
				w.offer()
			})
		}
	}
	m.coming = nil
}

// endJobs ends what runs. told = GitLab is told at once (SIGTERM); else it shows
// the jobs running until their timeout.
func (w *World) endJobs(m *machine, by string, told bool) {
	for _, j := range m.jobs {
		j.cutBy, j.cutAt = by, w.now
		w.say("%s   job %d IS CUT by %s", m, j.id, by)
		if told && w.gitlab.answers(w) {
			j.shownEnd, j.after.as = w.now+400*time.Millisecond, "failed"
		}
	}
	m.jobs = nil
	w.lose(m, by)
}

func without[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return x == gone })
}
