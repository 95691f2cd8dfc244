package engine

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Clock tells the time. The engine never reads it elsewhere, so that the
// simulation can run the same steps on a discrete clock.
type Clock interface {
	Now() time.Time
}

// Target is where a host is and whom it must be: one incarnation of one VM.
type Target struct {
	fleet.Ref
	Instance string   // the incarnation that host keys are bound to
	Address  string   // host or host:port
	HostKeys []string // reported by the provider, authorized_keys format; empty under tofu
}

// Hosts is a fleet's machines seen over SSH. Every call is bounded by its
// context and by limits of the adapter's own, may be repeated at any point,
// and yields evidence about the host that really answered.
//
// Errors: CodeUnavailable (out of reach: refused, timed out, cut),
// CodeForbidden (the login or a sudo command was refused), CodeConflict (the
// host key is not the incarnation's; an order was refused: a higher number or
// a foreign owner was found), CodeInvalid (the host is not as it must be).
type Hosts interface {
	// Inspect reads everything that preflight asks. It changes nothing.
	Inspect(ctx context.Context, t Target) (*fleet.HostFacts, error)
	// Look reads unit, drop-in, boot id, system_id and containers: one reading.
	Look(ctx context.Context, t Target) (*fleet.HostReading, error)
	// Glance is a Look without the containers, in half the time: for a proof that
	// needs none.
	Glance(ctx context.Context, t Target) (*fleet.HostReading, error)
	// StopIntake obeys an OrderStop (design.md section 4.1): under the host's
	// lock, drop-in, reload, read-back, stop --no-block. The reading is of after.
	StopIntake(ctx context.Context, t Target, o fleet.Order) (*fleet.HostReading, error)
	// AwaitExit returns when the process is gone, when limit (at most 10 s) has
	// passed, or when ctx ends. If the host saw it go, the reading is a Look taken
	// just after; nil = Look tells what there is.
	AwaitExit(ctx context.Context, t Target, mainPID int, limit time.Duration) (*fleet.HostReading, error)
	// EndJobs obeys an OrderEnd: SIGTERM to the main process under the lock.
	EndJobs(ctx context.Context, t Target, o fleet.Order) error
	// StartIntake obeys an OrderStart: start --no-block under the lock, with the
	// drop-in kept. A process that was told to quit is replaced when it ends.
	StartIntake(ctx context.Context, t Target, o fleet.Order) (*fleet.HostReading, error)
	// ReleaseIntake obeys an OrderRelease: if the unit is not deactivating, the
	// drop-in is removed and the reload read back. CodeConflict if it is.
	ReleaseIntake(ctx context.Context, t Target, o fleet.Order) (*fleet.HostReading, error)
	// Forget closes what is kept for an incarnation that is gone.
	Forget(t Target)
}

// GitLab is one GitLab instance seen through one fleet's runner entry.
//
// A reading that cannot be used is not an error: its Unknown says why. Other
// calls err with CodeUnavailable, CodeRateLimited, CodeForbidden, CodeNotFound.
type GitLab interface {
	// Read yields a reading about systemID whose first request was sent at or
	// after the given time. Concurrent askers share one request.
	Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading
	// Managers lists every manager of the runner entry, and GitLab's clock.
	Managers(ctx context.Context) ([]fleet.Manager, time.Time, error)
	// Runner reads the entry itself.
	Runner(ctx context.Context) (RunnerInfo, error)
	// TraceEmpty says whether a job has no trace: it never reached its runner.
	TraceEmpty(ctx context.Context, job fleet.Job) (bool, error)
}

// Jobs reads, ends and repeats single jobs. Reading is done with the token that
// reads; ending and repeating with the write token, and with nothing else.
//
// Errors: CodeForbidden and CodeNotFound are definite refusals, nothing was
// done; after any other the effect is unknown.
type Jobs interface {
	// Job reads one job and its place in its pipeline. The reading is of after
	// the call.
	Job(ctx context.Context, job fleet.Job) (fleet.JobReading, error)
	// Cancel asks GitLab to cancel a job; force: to end one that is canceling.
	// Of a finished job it succeeds and changes nothing.
	Cancel(ctx context.Context, job fleet.Job, force bool) error
	// Retry makes a new job in the place of one that is canceled or canceling,
	// and yields its id. It is not to be repeated without a reading.
	Retry(ctx context.Context, job fleet.Job) (int64, error)
}

// RunnerInfo is the runner entry as GitLab describes it.
type RunnerInfo struct {
	ID          int64
	Description string
	Type        string // instance_type, group_type, project_type
	Paused      bool
	Status      string
	CreatedAt   time.Time // GitLab's clock
}

// Registrar speaks with the runner token. It can remove one manager and prove
// that the token lives; it can do nothing else (promise 2).
type Registrar interface {
	// RemoveManager is DELETE /runners/managers for one system_id. A manager
	// that is not there is removed already.
	RemoveManager(ctx context.Context, systemID string) error
	// TokenAlive asks GET /runners/router/discovery: nil = alive; CodeForbidden
	// = dead; anything else: unknown.
	TokenAlive(ctx context.Context) error
}

