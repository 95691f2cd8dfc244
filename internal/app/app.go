package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gitlab.com/sluice-runners/sluice/internal/api"
	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/metrics"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// stopLimit is how long the end of the engine may take.
const stopLimit = 10 * time.Second

// App is Sluice in this process.
type App struct {
	Options
	log      *slog.Logger
	began    time.Time
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	journal  journal
	lock     *store.EngineLock
	specs    map[string]fleet.Spec
	hands    *hands
	own      *own
	queue    *queue.Queue
	engine   *engine.Engine // nil unless the role runs it
	intents  *control.Control
	webhooks *hooks.Receiver // nil unless the role serves
	server   *api.Server
}

// Open composes Sluice for a role and, if the role runs the engine, starts
// it. Errors: CodeInvalid (configuration, secrets), CodeConflict (another
// process runs the engine; it is named), those of the store.
func Open(ctx context.Context, o Options) (*App, error) {
	a := &App{Options: o, log: logger(o.Log, o.Config.Log, o.Role), began: time.Now(), specs: o.Config.Specs()}
	for name, f := range o.Fleets {
		a.specs[name] = f.Spec
	}
	for _, step := range []func(context.Context) error{
		a.checkSecrets, a.openJournal, a.openMetrics, a.openHands, a.openEngine, a.openControl, a.openWebhooks, a.startEngine, a.openAPI,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// Handler is the API, for callers in this process.
func (a *App) Handler() http.Handler { return a.server }

// Idle says whether nobody runs the engine of the journal: what is unfinished
// stands still.
func (a *App) Idle() bool {
	if a.lock != nil {
		return false
	}
	_, held := store.EngineHolder(a.Config.Store.SQLite)
	return !held
}

// Close ends the engine and closes everything. Operations stay as they are.
func (a *App) Close() error {
	var problems []error
	if a.queue != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		problems = append(problems, a.queue.Stop(ctx))
	}
	if a.hands != nil {
		a.hands.close()
	}
	if a.journal != nil {
		problems = append(problems, a.journal.Close())
	}
	if a.lock != nil {
		problems = append(problems, a.lock.Close())
	}
	return errors.Join(problems...)
}

// checkSecrets reads every secret before a file is made: a command that cannot
// work leaves nothing behind.
func (a *App) checkSecrets(context.Context) error {
	if a.Role == RoleRead || a.Fleets != nil {
		return nil
	}
	return Check(a.Config)
}

// openJournal takes the engine lock, if the role runs the engine, and opens
// the store.
func (a *App) openJournal(ctx context.Context) error {
	path := a.Config.Store.SQLite
	if !a.Role.works() {
		s, err := store.OpenReader(ctx, store.Options{Path: path, Clock: clock{}})
		if fleet.CodeOf(err) == fleet.CodeNotFound { // nothing was ever asked for
			a.journal = blank{}
			return nil
		}
		if err != nil {
			return err
		}
		a.journal = s
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fleet.Errorf(fleet.CodeForbidden, "the directory of the journal %s cannot be made: %w", path, err).
			WithHint("change store.sqlite in the configuration, or run as a user who may write there")
	}
	lock, err := store.LockEngine(path, store.Holder{PID: os.Getpid(), Command: a.Command, Since: a.began})
	if err != nil {
		return err
	}
	a.lock = lock
	options := store.Options{Path: path, Clock: clock{}}
	if a.Role == RoleWork {
		a.own = newOwn(lock)
		options.Works = a.own.has
	}
	s, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	a.journal = s
	return nil
}

func (a *App) openEngine(ctx context.Context) error {
	s, ok := a.journal.(*store.Store)
	if !a.Role.works() || !ok {
		return nil
	}
	owner, err := owner(a.Config.Store.SQLite)
	if err != nil {
		return err
	}
	o := queue.Options{DB: s.DB(), Source: s, Clock: clock{}, Log: a.log}
	if a.own != nil {
		o.Only = a.own.has
		if err := a.own.adoptChores(ctx, s); err != nil {
			return err
		}
	}
	if a.queue, err = queue.New(ctx, o); err != nil {
		return err
	}
	a.engine = engine.New(engine.Options{
		Fleets: a.hands.fleets, Store: s, Clock: clock{}, Observer: a.metrics, Waker: a.queue, Log: a.log, Owner: owner,
		Together: together,
	})
	a.queue.Looker = a.engine
	return nil
}

// openControl makes what accepts intents.
func (a *App) openControl(context.Context) error {
	wakes := waker{own: a.own, queue: a.queue}
	if a.engine != nil {
		wakes.interrupt = a.engine.Interrupt
	}
	a.intents = control.New(control.Options{
		Fleets: a.specs, Store: a.journal, Waker: wakes, Clock: clock{}, Log: a.log,
	})
	return nil
}

// startEngine begins the work, when everything that it asks is there.
func (a *App) startEngine(ctx context.Context) error {
	if a.queue == nil {
		return nil
	}
	return a.queue.Start(ctx)
}
