//go:build e2e

package e2e_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
)

// realClock is the clock of this process.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

// hosts is the adapter that Sluice itself uses, dialing inside the scene's network.
func (s *scene) hosts() *runnerhost.Hosts {
	s.t.Helper()
	private, err := os.ReadFile(s.Path("id_ed25519"))
	if err != nil {
		s.t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		s.t.Fatal(err)
	}
	hosts, err := runnerhost.New(runnerhost.Options{
		Settings: fleet.HostSettings{
			User: "fedora", RunnerUser: "fedora", Unit: "gitlab-runner.service", ConfigPath: "/etc/gitlab-runner/config.toml",
		},
		Signers: []ssh.Signer{signer},
		Clock:   realClock{},
		Logger:  slog.New(slog.NewTextHandler(s.t.Output(), nil)),
		Dial: func(ctx context.Context, t engine.Target) (net.Conn, error) {
			return s.World.DialContext(ctx, "tcp", t.Address+":22")
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return hosts
}

func TestStopThatArrivesAfterTheRestoreDoesNothing(t *testing.T) {
	s := newScene(t, "one")
	one := s.host("one")
	hosts := s.hosts()
	target := engine.Target{
		Ref: fleet.Ref{Fleet: fleetName, VM: "one"}, Instance: one.ID, Address: one.Address, HostKeys: s.machine("one").HostKeys,
	}
	order := func(verb fleet.OrderVerb, number int64) fleet.Order {
		return fleet.Order{Verb: verb, Owner: "sluice-e2e", Operation: "op-e2e", Number: number, BootID: one.bootID()}
	}
	if _, err := hosts.StopIntake(s.ctx, target, order(fleet.OrderStop, 1)); err != nil {
		t.Fatal(err)
	}
	one.await("inactive")
	if _, err := hosts.StartIntake(s.ctx, target, order(fleet.OrderStart, 2)); err != nil {
		t.Fatal(err)
	}
	one.await("active")
	if _, err := hosts.ReleaseIntake(s.ctx, target, order(fleet.OrderRelease, 3)); err != nil {
		t.Fatal(err)
	}
	id := s.begin(one, longJob(5*time.Second))

	_, err := hosts.StopIntake(s.ctx, target, order(fleet.OrderStop, 1))
	if fleet.CodeOf(err) != fleet.CodeConflict {
		t.Errorf("the late stop was answered %v, want a conflict", err)
	}
	s.awaitJob(id, 20*time.Second, "end", finished)
	s.mustHaveSucceeded(id)
	s.mustServeAgain(one)
}