// Machines is a fleet's machines seen through their provider. Each call ends
// within 20 s; what takes longer is started by the first call and looked at
// by the next ones with the same token.
//
// Errors carry the failure's kind: CodeStockout, CodeQuota, CodeUnavailable,
// CodeRateLimited, CodeConflict, CodeImageMissing, CodeInvalid, CodeForbidden.
// A definite refusal (CodeForbidden, CodeInvalid, CodeImageMissing) means that
// nothing was done under that token.
type Machines interface {
	// List yields every instance of the fleet's VMs, two of one name included.
	List(ctx context.Context) ([]fleet.Instance, error)
	// Describe yields the instances that carry the VM's name: none = absent.
	Describe(ctx context.Context, vm string) ([]fleet.Instance, error)
	// Prepare resolves the image to an exact id and renders the create request,
	// checking permissions, template and names. It changes nothing.
	Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error)
	// Check looks a stored request's image and template up once more.
	Check(ctx context.Context, vm string, p fleet.Prepared) error
	// Create starts the attempt named by the order's token, or looks how it is.
	Create(ctx context.Context, o CreateOrder) (Progress, error)
	// Delete starts the attempt named by the order's token, or looks how it is.
	// It deletes by instance id, never by name alone; not found is done.
	Delete(ctx context.Context, o DeleteOrder) (Progress, error)
	// Remains lists what is left of an instance: the instance itself and every
	// dependent (disk, volume, address). Empty = absence is confirmed.
	Remains(ctx context.Context, o DeleteOrder) ([]string, error)
}

// CreateOrder is one attempt at a create.
type CreateOrder struct {
	fleet.Ref
	Operation string // becomes the label fleet.LabelOperation
	Attempt   int
	Token     string
	Prepared  fleet.Prepared
}

// DeleteOrder is one attempt at a delete.
type DeleteOrder struct {
	fleet.Ref
	Operation string
	Attempt   int
	Token     string
	Instance  string // the provider's id
}

// Progress is how far an act has come.
type Progress struct {
	Done     bool
	Instance *fleet.Instance // of a create, once known
	Detail   string          // for people: the provider's words, the script's last line
}

// Store keeps the truth. Every write is one transaction, durable when the
// call returns. Update* compare and set on Revision: CodeConflict means that
// somebody else moved the row; load it again.
type Store interface {
	Operation(ctx context.Context, id string) (*fleet.Operation, error)
	// UpdateOperation stores op, raises its Revision, appends the facts, updates
	// the VM if vm is not nil, and adds the chores, all in one transaction.
	UpdateOperation(ctx context.Context, op *fleet.Operation, facts []fleet.Fact, vm *fleet.VM, chores []fleet.Chore) error
	// Admit moves a queued operation to its next phase if fewer than budget.Room
	// of the fleet's other VMs are not serving, or if its own VM is not serving
	// already; oldest first. False = it has to wait; why says for whom.
	Admit(ctx context.Context, op *fleet.Operation, next fleet.Phase, budget fleet.Budget, at time.Time) (ok bool, why string, err error)
	// NextOrder raises the VM's order number and yields it.
	NextOrder(ctx context.Context, ref fleet.Ref) (int64, error)
	Unfinished(ctx context.Context) ([]fleet.Operation, error) // oldest first

	// VM yields the stored row, or a fresh one (intake serving) if there is none.
	VM(ctx context.Context, ref fleet.Ref) (*fleet.VM, error)
	SaveVM(ctx context.Context, vm *fleet.VM) error
	// NoteIdentity stores who a VM's host is, and nothing else of its row: read
	// and written in one transaction, so that no decision about the VM is undone.
	// A row that knows another instance by now stays whole.
	NoteIdentity(ctx context.Context, ref fleet.Ref, is fleet.Incarnation, address string, at time.Time) error
	VMs(ctx context.Context, fleetName string) ([]fleet.VM, error)

	Chore(ctx context.Context, id string) (*fleet.Chore, error)
	UpdateChore(ctx context.Context, c *fleet.Chore, facts []fleet.Fact) error
	UnfinishedChores(ctx context.Context) ([]fleet.Chore, error)

	AppendFacts(ctx context.Context, facts []fleet.Fact) error
}

// Observer sees what was committed: metrics hang on it. It must not block.
type Observer interface {
	// OperationMoved is called after a commit; before and after differ in phase
	// or in something that is counted.
	OperationMoved(before, after *fleet.Operation)
	// JobsOrphaned counts orphans of a fleet by what became of them, JobsCut cut
	// jobs, JobsRetried those of either that were run again.
	JobsOrphaned(fleetName string, result fleet.RecoveryResult, n int)
	JobsCut(fleetName string, n int)
	JobsRetried(fleetName string, cut bool, n int)
	// Reconciled is called when a sweep has ended without an error.
	Reconciled(at time.Time)
}

// Waker tells the queue that something has work to do. A lost wake-up is
// healed by the sweep.
type Waker interface {
	Wake(ctx context.Context, operation string) error
	WakeChore(ctx context.Context, chore string) error
}

// Fleet is one fleet's spec and adapters.
type Fleet struct {
	fleet.Spec
	Hosts     Hosts
	Machines  Machines
	GitLab    GitLab    // nil without a GitLab token
	Entries   Entries   // nil but under registration individual with a GitLab token; then GitLab reads through them
	Registrar Registrar // nil without a runner token
	Jobs      Jobs      // nil without a write token: orphans are reported only
}
