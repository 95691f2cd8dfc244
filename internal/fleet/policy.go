package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Overrun says what happens when the cap passes with a job running.
type Overrun string

// The overrun policies.
const (
	OverrunProceed Overrun = "proceed" // warn, count, end the job cleanly, go on
	OverrunWait    Overrun = "wait"    // alert, go on waiting until the hard cap
	OverrunAbort   Overrun = "abort"   // restore intake, the operation fails
)

// Unreachable says what happens when a host cannot be reached for the policy's
// reach deadline without a break.
type Unreachable string

// The policies for unreachable hosts.
const (
	UnreachableFail    Unreachable = "fail"
	UnreachableProceed Unreachable = "proceed"
)

// Unproven says what happens when the runner process is gone at the cap but
// GitLab could not be asked.
type Unproven string

// The policies for unproven drains.
const (
	UnprovenAbort   Unproven = "abort"
	UnprovenProceed Unproven = "proceed"
)

// Tunables of a drain (design.md section 4.2).
const (
	// ResultGrace is how long after the exit GitLab may still say active
	// because the job's result is on its way.
	ResultGrace = 10 * time.Second
	// LeftoverGrace is how long containers may outlive the runner process.
	LeftoverGrace = 30 * time.Second
	// ProofAge is how old the proof may be when the delete is called.
	ProofAge = 5 * time.Second
	// EndGrace is how long the runner has to end its jobs after SIGTERM.
	EndGrace = 15 * time.Second
)

// DrainPolicy is how a fleet, or one request, wants its drains done.
type DrainPolicy struct {
	Cap           time.Duration `json:"cap"` // from the moment intake was stopped
	OnOverrun     Overrun       `json:"on_overrun"`
	HardCap       time.Duration `json:"hard_cap"` // bounds OverrunWait; from the same moment
	Unreachable   Unreachable   `json:"unreachable"`
	ReachDeadline time.Duration `json:"reach_deadline"` // out of reach without a break
	OnUnproven    Unproven      `json:"on_unproven"`
}

// DefaultDrainPolicy is design.md section 4: ten minutes, then proceed.
func DefaultDrainPolicy() DrainPolicy {
	return DrainPolicy{
		Cap:           10 * time.Minute,
		OnOverrun:     OverrunProceed,
		HardCap:       4 * time.Hour,
		Unreachable:   UnreachableFail,
		ReachDeadline: 10 * time.Minute,
		OnUnproven:    UnprovenAbort,
	}
}

// Validate refuses a policy that cannot mean what it says. Errors: CodeInvalid.
func (p DrainPolicy) Validate() error {
	switch p.OnOverrun {
	case OverrunProceed, OverrunWait, OverrunAbort:
	default:
		return Errorf(CodeInvalid, "on_overrun %q is not known", p.OnOverrun).WithHint("use proceed, wait or abort")
	}
	if p.Unreachable != UnreachableFail && p.Unreachable != UnreachableProceed {
		return Errorf(CodeInvalid, "unreachable %q is not known", p.Unreachable).WithHint("use fail or proceed")
	}
	if p.OnUnproven != UnprovenAbort && p.OnUnproven != UnprovenProceed {
		return Errorf(CodeInvalid, "on_unproven %q is not known", p.OnUnproven).WithHint("use abort or proceed")
	}
	if p.Cap <= 0 {
		return Errorf(CodeInvalid, "cap %s is not positive", p.Cap).WithHint("to skip the drain use delete --no-drain")
	}
	if p.ReachDeadline <= 0 {
		return Errorf(CodeInvalid, "reach_deadline %s is not positive", p.ReachDeadline).WithHint("the default is 10m")
	}
	if p.OnOverrun == OverrunWait && p.HardCap < p.Cap {
		return Errorf(CodeInvalid, "hard_cap %s is shorter than cap %s", p.HardCap, p.Cap).WithHint("raise hard_cap")
	}
	return nil
}

// String renders the policy for a person.
func (p DrainPolicy) String() string {
	return fmt.Sprintf("cap %s, then %s", p.Cap, p.OnOverrun)
}

// Budget is how many of a fleet's VMs may be not serving at the same time.
type Budget struct {
	Room int
	// Members are the VMs whose rows count; nil = all. A VM that was taken out of
	// the configuration leaves a row behind that must not hold up the others.
	Members []string
}

// Full says that n VMs of the fleet, called names, use the budget up. stuck: no
// operation is at work that would free it, so a person must.
func (b Budget) Full(fleetName string, n int, names string, stuck bool) string {
	text := fmt.Sprintf("%d of at most %d VMs of %s are not serving: %s", n, b.Room, fleetName, names)
	if stuck {
		text += "; no operation will change that: undrain or recreate them, or ask with a larger --parallel"
	}
	return text
}

// Spec is what the engine must know of a fleet beyond its adapters.
type Spec struct {
	Name           string
	VMs            []string
	RunnerID       int64 // GitLab's id of the runner entry; 0 = not given, or one per VM
	GitLabURL      string
	Registration   Registration
	HasGitLab      bool // a GitLab token is there: evidence can be asked for
	HasRunnerToken bool // a runner token is there: it can be proven, managers removed
	HasWriteToken  bool // a GitLab token that may cancel and retry jobs is there
	Drain          DrainPolicy
	Recovery       RecoveryPolicy
	MaxUnavailable int
	GateOnline     time.Duration // the new VM must serve within this
	Image          string        // the default image; "" = the provider's own choice
	Host           HostSettings
}

// HostSettings say how to find the runner on a host.
type HostSettings struct {
	User       string // login user
	RunnerUser string // whose podman store holds the jobs
	Unit       string // the runner's systemd unit
	ConfigPath string // the runner's config.toml
}

// Recovers says whether lost jobs can be canceled and run again; else they are
// reported.
func (s Spec) Recovers() bool { return s.Recovery.Orphans && s.HasWriteToken }

// Has says whether vm is a member of the fleet.
func (s Spec) Has(vm string) bool { return slices.Contains(s.VMs, vm) }
