package queue_test

import (
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

var (
	_ queue.Looker  = (*engine.Engine)(nil)
	_ queue.Source  = (*store.Store)(nil)
	_ engine.Waker  = (*queue.Queue)(nil)
	_ control.Waker = (*queue.Queue)(nil)
)
