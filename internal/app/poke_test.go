package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// endless are hosts on which a wait ends only with its context.
type endless struct {
	engine.Hosts
	began chan struct{}
	ended chan error // why each wait ended
}

func (e *endless) AwaitExit(ctx context.Context, _ engine.Target, _ int, _ time.Duration) (*fleet.HostReading, error) {
	e.began <- struct{}{}
	<-ctx.Done()
	e.ended <- ctx.Err()
	return nil, fleet.Errorf(fleet.CodeUnavailable, "the wait was ended: %w", ctx.Err())
}

// within is how soon a wait must end: an attempt of the engine goes on for
// longer than this by itself, and then its context is past its deadline.
const within = 8 * time.Second

func next[T any](t *testing.T, c <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(within):
		t.Fatalf("never: %s", what)
	}
	return got
}

// Case T83: a job's webhook says that a job of the fleet's runner has ended. The
// drain that waits on its host reads anew at once, and goes on waiting, for it is
// no evidence; a person's cancel is seen as soon.
func TestAJobsWebhookAndACancelEndTheDrainsWaitOnItsHostAtOnce(t *testing.T) {
	hosts := &endless{began: make(chan struct{}, 100), ended: make(chan error, 100)}
	s := newStand(t, 1, func(c *config.Config, f *engine.Fleet) {
		hosts.Hosts, f.Hosts = f.Hosts, hosts
		c.Server.Tokens = []config.Token{{Name: "alice", SHA256: access.Hash(bearer)}}
		c.Webhooks.GitLab.SecretTokens = []*config.Secret{{File: written(t, hookToken)}}
	})
	s.runs(s.vms[0])
	alice := s.client(bearer)
	asked, err := alice.Ask(t.Context(), s.fleet, "k", client.AskBody{Kind: client.AskBodyKindDrain, Vms: s.vms})
	if err != nil {
		t.Fatal(err)
	}
	operation := asked.Operations[0].Id
	next(t, hosts.began, "the drain waits on its host")

	status, body := post(t, s.url+"/webhooks/gitlab", fmt.Sprintf(`{
		"object_kind": "build", "ref": "main", "tag": false, "sha": "5f1d0c8e7a3b49d2a6c4e0f1b2d3948576a1c0de", "build_id": 901,
		"build_status": "success", "pipeline_id": 3100, "project_id": 42, "runner": {"id": %d}, "project": {"id": 42}
	}`, simgitlab.DefaultRunnerID), map[string]string{"X-Gitlab-Token": hookToken, "X-Gitlab-Event": "Job Hook"})
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if why := next(t, hosts.ended, "the webhook ends the wait"); !errors.Is(why, context.Canceled) {
		t.Errorf("the wait ended by itself: %v", why)
	}
	next(t, hosts.began, "the drain waits again")

	if _, err := alice.Cancel(t.Context(), operation); err != nil {
		t.Fatal(err)
	}
	if why := next(t, hosts.ended, "the cancel ends the wait"); !errors.Is(why, context.Canceled) {
		t.Errorf("the wait ended by itself: %v", why)
	}
	s.until("the drain gives intake back", func() bool {
		op, err := alice.Operation(t.Context(), operation)
		return err == nil && op.Phase != client.OperationPhaseDraining
	})
}
