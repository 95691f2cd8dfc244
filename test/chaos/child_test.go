package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/engine/queue"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// childVar holds the child's instructions; it is set only for children.
const childVar = "SLUICE_CHAOS_CHILD"

// instructions are what a child process is told.
type instructions struct {
	Journal, Operation                            string
	GitLab, ReadToken, RunnerToken, Cloud, SSHKey string
	Spec                                          fleet.Spec
	Die                                           string // the point to be killed at; "" = never
	Lose                                          string // the call whose first answer is lost
}

func TestMain(m *testing.M) {
	if raw := os.Getenv(childVar); raw != "" {
		if err := child(raw); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // the worlds mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

type noObserver struct{}

func (noObserver) OperationMoved(_, _ *fleet.Operation)           {}
func (noObserver) JobsOrphaned(string, fleet.RecoveryResult, int) {}
func (noObserver) JobsRetried(string, bool, int)                  {}
func (noObserver) JobsCut(string, int)                            {}
func (noObserver) Reconciled(time.Time)                           {}

// child runs the engine until the operation has ended.
func child(raw string) (err error) {
	var in instructions
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		return err
	}
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	lock, err := store.LockEngine(in.Journal, store.Holder{PID: os.Getpid(), Command: "chaos"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	s, err := store.Open(ctx, store.Options{Path: in.Journal, Clock: wallClock{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	f, err := childFleet(in, log)
	if err != nil {
		return err
	}
	fate := &fate{die: in.Die, lose: in.Lose}
	f.Hosts, f.Machines = mortalHosts{f.Hosts, fate}, mortalMachines{f.Machines, fate}
	q, err := queue.New(ctx, queue.Options{DB: s.DB(), Source: s, Clock: wallClock{}, Log: log})
	if err != nil {
		return err
	}
	q.Looker = &firstLook{Looker: engine.New(engine.Options{
		Fleets: map[string]*engine.Fleet{in.Spec.Name: f}, Store: &mortalStore{Store: s, fate: fate},
		Clock: wallClock{}, Observer: noObserver{}, Waker: q, Log: log, Owner: "chaos",
	})}
	if err := q.Start(ctx); err != nil {
		return err
	}
	if err := untilEnded(ctx, s, in.Operation); err != nil {
		return err
	}
	return q.Stop(ctx)
}

func childFleet(in instructions, log *slog.Logger) (*engine.Fleet, error) {
	signer, err := ssh.ParsePrivateKey([]byte(in.SSHKey))
	if err != nil {
		return nil, err
	}
	hosts, err := runnerhost.New(runnerhost.Options{Settings: in.Spec.Host, Signers: []ssh.Signer{signer}, Clock: wallClock{}, Logger: log})
	if err != nil {
		return nil, err
	}
	lab, err := gitlab.New(gitlab.Config{URL: in.GitLab, Token: in.ReadToken, Now: time.Now, Log: log})
	if err != nil {
		return nil, err
	}
	return &engine.Fleet{
		Spec: in.Spec, Hosts: hosts, Machines: cloudClient{in.Cloud},
		GitLab: lab.Entry(in.Spec.RunnerID), Registrar: lab.Registrar(in.RunnerToken),
	}, nil
}

func untilEnded(ctx context.Context, s *store.Store, operation string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for range ticker.C {
		op, err := s.Operation(ctx, operation)
		if err != nil {
			return err
		}
		if op.Phase.Finished() {
			return nil
		}
	}
	return nil
}

// firstLook says on stdout when the first operation is looked at: from there
// on, things move.
type firstLook struct {
	queue.Looker
	said bool
}

func (f *firstLook) Look(ctx context.Context, operation string) (time.Duration, bool, error) {
	if !f.said {
		f.said = true
		fmt.Println("moving")
	}
	return f.Looker.Look(ctx, operation)
}
