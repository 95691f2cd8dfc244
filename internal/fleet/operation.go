package fleet

import (
	"encoding/json"
	"time"
)

// Request is what somebody asked for. It never changes, but for the image that
// `op resume` corrects and the policy of a drain that is under way (change.go).
type Request struct {
	Image    string      `json:"image,omitempty"` // "" = the fleet's own
	Policy   DrainPolicy `json:"policy"`
	NoDrain  bool        `json:"no_drain,omitempty"`  // delete --no-drain
	Replace  bool        `json:"replace,omitempty"`   // create --recreate
	TakeOver bool        `json:"take_over,omitempty"` // of a foreign owner's drop-in
	Parallel int         `json:"parallel,omitempty"`  // raises the fleet's budget for this request
	By       Actor       `json:"by"`
}

// Operation is one durable action on one VM: the truth about it. It is moved
// by compare-and-set on Revision; whatever an act needs is written before it.
type Operation struct {
	ID       string  `json:"id"`
	Fleet    string  `json:"fleet"`
	VM       string  `json:"vm"`
	Kind     Kind    `json:"kind"`
	Phase    Phase   `json:"phase"`
	Revision int64   `json:"revision"`
	Request  Request `json:"request"`
	// Joined is who attached last, webhooks apart, before anybody began; the
	// journal has all who did.
	Joined Actor `json:"joined,omitzero"`

	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	PhaseSince time.Time `json:"phase_since"`
	FinishedAt time.Time `json:"finished_at,omitzero"`

	Old     Incarnation `json:"old"`                // as preflight found it
	OldAddr string      `json:"old_addr,omitempty"` // host:port of the old incarnation
	OldKeys []string    `json:"old_keys,omitempty"` // host keys of it that the provider reported
	// PeersAsked are the VMs that preflight tried to identify, to find clones.
	PeersAsked []string    `json:"peers_asked,omitempty"`
	WasDown    bool        `json:"was_down,omitempty"` // preflight found the unit stopped: restoring leaves it so
	SeenRun    bool        `json:"seen_run,omitempty"` // a look of preflight has seen a runner's process
	Order      Order       `json:"order"`              // the last order given to the host
	Drain      DrainState  `json:"drain"`
	Delete     DeleteState `json:"delete"`
	Create     CreateState `json:"create"`
	Verify     VerifyState `json:"verify"`
	Restore    RestoreGoal `json:"restore"`
	Canceled   bool        `json:"cancel_requested,omitempty"` // somebody asked to cancel
	// Changes are those that came with an Idempotency-Key, the last ones: a
	// repeat of one changes nothing.
	Changes []ChangeKey `json:"changes,omitempty"`

	Readings []Reading `json:"readings,omitempty"` // of the old VM: what each source last said
	Told     int       `json:"told,omitempty"`     // readings written to the event log so far
	Ruling   *Ruling   `json:"ruling,omitempty"`   // what the drain's table last decided

	Waiting   string    `json:"waiting,omitempty"`   // what it waits for, for people
	Until     time.Time `json:"until,omitzero"`      // when that ends, if it does
	Then      string    `json:"then,omitempty"`      // what happens at that moment
	Attempts  int       `json:"attempts,omitempty"`  // failures in a row of the present act
	NotBefore time.Time `json:"not_before,omitzero"` // backoff
	Held      bool      `json:"held,omitempty"`      // waits for a person: op resume

	ErrCode    Code   `json:"error_code,omitempty"`
	ErrMessage string `json:"error,omitempty"`
	ErrHint    string `json:"hint,omitempty"`
	CutJobs    []Job  `json:"cut_jobs,omitempty"` // ended by the VM's removal, with links
	// Strays are instances that came late and are removed by chores.
	Strays []string `json:"strays,omitempty"`
}

// Ref names the operation's VM.
func (o *Operation) Ref() Ref { return Ref{Fleet: o.Fleet, VM: o.VM} }

// OldSubject is what evidence about the old incarnation must be about.
func (o *Operation) OldSubject() Subject {
	return Subject{Ref: o.Ref(), Incarnation: o.Old}
}

// Position is what [Transition] asks about.
func (o *Operation) Position() Position {
	return Position{
		Kind: o.Kind, Phase: o.Phase,
		Intent:   !o.Delete.IntentAt.IsZero(),
		Stopping: o.Order.Verb != "",
	}
}

// Order is one numbered command to a host: stop or start intake. The number
// rises with every order on the VM and the host refuses a lower one, so that
// a stop which arrives late does nothing (design.md section 4.1).
type Order struct {
	Verb      OrderVerb `json:"verb,omitempty"`
	Owner     string    `json:"owner,omitempty"`     // of the drop-in: this Sluice's id
	Operation string    `json:"operation,omitempty"` // for people who find the drop-in
	Number    int64     `json:"number,omitempty"`
	BootID    string    `json:"boot_id,omitempty"` // the boot that it was meant for
	TakeOver  bool      `json:"take_over,omitempty"`
}

// OrderVerb is what an order asks the host to do.
type OrderVerb string

// The verbs.
const (
	OrderStop    OrderVerb = "stop"    // stop intake: drop-in, reload, stop
	OrderStart   OrderVerb = "start"   // start intake, keep the drop-in
	OrderRelease OrderVerb = "release" // remove the drop-in, once intake is open
	OrderEnd     OrderVerb = "end"     // SIGTERM to the main process: ends its jobs
)

