package fleet

import (
	"errors"
	"time"
)

// The cross product of everything a drain's decision rests on, in words. The
// oracle judges the words; Decide gets the snapshot that they stand for.

var errRefused = errors.New("connection refused")

var (
	testNow      = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	testExpected = Subject{
		Ref:         Ref{Fleet: "shared", VM: "runner-01"},
		Incarnation: Incarnation{Instance: "i-old", BootID: "boot-1", SystemID: "s_old"},
	}
	testJob = Job{ID: 42, URL: "https://gitlab.example.com/g/p/-/jobs/42", Status: "running"}
)

// hostWords describe one look at the host. The zero value: it did not answer.
type hostWords struct {
	answered   bool
	unit       string // ActiveState; "" = systemctl answered empty
	result     string
	pid        bool
	boot       string // same, changed, missing
	dropIn     bool
	other      bool   // another system_id than preflight's
	containers string // none, some, unknown
}

func hostProduct() []hostWords {
	units := []struct{ state, result string }{
		{"", ""},
		{"active", "success"},
		{"activating", "success"},
		{"deactivating", "success"},
		{"inactive", "success"},
		{"inactive", "exit-code"},
		{"failed", "timeout"},
	}
	list := []hostWords{{}}
	for _, unit := range units {
		for _, pid := range []bool{false, true} {
			list = append(list, hostWords{true, unit.state, unit.result, pid, "same", true, true, "none"})
			for _, boot := range []string{"same", "changed", "missing"} {
				for _, dropIn := range []bool{false, true} {
					for _, containers := range []string{"none", "some", "unknown"} {
						list = append(list, hostWords{true, unit.state, unit.result, pid, boot, dropIn, false, containers})
					}
				}
			}
		}
	}
	return list
}

func (h hostWords) reading() *HostReading {
	if !h.answered {
		return nil
	}
	r := &HostReading{
		Subject:         testExpected,
		TakenAt:         testNow,
		Unit:            UnitState{ActiveState: h.unit, Result: h.result},
		DropIn:          DropIn{Present: h.dropIn, Effective: h.dropIn},
		ContainersKnown: h.containers != "unknown",
	}
	switch h.boot {
	case "changed":
		r.Subject.BootID = "boot-2"
	case "missing":
		r.Subject.BootID = ""
	}
	if h.pid {
		r.Unit.MainPID = 4242
	}
	if h.other {
		r.Subject.SystemID = "s_other"
	}
	if h.containers == "some" {
		r.Containers = []Container{{Name: "runner-42", State: "running", JobID: 42}}
	}
	return r
}

// gitlabReadings are GitLab's answers by name. A stale one was taken before
// the exit, whenever the exit was seen.
func gitlabReadings() map[string]*GitLabReading {
	taken := func(change func(*GitLabReading)) *GitLabReading {
		g := &GitLabReading{
			Subject: testExpected, TakenAt: testNow, Present: true,
			Manager: Manager{ID: 7, SystemID: "s_old", Status: "online", Execution: ExecutionIdle},
		}
		change(g)
		return g
	}
	return map[string]*GitLabReading{
		"not asked": nil,
		"error": taken(func(g *GitLabReading) {
			*g = GitLabReading{Subject: testExpected, TakenAt: testNow, Unknown: "502 Bad Gateway"}
		}),
		"partial":         taken(func(g *GitLabReading) { g.Unknown = "page 2 did not come"; g.Running = []Job{testJob} }),
		"manager missing": taken(func(g *GitLabReading) { g.Present = false; g.Manager = Manager{} }),
		"two managers":    taken(func(g *GitLabReading) { g.OtherClaims = 1 }),
		"no field":        taken(func(g *GitLabReading) { g.Manager.Execution = ExecutionUnknown }),
		"idle":            taken(func(*GitLabReading) {}),
		"stale idle":      taken(func(g *GitLabReading) { g.TakenAt = testNow.Add(-time.Hour) }),
		"running":         taken(func(g *GitLabReading) { g.Manager.Execution = ExecutionActive; g.Running = []Job{testJob} }),
		"contradiction":   taken(func(g *GitLabReading) { g.Canceling = []Job{testJob} }),
		"active, no job":  taken(func(g *GitLabReading) { g.Manager.Execution = ExecutionActive }),
		"somebody else's": taken(func(g *GitLabReading) { g.Subject.SystemID = "s_other" }),
	}
}

func providerReadings() map[string]*ProviderReading {
	of := func(p Presence, instance string) *ProviderReading {
		r := &ProviderReading{Subject: testExpected, TakenAt: testNow, Presence: p}
		r.Subject.Instance = instance
		return r
	}
	return map[string]*ProviderReading{
		"not asked":       nil,
		"running":         of(PresenceRunning, "i-old"),
		"in between":      of(PresenceOther, "i-old"),
		"off":             of(PresenceOff, "i-old"),
		"absent":          of(PresenceAbsent, ""),
		"another running": of(PresenceRunning, "i-new"),
		"another absent":  of(PresenceAbsent, "i-new"),
	}
}

// worldWords is one member of the cross product.
type worldWords struct {
	host        hostWords
	gitlab      string
	noGitLab    bool
	provider    string
	cap         string // not begun, inside, at the cap, at the hard cap
	overrun     Overrun
	unreachable Unreachable
	unproven    Unproven
	silence     string // since when the host is out of reach: no, short, long
	stopped     string // since when the process is seen gone: no, short, long
	left        string // since when leftovers are seen: no, short, long
	again       bool   // intake was stopped again after the cap already
}

// since places a moment so that short is the last instant before the limit
// and long the first one at it.
func since(word string, limit time.Duration) time.Time {
	switch word {
	case "short":
		return testNow.Add(-limit + time.Nanosecond)
	case "long":
		return testNow.Add(-limit)
	default:
		return time.Time{}
	}
}

type readings struct {
	host     *HostReading
	gitlab   *GitLabReading
	provider *ProviderReading
}

func (w *worldWords) snapshot(r readings) Snapshot {
	policy := DefaultDrainPolicy()
	policy.OnOverrun, policy.Unreachable, policy.OnUnproven = w.overrun, w.unreachable, w.unproven
	s := Snapshot{
		Now: testNow, Expected: testExpected, Policy: policy,
		Host: r.host, GitLab: r.gitlab, NoGitLab: w.noGitLab, Provider: r.provider,
		UnreachableSince: since(w.silence, policy.ReachDeadline),
		StoppedSince:     since(w.stopped, ResultGrace),
		LeftoversSince:   since(w.left, LeftoverGrace),
		StoppedPastCap:   w.again,
	}
	if r.host == nil {
		s.HostErr = errRefused.Error()
	}
	longest := policy.HardCap - policy.Cap
	switch w.cap {
	case "inside":
		s.Deadline = testNow.Add(time.Nanosecond)
	case "at the cap":
		s.Deadline = testNow
	case "at the hard cap":
		s.Deadline = testNow.Add(-longest)
	}
	if !s.Deadline.IsZero() {
		s.HardCap = s.Deadline.Add(longest)
	}
	return s
}
