package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Store is everything that the truth is asked for.
type Store interface {
	engine.Store
	control.Store
	// Known and Trust keep the host keys trusted at first use, per instance.
	Known(ctx context.Context, ref fleet.Ref, instance string) ([]string, error)
	Trust(ctx context.Context, ref fleet.Ref, instance string, keys []string) error
	// What lets pipelines in (access.Store).
	BindIDToken(ctx context.Context, issuer, id, holder string, until time.Time) (string, error)
	SaveFollow(ctx context.Context, hash string, operations []string, until time.Time) error
	Followed(ctx context.Context, hash string) ([]string, error)
}

// Clock is a clock that the suite sets.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a fixed moment.
func NewClock() *Clock { return &Clock{now: start} }

// Now yields the moment that was set.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// test is one thing that a store must do.
type test struct {
	name string
	run  func(*testing.T, *world)
}

// Run tests the stores that open makes: each call a fresh, empty one on the
// given clock, closed by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, clock *Clock) Store) {
	runAll(t, open, asking, pipelines, work, admission, shared)
}

// RunEngine tests engine.Store alone, for one goroutine: what a store in
// memory must do to stand in for the real one in tests of the engine. It asks
// for Insert, with no key and nothing in the way, Facts and Chores beside it.
func RunEngine(t *testing.T, open func(t *testing.T, clock *Clock) Store) {
	runAll(t, open, work, admission)
}

func runAll(t *testing.T, open func(t *testing.T, clock *Clock) Store, suites ...[]test) {
	for _, test := range slices.Concat(suites...) {
		t.Run(test.name, func(t *testing.T) {
			clock := NewClock()
			test.run(t, &world{T: t, Store: open(t, clock), clock: clock})
		})
	}
}

// asking is control's half, with the host keys.
var asking = []test{
	{"an inserted operation reads back as it was, with the fact of who asked", insertedReadsBack},
	{"a VM has one unfinished operation: a second ask yields the first", oneUnfinishedPerVM},
	{"a finished operation makes room for the next", finishedMakesRoom},
	{"what accept refuses is not stored at all", refusedIsNotStored},
	{"a repeated key yields what it yielded, with today's state", repeatedKey},
	{"a key used for another request is refused", keyForAnotherRequest},
	{"a key is forgotten after seven days", keyForgotten},
	{"an ask that was refused does not use up its key", refusedKeyIsFree},
	{"who attaches is in the journal, once, and on what nobody began", whoAttaches},
	{"operations are listed newest first, and filtered", listed},
	{"an operation is found by a prefix that only it has", foundByPrefix},
	{"host keys belong to an instance and never pass to the next", hostKeysOfAnInstance},
	{"other host keys for a trusted instance are refused", otherHostKeys},
}

// pipelines is what callers with an id_token need.
var pipelines = []test{
	{"a key of another scope is another key", keyOfAnotherScope},
	{"a key from another job asks anew for what ended badly, and for nothing else", keyFromAnotherJob},
	{"a key from the same job yields what it yielded, however it ended", keyFromTheSameJob},
	{"an id_token serves whom it served first, until it is over", idTokenServesOne},
	{"a follow token yields its operations until it is over", followTokens},
}

// work is what the engine asks for as it moves an operation.
var work = []test{
	{"an update stores operation, facts, VM and chores together", updateStoresAll},
	{"an update of a stale revision is a conflict and changes nothing", staleUpdate},
	{"a write whose context has ended is not stored", endedWrites},
	{"unfinished operations are listed oldest first", unfinishedOldestFirst},
	{"what is not there is not found", notFound},
	{"a VM that was never stored is fresh and serving", freshVM},
	{"order numbers only rise, whatever is saved", orderNumbersRise},
	{"who a host is, is noted beside what was decided about its VM", identityNoted},
	{"chores are updated by compare-and-set and end", choresEnd},
	{"unfinished chores are listed oldest first", unfinishedChoresOldestFirst},
	{"a chore that is added twice stays as it is", choreAddedTwice},
	{"facts come in the order they were stored, after the one last seen", factsInOrder},
}

// admission is the fleet's budget.
var admission = []test{
	{"budget: one VM at a time", budgetOfOne},
	{"budget: first come, first served", firstComeFirstServed},
	{"budget: a VM that is not serving goes at once and holds no place", notServingGoesAtOnce},
	{"budget: drained, missing and failed VMs count, each once", notServingCountsOnce},
	{"budget: only the first in line says that a person must free it", stuckBudget},
	{"budget: a VM that is no member any more does not count", othersThanMembers},
	{"budget: several may go at once, in any order of looking", severalAtOnce},
	{"budget: a larger budget does not overtake a smaller one", noOvertaking},
	{"budget: undrain and create wait for nobody", undrainWaitsForNobody},
	{"budget: other fleets do not count", otherFleets},
	{"budget: a stale or running operation is not admitted", staleAdmit},
}

// shared is for stores that several goroutines use at once.
var shared = []test{
	{"concurrent asks for one VM make one operation", concurrentAsks},
	{"of concurrent updates from one revision one wins", concurrentUpdates},
	{"budget: concurrent admissions never exceed it", concurrentAdmissions},
}