// DrainState is what a drain has learnt.
type DrainState struct {
	OrderedAt        time.Time    `json:"ordered_at,omitzero"`     // just before the first stop order was given
	StoppedAt        time.Time    `json:"stopped_at,omitzero"`     // intake stopped, first time; the cap counts from here
	InheritedStop    time.Time    `json:"inherited_stop,omitzero"` // when the intake of an operation that this one superseded was stopped
	Deadline         time.Time    `json:"deadline,omitzero"`       // absolute; read anew at each look
	HardCap          time.Time    `json:"hard_cap,omitzero"`
	UnreachableSince time.Time    `json:"unreachable_since,omitzero"`
	ExitSeenAt       time.Time    `json:"exit_seen_at,omitzero"` // process first seen gone
	LeftoversSince   time.Time    `json:"leftovers_since,omitzero"`
	Overran          bool         `json:"overran,omitempty"`          // counted once
	StoppedPastCap   bool         `json:"stopped_past_cap,omitempty"` // see Snapshot
	EndOrderedAt     time.Time    `json:"end_ordered_at,omitzero"`    // just before that was ordered; zero = not, or refused
	EndedAt          time.Time    `json:"ended_at,omitzero"`          // SIGTERM was sent to end the jobs
	Verdict          Verdict      `json:"verdict,omitempty"`
	VerdictAt        time.Time    `json:"verdict_at,omitzero"` // when the evidence behind it was taken
	Proof            *HostReading `json:"proof,omitempty"`     // the reading behind the verdict, if a host gave it
	Waiver           *Waiver      `json:"waiver,omitempty"`
	Doomed           bool         `json:"doomed,omitempty"`        // whom the waiver cuts was recorded
	Jobs             []Job        `json:"jobs,omitempty"`          // last known to be waited for
	JobsSeen         []int64      `json:"jobs_seen,omitempty"`     // had a container here: not orphans
	GitLabUnsure     bool         `json:"gitlab_unsure,omitempty"` // unknown at a look since the stop was ordered
	Reopened         bool         `json:"reopened,omitempty"`      // the runner was found running again after a stop
	Watches          int          `json:"watches,omitempty"`       // orphan watches begun
	LinksAt          time.Time    `json:"links_at,omitzero"`       // when GitLab was last asked for links
	ListedAt         time.Time    `json:"listed_at,omitzero"`      // when it last listed them
	Disagreed        Disagreement `json:"disagreed,omitempty"`     // which witness contradicted the verdict
}

// ChangeKey is an Idempotency-Key under which an operation was changed, and the
// digest of that change.
type ChangeKey struct {
	Key    string `json:"key"`
	Digest string `json:"digest"`
}

// Waiver lets a delete go on without a proof: which row, who, when.
type Waiver struct {
	Verdict Verdict   `json:"verdict"`
	Row     int       `json:"row"`
	By      string    `json:"by"` // "policy on_overrun=proceed", or a person
	At      time.Time `json:"at"`
}

// DeleteState is what a delete has done.
type DeleteState struct {
	IntentAt time.Time `json:"intent_at,omitzero"` // committed before the call: the way back is closed
	ProofAt  time.Time `json:"proof_at,omitzero"`  // of the evidence behind the present intent
	Attempt  int       `json:"attempt,omitempty"`
	CalledAt time.Time `json:"called_at,omitzero"` // the call of this attempt was answered
	Done     bool      `json:"done,omitempty"`     // the provider says that it has ended
}

// CreateState is what a create has planned and done.
type CreateState struct {
	Prepared Prepared    `json:"prepared"` // stored before anything is touched
	Attempt  int         `json:"attempt,omitempty"`
	Token    string      `json:"token,omitempty"` // of the present attempt, stored before the call
	CalledAt time.Time   `json:"called_at,omitzero"`
	Began    time.Time   `json:"began,omitzero"`      // our clock, entering creating
	GitLabAt time.Time   `json:"gitlab_at,omitzero"`  // GitLab's clock at that moment
	New      Incarnation `json:"new"`                 // of the VM that came
	NewAddr  string      `json:"new_addr,omitempty"`  // host:port
	HostKeys []string    `json:"host_keys,omitempty"` // authorized_keys lines the provider reported
}

// VerifyState is what the gate has seen.
type VerifyState struct {
	Deadline    time.Time `json:"deadline,omitzero"`
	ActiveSince time.Time `json:"active_since,omitzero"` // unit active with MainPID, without a break
	MainPID     int       `json:"main_pid,omitempty"`
}

// RestoreGoal says how an operation ends once intake is restored.
type RestoreGoal struct {
	Event     Event     `json:"event,omitempty"`     // EventFail, EventCancel; "" for an undrain
	StartedAt time.Time `json:"started_at,omitzero"` // the start order was obeyed
	OpenAt    time.Time `json:"open_at,omitzero"`    // intake was seen open again
}

// Prepared is a stored create request: everything that a create needs,
// resolved before the drain. Spec is the provider's own document; secrets in
// it are references only.
type Prepared struct {
	Resolved bool            `json:"resolved,omitempty"` // the provider has said all it has to say
	Image    string          `json:"image,omitempty"`    // exact id
	Spec     json.RawMessage `json:"spec,omitempty"`
}

// Instance is a machine as the provider lists it.
type Instance struct {
	ID        string            `json:"id"`
	VM        string            `json:"vm"`
	Presence  Presence          `json:"presence"`
	Ready     bool              `json:"ready"`   // has an address and, as far as the provider can tell, has booted
	Address   string            `json:"address"` // host or host:port for SSH
	HostKeys  []string          `json:"host_keys,omitempty"`
	Image     string            `json:"image,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	CreatedAt time.Time         `json:"created_at,omitzero"`
	Detail    string            `json:"detail,omitempty"` // the provider's own words
}

// LabelOperation is the label that names the operation which created an
// instance: how a create whose answer was lost is found again.
const LabelOperation = "sluice-operation"
