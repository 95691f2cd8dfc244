package worlds

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// gitlabState is the one GitLab of a world.
type gitlabState struct {
	managers map[string]*manager // by system_id, and by entry where each machine has its own
	order    []*manager          // as they were made
	made     int64
	removed  []string // system_ids whose manager was removed by us
	entries  []*entry // of the machines' own, as they were made

	downUntil, limitedUntil, staleUntil, shortUntil, oldUntil time.Duration
	lag                                                       time.Duration

	losePosts int           // answers to cancels and retries to lose
	latePost  time.Duration // how late the next of them has its effect
}

// manager is GitLab's record of one VM under the runner.
type manager struct {
	id               int64
	entry            int64 // 0 = the fleet's one
	systemID         string
	created, contact time.Duration
	gone             bool
	hiddenUntil      time.Duration
}

func (g *gitlabState) answers(w *World) bool { return w.now >= g.downUntil }

// contact notes that a machine's runner spoke with GitLab.
func (w *World) contact(m *machine) {
	if m.systemID == "" || !w.gitlab.answers(w) || m.entry != nil && m.entry.gone != 0 {
		return
	}
	g := &w.gitlab
	r := g.managers[m.key()]
	if r == nil || r.gone {
		g.made++
		r = &manager{id: g.made, entry: m.entryID(), systemID: m.systemID, created: w.now}
		g.managers[m.key()] = r
		g.order = append(g.order, r)
	}
	r.contact = w.now
}

// gitlabPort is what the engine sees of it, through the fleet's runner entry or
// through a machine's own.
type gitlabPort struct {
	w     *World
	entry int64
}

// serverTime is GitLab's clock.
func (g gitlabPort) serverTime(at time.Duration) time.Time {
	return start.Add(at + g.w.plan.GitLab.Skew)
}

// ask takes a request to GitLab and says why it gets no answer.
func (g gitlabPort) ask(ctx context.Context, call string) error {
	w := g.w
	w.point(call+":request", -1)
	if err := w.wait(ctx, w.between(-1, 10*time.Millisecond, 150*time.Millisecond)); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "GitLab did not answer: %w", err)
	}
	switch {
	case w.now < w.gitlab.downUntil:
		return fleet.Errorf(fleet.CodeUnavailable, "500 Internal Server Error")
	case w.now < w.gitlab.limitedUntil:
		return fleet.Errorf(fleet.CodeRateLimited, "429 Too Many Requests")
	}
	return nil
}

func (g gitlabPort) reply(ctx context.Context, call string) error {
	w := g.w
	if err := w.wait(ctx, w.between(-1, 10*time.Millisecond, 100*time.Millisecond)); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "GitLab did not answer in time: %w", err)
	}
	w.point(call+":answer", -1)
	return nil
}

// asOf is the moment that this GitLab's answers speak of: a replica lags.
func (g gitlabPort) asOf() time.Duration {
	if g.w.now < g.w.gitlab.staleUntil {
		return g.w.now - g.w.gitlab.lag
	}
	return g.w.now
}

// polled keeps the contacts of running runners fresh without an event for each.
func (g gitlabPort) polled() {
	for _, m := range g.w.machines {
		if m.guest() && m.unit.MainPID != 0 && g.w.now >= m.pidSince+300*time.Millisecond && g.w.now >= m.hungUntil {
			g.w.contact(m)
		}
	}
}

func (g gitlabPort) list(at time.Duration) []fleet.Manager {
	g.polled()
	var list []fleet.Manager
	for _, r := range g.w.gitlab.order {
		if r.gone || r.entry != g.entry || r.created > at || g.w.now < r.hiddenUntil {
			continue
		}
		m := fleet.Manager{
			ID: r.id, SystemID: r.systemID, Status: "online", Execution: fleet.ExecutionIdle,
			CreatedAt: g.serverTime(r.created), ContactedAt: g.serverTime(min(r.contact, at)),
		}
		if at-r.contact > 2*time.Hour {
			m.Status = "offline"
		}
		if len(g.executing(r.systemID, at)) > 0 {
			m.Execution = fleet.ExecutionActive
		}
		if g.w.plan.GitLab.NoExecution || g.w.now < g.w.gitlab.oldUntil {
			m.Execution = fleet.ExecutionUnknown
		}
		list = append(list, m)
	}
	return list
}

func (g gitlabPort) executing(systemID string, at time.Duration) []fleet.Job {
	var list []fleet.Job
	for _, j := range g.w.jobs {
		if j.on == nil || j.on.systemID != systemID || j.on.entryID() != g.entry || !j.shown(at) || !g.linked(j) {
			continue
		}
		if g.w.plan.GitLab.TwoPhase && !j.received {
			continue // still pending, as GitLab shows it
		}
		list = append(list, fleet.Job{ID: j.id, Status: j.status(at), StartedAt: g.serverTime(j.assigned)})
	}
	return list
}

