package enginetest

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (noWaker) Wake(context.Context, string) error      { return nil }
func (noWaker) WakeChore(context.Context, string) error { return nil }

// Meter counts what the engine reports.
type Meter struct {
	Moves    []string
	Orphaned int
	Results  map[fleet.RecoveryResult]int // of the orphans
	Retried  int
	CutJobs  int
	Swept    int
}

// OperationMoved implements engine.Observer.
func (m *Meter) OperationMoved(before, after *fleet.Operation) {
	if before.Phase != after.Phase {
		m.Moves = append(m.Moves, string(after.Phase))
	}
}

// JobsOrphaned implements engine.Observer.
func (m *Meter) JobsOrphaned(_ string, result fleet.RecoveryResult, n int) {
	if m.Results == nil {
		m.Results = map[fleet.RecoveryResult]int{}
	}
	m.Orphaned += n
	m.Results[result] += n
}

// JobsRetried implements engine.Observer.
func (m *Meter) JobsRetried(_ string, _ bool, n int) { m.Retried += n }

// JobsCut implements engine.Observer.
func (m *Meter) JobsCut(_ string, n int) { m.CutJobs += n }

// Reconciled implements engine.Observer.
func (m *Meter) Reconciled(time.Time) { m.Swept++ }
