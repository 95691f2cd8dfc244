package enginetest

import (
	"context"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store/storetest"
)

func TestTheStoreInMemoryKeepsTheEnginesContract(t *testing.T) {
	storetest.RunEngine(t, func(*testing.T, *storetest.Clock) storetest.Store {
		return scene{Store: NewStore(&Points{})}
	})
}

// scene lets the suite set a scene in the store in memory. What control alone
// asks for is not there, and a test that called it would panic.
type scene struct {
	*Store
	absent
}

type absent struct{ storetest.Store }

// Insert stores operations; this store has no keys and refuses nothing.
func (s scene) Insert(_ context.Context, ops []fleet.Operation, _ control.Key, _ func([]control.Inserted) error) ([]control.Inserted, error) {
	list := make([]control.Inserted, len(ops))
	for i, op := range ops {
		s.Store.Insert(op)
		s.log([]fleet.Fact{{At: op.CreatedAt, Operation: op.ID, Kind: fleet.FactAsked}})
		list[i] = control.Inserted{Operation: op, New: true}
	}
	return list, nil
}

// Facts lists the event log.
func (s scene) Facts(_ context.Context, after int64, operation string, limit int) ([]fleet.Fact, error) {
	var list []fleet.Fact
	for _, fact := range s.Store.Facts {
		if fact.ID > after && (operation == "" || fact.Operation == operation) && (limit == 0 || len(list) < limit) {
			list = append(list, fact)
		}
	}
	return list, nil
}

// Chores lists an operation's chores in the order they were added.
func (s scene) Chores(_ context.Context, operation string) ([]fleet.Chore, error) {
	var list []fleet.Chore
	for _, id := range s.added {
		if c := s.chores[id]; c.Operation == operation {
			list = append(list, c)
		}
	}
	return list, nil
}
