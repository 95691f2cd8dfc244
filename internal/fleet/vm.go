package fleet

import (
	"encoding/json"
	"time"
)

// Intake is whether a VM's runner is meant to ask for new jobs.
type Intake string

// The intakes.
const (
	IntakeServing Intake = "serving"
	IntakeDrained Intake = "drained" // on purpose: it stays so over reboots
)

// VM is what is kept of a member between operations.
type VM struct {
	Ref
	Incarnation
	Address     string    `json:"address,omitempty"`
	Intake      Intake    `json:"intake"`             // desired
	Missing     bool      `json:"missing,omitempty"`  // deleted by us, or never created
	Failed      bool      `json:"failed,omitempty"`   // its last operation left it not serving
	Trust       []string  `json:"trust,omitempty"`    // host keys trusted at first use, for Instance only
	OrderNumber int64     `json:"order_number"`       // the highest number of any order
	OpenedAt    time.Time `json:"opened_at,omitzero"` // when intake was last ordered open: later jobs are nobody's orphans
	Prepared    Prepared  `json:"prepared"`           // the last stored create request
	UpdatedAt   time.Time `json:"updated_at"`
}

// Serving says whether the VM counts as serving when no operation works on it.
func (v VM) Serving() bool {
	return v.Intake != IntakeDrained && !v.Missing && !v.Failed
}

// ChoreKind is a kind of durable work that follows an operation.
type ChoreKind string

// The chores.
const (
	ChoreOrphanWatch ChoreKind = "orphan_watch"
	ChoreDeregister  ChoreKind = "deregister"
	ChoreStray       ChoreKind = "stray"       // drain and delete a second VM of ours that came late
	ChoreLateCreate  ChoreKind = "late_create" // look whether an attempt that was given up succeeds after all
)

// Chore is durable work that follows an operation without holding it up.
type Chore struct {
	ID         string          `json:"id"`
	Operation  string          `json:"operation"`
	Fleet      string          `json:"fleet"`
	VM         string          `json:"vm"`
	Kind       ChoreKind       `json:"kind"`
	Revision   int64           `json:"revision"`
	State      json.RawMessage `json:"state"` // the chore's own
	CreatedAt  time.Time       `json:"created_at"`
	NextAt     time.Time       `json:"next_at"`
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Outcome    string          `json:"outcome,omitempty"` // one line for people
}

// Ref names the chore's VM.
func (c *Chore) Ref() Ref { return Ref{Fleet: c.Fleet, VM: c.VM} }

// Fact is one line of the event log: something that happened, or was decided.
type Fact struct {
	ID        int64           `json:"id"` // rises; 0 until stored
	At        time.Time       `json:"at"`
	Operation string          `json:"operation,omitempty"`
	Fleet     string          `json:"fleet,omitempty"`
	VM        string          `json:"vm,omitempty"`
	Kind      string          `json:"kind"`            // FactPhase, FactNote, FactWarning, …
	Phase     Phase           `json:"phase,omitempty"` // the phase at or after it
	Text      string          `json:"text"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// The kinds of facts.
const (
	FactAsked   = "asked"   // an operation was accepted
	FactPhase   = "phase"   // an operation moved
	FactNote    = "note"    // something was seen or done
	FactReading = "reading" // a source of evidence says something new; At is when it said so
	FactWarning = "warning" // something a person may want to act on
	FactOrphan  = "orphan"  // a job that no runner will finish
	FactCut     = "cut"     // a job that was ended by the removal of its VM
)
