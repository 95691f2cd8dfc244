package fleet

import (
	"io"
	"time"
)

// DeliveryOutcome says what became of a delivery, or of one task of it.
type DeliveryOutcome string

// The outcomes. Only a pending delivery has work left.
const (
	DeliveryPending    DeliveryOutcome = "pending"    // a trigger matched; its work is not done yet
	DeliveryAsked      DeliveryOutcome = "asked"      // every operation was asked for
	DeliveryRefused    DeliveryOutcome = "refused"    // something could not be asked for
	DeliverySuperseded DeliveryOutcome = "superseded" // a newer event of the same trigger took over
	DeliveryHint       DeliveryOutcome = "hint"       // a job ended: drains were told to look
	DeliveryIgnored    DeliveryOutcome = "ignored"    // no trigger matches
	DeliveryUnreadable DeliveryOutcome = "unreadable" // authenticated, but not an event that can be read
)

// Delivery is one authenticated call of a GitLab webhook: what it said, as far
// as it matters here, and what it comes to. The body is not kept: it may hold
// CI variables.
type Delivery struct {
	ID     string
	Key    string // Idempotency-Key; "" = GitLab before 17.4
	Digest string // SHA-256 of the body, hex
	At     time.Time

	Event   string // pipeline, push, tag, release, merge, job, other
	Project int64
	Path    string // of the project
	Ref     string
	SHA     string
	Status  string // of a pipeline or job; the action of a merge request or release
	URL     string // the page of what happened

	Outcome    DeliveryOutcome
	Reason     string
	Tasks      []DeliveryTask
	Repeats    int // how often the same came again
	RepeatedAt time.Time
	FinishedAt time.Time
	Revision   int64
}

// DeliveryTask is what one trigger makes of a delivery: recreate VMs. It is
// fixed when the delivery is stored, so that a repeat of its work asks for the
// very same, whatever the configuration says by then.
type DeliveryTask struct {
	Trigger string
	Fleet   string
	VMs     []string
	Image   string // "" = the fleet's own
	// Lane, Rank and Moment order the events of one trigger: of those in a lane
	// only the newest counts. Rank is a number that GitLab counts up, the same for
	// the same thing; where there is none (0), Moment, by GitLab's clock, counts.
	// What has neither, and what is of the same second, is ordered by arrival.
	Lane   string
	Rank   int64
	Moment time.Time

	ImageUntil time.Time // wait so long for the image; zero = do not ask for it
	ImageFound bool
	Until      time.Time // when the task is given up

	Asked   []AskedVM
	Outcome DeliveryOutcome
	Reason  string
}

// AskedVM is what became of a task for one VM.
type AskedVM struct {
	VM        string
	Operation string `json:",omitempty"`
	Attached  bool   `json:",omitempty"` // it ran already
	Refused   string `json:",omitempty"` // why there is none
}

// DeliveryFilter selects deliveries. Zero fields select all.
type DeliveryFilter struct {
	Event   string
	Outcome DeliveryOutcome
	Limit   int // 0 = 100
}

// NewDeliveryID makes a delivery's id: "dl-" and 12 characters of base 32.
// random nil = crypto/rand. Errors: CodeInternal.
func NewDeliveryID(random io.Reader) (string, error) { return newID("dl-", random) }
