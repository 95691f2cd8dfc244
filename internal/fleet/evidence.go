package fleet

import "time"

// Subject is what a reading is about. A reading about another VM or another
// incarnation is no evidence: see [Subject.Check].
type Subject struct {
	Ref
	Incarnation
}

// Check refuses evidence about somebody else. Empty fields of either side are
// unknown and match; the boot id is not compared, because a reboot of the
// same instance is an event and not another subject (design.md, table 4.2
// row 4). Errors: CodeConflict.
func (s Subject) Check(got Subject) error {
	switch {
	case s.Ref != got.Ref:
		return Errorf(CodeConflict, "evidence about %s was offered for %s", got.Ref, s.Ref)
	case differ(s.Instance, got.Instance):
		return Errorf(CodeConflict, "%s: evidence is about instance %s, not %s", s.Ref, got.Instance, s.Instance)
	case differ(s.SystemID, got.SystemID):
		return Errorf(CodeConflict, "%s: the host calls itself %s, not %s as at preflight", s.Ref, got.SystemID, s.SystemID)
	}
	return nil
}

// is says whether got is about the same subject, as Check does.
func (s *Subject) is(got *Subject) bool {
	return s.Ref == got.Ref && !differ(s.Instance, got.Instance) && !differ(s.SystemID, got.SystemID)
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Presence is what a provider says of an instance.
type Presence string

// The presences. An error is none of them: unknown is not absent.
const (
	PresenceRunning Presence = "running"
	PresenceOff     Presence = "off" // exists, no guest runs
	PresenceAbsent  Presence = "absent"
	PresenceOther   Presence = "other" // starting, stopping, repairing: exists
)

// ProviderReading is what the provider said of a VM's name.
type ProviderReading struct {
	Subject  Subject
	TakenAt  time.Time
	Presence Presence
}

// UnitState is systemd's view of the runner's unit, as systemctl show gives it.
type UnitState struct {
	ActiveState string `json:"active_state"` // active, deactivating, inactive, failed, activating, …
	SubState    string `json:"sub_state"`
	Result      string `json:"result"` // success, timeout, exit-code, …
	MainPID     int    `json:"main_pid"`
	KillSignal  int    `json:"kill_signal"`
	StopForever bool   `json:"stop_forever"` // TimeoutStopUSec=infinity
	Restart     string `json:"restart"`
}

// Known says whether systemd answered at all: while it re-executes, systemctl
// show answers empty once (facts/runner-host.md).
func (u UnitState) Known() bool { return u.ActiveState != "" }

// Stopped says whether the unit is down and its process gone.
func (u UnitState) Stopped() bool {
	return (u.ActiveState == "inactive" || u.ActiveState == "failed") && u.MainPID == 0
}

// DropIn is Sluice's drain drop-in as found on the host.
type DropIn struct {
	Present   bool   `json:"present"`
	Effective bool   `json:"effective"` // every value reads back as ours
	Owner     string `json:"owner,omitempty"`
	Operation string `json:"operation,omitempty"`
	Number    int64  `json:"number,omitempty"`
}

// Container is one container of the runner's user.
type Container struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	JobID   int64  `json:"job_id,omitempty"` // from the name or labels; 0 = none seen
	Started int64  `json:"started,omitempty"`
}

// HostReading is one look at a host. It exists only if the host answered; any
// part of the answer may be missing, and then [HostReading.Complete] is false.
type HostReading struct {
	Subject         Subject     `json:"subject"`
	TakenAt         time.Time   `json:"taken_at"` // our clock, when the look began
	Unit            UnitState   `json:"unit"`
	DropIn          DropIn      `json:"drop_in"`
	Containers      []Container `json:"containers,omitempty"`
	ContainersKnown bool        `json:"containers_known"`  // false: podman did not answer
	Problem         string      `json:"problem,omitempty"` // what was missing, for people
}

// Complete says whether the answer has every part that a decision needs. The
// containers are needed only once the process is gone: they name leftovers.
func (h *HostReading) Complete() bool {
	if !h.Unit.Known() || h.Subject.BootID == "" {
		return false
	}
	return h.ContainersKnown || !h.Unit.Stopped()
}

// Execution is GitLab's word on whether a manager runs a job.
type Execution string

// The executions. A missing field is ExecutionUnknown, never idle.
const (
	ExecutionUnknown Execution = ""
	ExecutionIdle    Execution = "idle"
	ExecutionActive  Execution = "active"
)

// GitLabReading is one reading of GitLab about one system_id, or the reason
// why there is none.
type GitLabReading struct {
	Subject     Subject
	TakenAt     time.Time // our clock, when the first request was sent
	ServerTime  time.Time // GitLab's clock, from its Date header; zero = not given
	Unknown     string    // why the reading cannot be used; "" = usable
	Present     bool      // the manager is listed
	Manager     Manager
	Running     []Job // executing on this system_id: running
	Canceling   []Job // executing on this system_id: canceling
	Unclaimed   []Job // executing on the runner, linked to no manager; for people
	OtherClaims int   // managers with this system_id beyond the first: ambiguous
}

// Manager is GitLab's record of one VM under the runner.
type Manager struct {
	ID          int64
	SystemID    string
	Status      string // online, offline, stale, never_contacted
	Execution   Execution
	CreatedAt   time.Time
	ContactedAt time.Time
	Version     string
}

// Busy is what a reading proves.
type Busy string

// The verdicts of a GitLab reading.
const (
	BusyUnknown Busy = "unknown"
	BusyIdle    Busy = "idle"
	BusyActive  Busy = "active"
)

// Busy judges the reading (design.md section 4.2): idle needs the manager
// present, its execution status idle and both lists empty; a contradiction is
// active. A partial reading, and one that may speak of two hosts, is unknown
// whatever it lists.
func (g *GitLabReading) Busy() Busy {
	if g == nil || g.Unknown != "" || g.OtherClaims > 0 {
		return BusyUnknown
	}
	if len(g.Running)+len(g.Canceling) > 0 || g.Manager.Execution == ExecutionActive {
		return BusyActive
	}
	if !g.Present || g.Manager.Execution != ExecutionIdle {
		return BusyUnknown
	}
	return BusyIdle
}

// Executing lists the jobs that GitLab says run on this system_id.
func (g *GitLabReading) Executing() []Job {
	if g == nil {
		return nil
	}
	return append(append([]Job(nil), g.Running...), g.Canceling...)
}
