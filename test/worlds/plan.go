package worlds

import "time"

// Plan is everything that is to happen in a world. It is plain data: a plan
// can be printed, changed a little, and run again.
type Plan struct {
	Seed   uint64 // of the latencies, and of what else is left to chance
	VMs    []VMPlan
	Fleet  FleetPlan
	GitLab GitLabPlan
	Slow   int // latencies times this
	Jobs   []JobPlan
	Asks   []AskPlan
	Acts   []Act
	// Changes are what people change of drains that are under way, as acts.
	Changes []Act `json:",omitempty"`
}

// VMPlan is how a member of the fleet is in the beginning.
type VMPlan struct {
	Trait      Trait `json:",omitempty"`
	Concurrent int   // jobs at a time
}

// Trait is what is special about a VM.
type Trait string

// The traits.
const (
	Plain       Trait = ""
	Off         Trait = "off"         // powered down
	UnitDown    Trait = "unit down"   // a person has stopped the runner
	Never       Trait = "never"       // no runner ever started
	Unregisters Trait = "unregisters" // a unit would unregister the token at shutdown
	Expiry      Trait = "expiry"      // the token in config.toml expires
	Foreign     Trait = "foreign"     // another owner has drained it
	Missing     Trait = "missing"     // does not exist
	KeepsID     Trait = "keeps id"    // a new incarnation has the old one's system_id
	Leftover    Trait = "leftover"    // a container stays behind whatever happens
)

// FleetPlan is the fleet's configuration.
type FleetPlan struct {
	MaxUnavailable int
	NoGitLab       bool   `json:",omitempty"` // no GitLab token
	NoToken        bool   `json:",omitempty"` // no runner token
	Write          Role   `json:",omitempty"` // of the write token's user; "" = there is no such token
	NoRecovery     bool   `json:",omitempty"` // recover_orphans: false
	CutJobs        bool   `json:",omitempty"` // retry_cut_jobs
	Registration   string `json:",omitempty"` // "" = fleet
	NoRemoval      bool   `json:",omitempty"` // nobody may remove a VM's own entry
	Gate           time.Duration
	Policy         PolicyPlan
}

// Role is what a user may do to jobs.
type Role string

// The roles.
const (
	Maintainer Role = "maintainer"
	Developer  Role = "developer" // may not force a cancel
	Reporter   Role = "reporter"  // may not cancel, nor retry
)

// PolicyPlan is a drain policy.
type PolicyPlan struct {
	Cap, HardCap, Reach              time.Duration
	OnOverrun, Unreachable, Unproven string
}

// GitLabPlan is how this GitLab is.
type GitLabPlan struct {
	Skew        time.Duration `json:",omitempty"` // its clock minus ours
	NoExecution bool          `json:",omitempty"` // an older server: no job_execution_status
	Abrupt      bool          `json:",omitempty"` // its runners cannot cancel gracefully: canceled at once
	TwoPhase    bool          `json:",omitempty"` // an assigned job that nobody began returns to the queue
	Answer      time.Duration // how long a job's way to its runner takes
}

// JobPlan is a job that somebody pushes.
type JobPlan struct {
	At, Length time.Duration
}

// AskPlan is an intent.
type AskPlan struct {
	At       time.Duration
	Kind     string
	VMs      []int
	Policy   *PolicyPlan `json:",omitempty"`
	NoDrain  bool        `json:",omitempty"`
	Replace  bool        `json:",omitempty"`
	TakeOver bool        `json:",omitempty"`
	Parallel int         `json:",omitempty"`
}

// Act is something that goes wrong, or that a person does.
type Act struct {
	At    time.Duration `json:",omitempty"` // when; or
	Point string        `json:",omitempty"` // at which passing of a point,
	Nth   int           `json:",omitempty"` // counted from 1, of this VM's if the point has one
	Do    string
	VM    int
	For   time.Duration `json:",omitempty"`
	Times int           `json:",omitempty"`
	Kind  string        `json:",omitempty"`
	// Policy is what a "set policy" asks for.
	Policy *PolicyPlan `json:",omitempty"`
}
