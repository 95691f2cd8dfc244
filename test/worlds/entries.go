package worlds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The runner entries of a fleet with registration individual: each machine
// registers one of its own when it is made.

// entry is one of them.
type entry struct {
	id            int64
	name          string
	made, renamed time.Duration // renamed by a person; 0 = never
	gone          time.Duration // 0 = it is there
}

func (e *entry) String() string { return fmt.Sprintf("runner entry %d (%s)", e.id, e.name) }

// shown says whether GitLab shows it at a moment.
func (e *entry) shown(at time.Duration) bool {
	return e != nil && e.made <= at && (e.gone == 0 || e.gone > at)
}

// drawRegistration makes a fleet one of each kind. It has dice of its own, so
// that the rest of a seed's plan is what it was.
func drawRegistration(seed uint64, p *Plan) {
	d := drawing{rand.New(rand.NewPCG(seed, 0xe47))} //nolint:gosec // a story, no secret
	switch n := d.IntN(8); {
	case n < 2 && !p.Fleet.NoGitLab:
		p.Fleet.Registration = string(fleet.RegistrationIndividual)
		p.Fleet.NoRemoval = d.one(8)
		if d.one(2) {
			p.Acts = append(p.Acts, Act{Do: "rename entry", VM: d.IntN(len(p.VMs)), At: d.within(25 * time.Minute)})
		}
	case n == 2:
		p.Fleet.Registration = string(fleet.RegistrationNone)
	}
}

func (p FleetPlan) registration() fleet.Registration {
	if p.Registration == "" {
		return fleet.RegistrationFleet
	}
	return fleet.Registration(p.Registration)
}

// register is what a machine's create script does.
func (w *World) register(m *machine) {
	if !w.spec.Individual() {
		return
	}
	m.entry = &entry{id: int64(1000 + len(w.gitlab.entries)), name: fleetName + "/" + m.name, made: w.now}
	if len(w.machines) <= len(w.plan.VMs) && w.now == 0 {
		m.entry.made = -time.Hour // long before the story begins
	}
	w.gitlab.entries = append(w.gitlab.entries, m.entry)
}

// entryID is the entry that the host's config.toml names; 0 = a shared one.
func (m *machine) entryID() int64 {
	if m.entry == nil {
		return 0
	}
	return m.entry.id
}

// key is whose manager: a system_id is known under its own entry alone.
func (m *machine) key() string { return managerKey(m.entryID(), m.systemID) }

func managerKey(entry int64, systemID string) string {
	if entry == 0 {
		return systemID
	}
	return fmt.Sprintf("%s of %d", systemID, entry)
}

func (w *World) entry(id int64) *entry {
	for _, e := range w.gitlab.entries {
		if e.id == id {
			return e
		}
	}
	return nil
}

func renameEntry(w *World, m *machine, _ Act) {
	if m.entry != nil {
		m.entry.name, m.entry.renamed = "renamed by hand", w.now
	}
}

// there says that GitLab shows the port's entry.
func (g gitlabPort) there() error {
	if !g.w.spec.Individual() || g.w.entry(g.entry).shown(g.asOf()) {
		return nil
	}
	return fleet.Errorf(fleet.CodeNotFound, "404 Runner Not Found")
}

// entriesPort is the GitLab of such a fleet.
type entriesPort struct{ gitlabPort }

// Entry implements engine.Entries.
func (p entriesPort) Entry(id int64) engine.GitLab { return gitlabPort{w: p.w, entry: id} }

// Read implements engine.GitLab.
func (p entriesPort) Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	return gitlabPort{w: p.w, entry: about.Entry}.Read(ctx, about, after)
}

// RemoveEntry implements engine.Entries: a look, and the call just after it.
func (p entriesPort) RemoveEntry(ctx context.Context, claim fleet.EntryClaim) (string, error) {
	w, g := p.w, gitlabPort{w: p.w, entry: claim.Entry}
	if err := g.ask(ctx, "remove-entry"); err != nil {
		return "", err
	}
	if err := g.there(); err != nil {
		return "", err
	}
	if w.plan.Fleet.NoRemoval {
		return "", fleet.Errorf(fleet.CodeForbidden, "403 Forbidden")
	}
	e, looked := w.entry(claim.Entry), w.now
	state := fleet.EntryState{
		Description: e.name, CreatedAt: g.serverTime(e.made), At: g.serverTime(looked), Managers: g.list(g.asOf()),
	}
	if doubt := claim.Doubt(state, w.Now()); doubt != "" {
		w.say("gitlab   %s is left: %s", e, doubt)
		return doubt, nil
	}
	if err := w.wait(ctx, w.between(-1, 20*time.Millisecond, 250*time.Millisecond)); err != nil {
		return "", fleet.Errorf(fleet.CodeUnavailable, "nothing was sent: %w", err)
	}
	switch {
	case e.gone != 0:
		return "", fleet.Errorf(fleet.CodeNotFound, "404 Runner Not Found")
	case e.renamed > looked:
		return "", fleet.Errorf(fleet.CodeConflict, "412 Precondition Failed")
	}
	w.judgeEntryRemoval(e)
	e.gone = w.now
	w.say("gitlab   %s is removed", e)
	return "", g.reply(ctx, "remove-entry")
}

// judgeEntryRemoval judges the removal of an entry that is there: once gone it
// cannot be removed again.
func (w *World) judgeEntryRemoval(e *entry) {
	if !w.spec.Individual() {
		w.violation("token", "the fleet's runner entry is removed")
	}
	at := slices.IndexFunc(w.machines, func(m *machine) bool { return m.entry == e })
	switch m := w.machines[max(at, 0)]; {
	case at < 0:
		w.violation("entry", "%s is removed, and it is nobody's", e)
	case !m.gone:
		w.violation("entry", "%s is removed, and %s is there", e, m)
	case e.renamed != 0 && e.renamed > w.heldFrom(m):
		w.violation("entry", "%s is removed, and it was renamed during the operation", e)
	}
}

// heldFrom is when the operation that deleted a machine had surely looked at its
// entry.
func (w *World) heldFrom(m *machine) time.Duration {
	if at := w.checked(strings.TrimPrefix(m.removedBy, "us:")); at != 0 {
		return at
	}
	return w.now
}

// judgeEntries wants the entry of every machine that we deleted removed, or told
// of.
func (w *World) judgeEntries() {
	chores, _ := w.store.UnfinishedChores(context.Background())
	for _, m := range w.machines {
		if m.entry == nil || m.entry.gone != 0 || !m.gone || !strings.HasPrefix(m.removedBy, "us:") || w.operationOn(m.vm) != "" {
			continue
		}
		open := slices.ContainsFunc(chores, func(c fleet.Chore) bool { return c.VM == m.name })
		told := slices.ContainsFunc(w.store.Facts, func(f fleet.Fact) bool {
			return strings.Contains(f.Text, fmt.Sprintf("runner entry %d", m.entry.id)) && !strings.HasPrefix(f.Text, "the removal of") ||
				strings.Contains(f.Text, "runner entry of instance "+m.id) ||
				f.VM == m.name && strings.Contains(f.Text, "deregister: skipped: ")
		})
		if !open && !told {
			w.violation("nothing left", "%s of %s is left, and nothing says why", m.entry, m)
		}
	}
}