// linked says whether GitLab links a job to a manager still: who removes the
// manager takes its jobs off the lists (facts/gitlab.md 1.5).
func (g gitlabPort) linked(j *job) bool {
	r := g.w.gitlab.managers[j.on.key()]
	return r != nil && !r.gone && r.created <= j.assigned
}

// Read implements engine.GitLab.
func (g gitlabPort) Read(ctx context.Context, about fleet.Subject, _ time.Time) *fleet.GitLabReading {
	w := g.w
	sent := w.now
	r := &fleet.GitLabReading{Subject: about, TakenAt: start.Add(sent)}
	if err := g.ask(ctx, "read"); err != nil {
		r.Unknown = err.Error()
		return r
	}
	if err := g.there(); err != nil {
		r.Unknown = err.Error()
		return r
	}
	at := g.asOf()
	r.ServerTime = g.serverTime(w.now)
	for _, m := range g.list(at) {
		if m.SystemID == about.SystemID {
			r.Present, r.Manager = true, m
		}
	}
	for _, j := range g.executing(about.SystemID, at) {
		if j.Status == "canceling" {
			r.Canceling = append(r.Canceling, j)
		} else {
			r.Running = append(r.Running, j)
		}
	}
	short := w.now < w.gitlab.shortUntil
	if short {
		r.Running = r.Running[:len(r.Running)/2]
		r.Unknown = "the second page did not come"
	}
	if !r.Present && r.Unknown == "" {
		r.Unknown = "the manager is not listed"
	}
	if err := g.reply(ctx, "read"); err != nil {
		return &fleet.GitLabReading{Subject: about, TakenAt: r.TakenAt, Unknown: err.Error()}
	}
	usable := r.Present && !short && (r.Manager.Execution == fleet.ExecutionIdle || len(r.Running)+len(r.Canceling) > 0 || r.Manager.Execution == fleet.ExecutionActive)
	if usable {
		key := managerKey(g.entry, about.SystemID)
		w.ledger.usable[key] = max(w.ledger.usable[key], sent) // answers may overtake each other
	}
	return r
}

// Managers implements engine.GitLab.
func (g gitlabPort) Managers(ctx context.Context) ([]fleet.Manager, time.Time, error) {
	if err := g.ask(ctx, "managers"); err != nil {
		return nil, time.Time{}, err
	}
	if g.w.now < g.w.gitlab.shortUntil {
		return nil, time.Time{}, fleet.Errorf(fleet.CodeUnavailable, "the second page did not come")
	}
	if err := g.there(); err != nil {
		return nil, time.Time{}, err
	}
	list, at := g.list(g.asOf()), g.serverTime(g.w.now)
	return list, at, g.reply(ctx, "managers")
}

// Runner implements engine.GitLab.
func (g gitlabPort) Runner(ctx context.Context) (engine.RunnerInfo, error) {
	err := g.ask(ctx, "runner")
	if err == nil {
		err = g.there()
	}
	if err != nil || g.entry == 0 {
		return engine.RunnerInfo{ID: g.w.spec.RunnerID}, err
	}
	e := g.w.entry(g.entry)
	return engine.RunnerInfo{ID: e.id, Description: e.name, CreatedAt: g.serverTime(e.made)}, g.reply(ctx, "runner")
}

// TraceEmpty implements engine.GitLab.
func (g gitlabPort) TraceEmpty(ctx context.Context, about fleet.Job) (bool, error) {
	if err := g.ask(ctx, "trace"); err != nil {
		return false, err
	}
	empty := true
	for _, j := range g.w.jobs {
		empty = empty && (j.id != about.ID || !j.traced)
	}
	return empty, g.reply(ctx, "trace")
}

// registrarPort speaks with the runner token.
type registrarPort struct{ w *World }

// RemoveManager implements engine.Registrar.
func (r registrarPort) RemoveManager(ctx context.Context, systemID string) error {
	w, g := r.w, gitlabPort{w: r.w}
	if err := g.ask(ctx, "deregister"); err != nil {
		return err
	}
	w.judgeRemoval(systemID)
	if m := w.gitlab.managers[systemID]; m != nil {
		m.gone = true
		w.say("gitlab   the manager of %s is removed", systemID)
	}
	w.gitlab.removed = append(w.gitlab.removed, systemID)
	return g.reply(ctx, "deregister")
}

// TokenAlive implements engine.Registrar.
func (r registrarPort) TokenAlive(ctx context.Context) error {
	g := gitlabPort{w: r.w}
	if err := g.ask(ctx, "token"); err != nil {
		return err
	}
	if r.w.ledger.tokenDead != "" {
		return fleet.Errorf(fleet.CodeForbidden, "403 Forbidden")
	}
	return g.reply(ctx, "token")
}
