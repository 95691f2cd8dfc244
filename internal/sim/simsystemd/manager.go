package simsystemd

import (
	"slices"
	"sync"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// Options are what a manager needs.
type Options struct {
	Clock   simclock.Clock
	Files   Files
	Spawner Spawner
	// StopLimit is DefaultTimeoutStopSec. Zero: 45 s, as on Fedora.
	StopLimit time.Duration
}

// Manager is one boot's PID 1. It is safe for concurrent use.
type Manager struct {
	o      Options
	booted time.Time

	mu     sync.Mutex
	units  map[string]*unit
	lastID int
	off    bool // power is gone: nothing happens any more
}

// New starts a manager; no unit runs yet.
func New(o Options) *Manager {
	if o.StopLimit == 0 {
		o.StopLimit = 45 * time.Second
	}
	return &Manager{o: o, units: map[string]*unit{}, booted: o.Clock.Now()}
}

// Halt ends everything at once, as a power cut does; processes are the
// spawner's to end.
func (m *Manager) Halt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = true
	for _, u := range m.units {
		m.disarm(u)
		m.undelay(u)
		u.finishJob("canceled")
	}
}

// unit finds a unit and loads it the first time. Lock held.
func (m *Manager) unit(name string) *unit {
	u := m.units[name]
	if u == nil {
		u = &unit{name: name, active: "inactive", sub: "dead", result: "success", config: load(m.o.Files, name)}
		if u.config == nil {
			return u // not kept: it may appear later
		}
		m.units[name] = u
	}
	return u
}

// Reload is daemon-reload: every unit's files are read anew and take effect on
// running units at once. A time limit then counts from when the state began:
// one that has passed already strikes now (facts/runner-host.md, Undrain).
func (m *Manager) Reload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, u := range m.units {
		if c := load(m.o.Files, name); c != nil {
			u.config = c
		}
		if u.limit != nil || m.stopping(u) {
			m.arm(u)
		}
	}
}

func (m *Manager) stopping(u *unit) bool { return u.active == "deactivating" }

// Start queues a start and yields its end, or nil if there is no such unit.
func (m *Manager) Start(name string) *Ticket {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.unit(name)
	if u.config == nil || m.off {
		return nil
	}
	switch {
	case u.active == "active":
		return doneTicket()
	case m.stopping(u):
		return m.queue(u, "start", true)
	}
	m.undelay(u)
	u.restarts = 0
	t := m.queue(u, "start", false)
	m.launch(u)
	return t
}

// Stop queues a stop and yields its end, or nil if there is no such unit.
func (m *Manager) Stop(name string) *Ticket {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.unit(name)
	if u.config == nil || m.off {
		return nil
	}
	switch {
	case u.active == "inactive" || u.active == "failed":
		return doneTicket()
	case u.sub == "auto-restart":
		m.undelay(u)
		u.set("inactive", "dead", m.o.Clock.Now())
		return doneTicket()
	case m.stopping(u):
		u.noRestart = true
		return m.queue(u, "stop", false)
	}
	t := m.queue(u, "stop", false)
	u.noRestart = true
	m.stopCommands(u)
	return t
}

// Kill sends sig to the unit's main process, or to its whole group. False: no
// process to kill.
func (m *Manager) Kill(name string, sig syscall.Signal, mainOnly bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.unit(name)
	if mainOnly {
		if u.mainPID == 0 {
			return false
		}
		m.o.Spawner.Signal(u.mainPID, sig)
		return true
	}
	group := m.o.Spawner.Group(name)
	for _, pid := range group {
		m.o.Spawner.Signal(pid, sig)
	}
	return len(group) > 0
}

// Shutdown stops every unit and yields when all are down, as reboot does.
func (m *Manager) Shutdown() []*Ticket {
	m.mu.Lock()
	names := make([]string, 0, len(m.units))
	for name := range m.units {
		names = append(names, name)
	}
	m.mu.Unlock()
	slices.Sort(names)
	var out []*Ticket
	for _, name := range names {
		if t := m.Stop(name); t != nil {
			out = append(out, t)
		}
	}
	return out
}

// Ticket is a job as its asker sees it.
type Ticket struct{ job *job }

func doneTicket() *Ticket {
	j := &job{done: make(chan struct{}), result: "done"}
	close(j.done)
	return &Ticket{job: j}
}

// Done is closed when the job has ended or was replaced.
func (t *Ticket) Done() <-chan struct{} { return t.job.done }

// Canceled says, after Done, whether another job replaced this one.
func (t *Ticket) Canceled() bool { return t.job.result != "done" }

// queue installs a job: one of the same kind is joined, another is replaced.
// Lock held.
func (m *Manager) queue(u *unit, kind string, waiting bool) *Ticket {
	if u.job != nil && u.job.kind == kind {
		return &Ticket{job: u.job}
	}
	u.finishJob("canceled")
	m.lastID++
	u.job = &job{id: m.lastID, kind: kind, waiting: waiting, done: make(chan struct{})}
	return &Ticket{job: u.job}
}
