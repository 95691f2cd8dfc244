package providertest

import (
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// World is the cloud behind a provider, reached past the provider. A world
// that can do more implements the optional interfaces below; the cases that
// need one are skipped without it, by name.
type World interface {
	// Appear makes a running instance of that name, as somebody else would. The
	// labels may be nil. It returns the instance's id.
	Appear(t *testing.T, vm string, labels map[string]string) string
	// Exists says whether the instance is there.
	Exists(t *testing.T, id string) bool
}

// Blinder can make the provider's reading calls fail, as an outage would.
type Blinder interface {
	Blind(t *testing.T, blind bool)
}

// Failer can make the next create of a VM fail with a kind.
type Failer interface {
	// FailCreate arranges for the next create to fail so that nothing is made.
	FailCreate(t *testing.T, code fleet.Code)
	// FailureKinds lists the kinds that this world can produce.
	FailureKinds() []fleet.Code
}

// Loser can lose the answer of a create that succeeds later.
type Loser interface {
	// LoseCreate makes the next create fail as unavailable and keeps its instance.
	LoseCreate(t *testing.T)
	// DeliverLate lets that instance appear, and returns its id.
	DeliverLate(t *testing.T) string
}

// Slow can hold new instances back from being ready.
type Slow interface {
	HoldReady(t *testing.T, hold bool)
}

// Keeper can leave dependents (disks, volumes, addresses) behind a delete.
type Keeper interface {
	// KeepDependents makes deletes leave their dependents while true.
	KeepDependents(t *testing.T, keep bool)
	// DropDependents removes what was left.
	DropDependents(t *testing.T)
}

// Lingerer can accept deletes and carry them out later.
type Lingerer interface {
	// LingerDeletes lets deletes be accepted without effect while true; false
	// carries out those that were accepted.
	LingerDeletes(t *testing.T, linger bool)
}

// Holder can hold creates or deletes in mid-work.
type Holder interface {
	HoldActs(t *testing.T, hold bool)
}

// Setup is what one case gets: a provider over a fresh and empty world.
type Setup struct {
	Machines engine.Machines
	World    World
	Fleet    string
	Image    string // a name that prepare resolves
	Exact    string // what Image resolves to; != Image if the cloud has aliases
	NoImage  string // a name that does not exist; "" = the cloud cannot be asked

	Dependents  bool // instances have dependents apart from themselves
	UniqueNames bool // the cloud itself refuses a second instance of a name
	HidesImage  bool // describe cannot say what an instance was made from
}
