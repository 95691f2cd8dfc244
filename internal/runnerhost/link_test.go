package runnerhost

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestOneConnectionServesManyCommandsAtOnce(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(nil)
	var wait sync.WaitGroup
	for range 16 { // more than sshd's MaxSessions
		wait.Go(func() {
			r, err := h.Look(t.Context(), s.target())
			if err != nil || r.Subject.BootID != theBoot(t) {
				t.Errorf("look: %+v, %v", r, err)
			}
		})
	}
	wait.Wait()
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// No systemd: unknown is not stopped. Whether this machine has one must not
// matter, so its systemctl stands behind one that says what it says without.
func TestAHostWithoutSystemdIsUnknown(t *testing.T) {
	s := newSSHD(t)
	systemctl := "#!/bin/sh\n: >" + s.path("asked") + "\necho 'System has not been booted with systemd as init system (PID 1). Can'\\''t operate.' >&2\nexit 1\n"
	if err := os.WriteFile(s.path("systemctl"), []byte(systemctl), 0o700); err != nil { // #nosec G306 -- it is run
		t.Fatal(err)
	}
	s.configure("SetEnv HOME=" + s.dir + " PATH=" + s.dir + ":/usr/sbin:/usr/bin:/sbin:/bin")
	h := s.hosts(nil)
	r, err := h.Look(t.Context(), s.target())
	if err != nil || r.Complete() || !strings.Contains(r.Problem, "systemd does not say") || r.Unit.Stopped() {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(s.path("asked")); err != nil {
		t.Errorf("another systemctl was asked: %v", err)
	}
	o := fleet.Order{Verb: fleet.OrderStop, Owner: "a", Operation: "b", Number: 1, BootID: theBoot(t)}
	_, err = h.StopIntake(t.Context(), s.target(), o)
	mustContain(t, err, fleet.CodeUnavailable, "f/vm-1", "systemd does not run this host")
}

func TestAConnectionThatWasCutIsReplaced(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(nil)
	for n := 1; n <= 3; n++ {
		if _, err := h.Look(t.Context(), s.target()); err != nil {
			t.Fatal(err)
		}
		if s.connections() != n {
			t.Fatalf("%d connections after %d cuts", s.connections(), n-1)
		}
		s.cut()
	}
}

func TestAConnectionCutInACommandLeavesTheOutcomeOpen(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(nil)
	go func() { // once the command runs
		eventually(t, "the command runs", func() bool { _, err := os.Stat(s.path("began")); return err == nil })
		s.cut()
	}()
	_, err := s.run(h, "touch "+s.path("began")+"; sleep 5; echo late", 8*time.Second)
	if !errors.Is(err, errNoExit) {
		t.Fatalf("err = %v", err)
	}
	err = commandFailed(s.target(), scriptStop, err)
	mustContain(t, err, fleet.CodeUnavailable, "f/vm-1", "what it did is not known")
}

func TestASilentPeerIsNoticedByTheKeepalive(t *testing.T) {
	s := newSSHD(t)
	var silent *proxy
	h := s.hosts(func(o *Options) {
		o.Limits.KeepaliveEvery, o.Limits.KeepaliveReply = 30*time.Millisecond, 2*time.Second
		o.Dial = func(ctx context.Context, t engine.Target) (net.Conn, error) {
			conn, err := dialTCP(ctx, t)
			if err == nil {
				silent = newProxy(conn)
				return silent, nil
			}
			return nil, err
		}
	})
	if _, err := h.Look(t.Context(), s.target()); err != nil {
		t.Fatal(err)
	}
	l, kept, err := h.connection(t.Context(), s.target())
	if err != nil || !kept {
		t.Fatal(kept, err)
	}
	silent.silence()
	if _, err := l.run(t.Context(), "true", "", time.Minute); !errors.Is(err, errDead) && !errors.Is(err, errNoExit) {
		t.Errorf("err = %v", err)
	}
	if !l.dead() {
		t.Error("the connection is still kept")
	}
	if _, err := h.Look(t.Context(), s.target()); err != nil {
		t.Errorf("the next look: %v", err)
	}
}

func TestACommandThatOutlivesItsLimitEndsTheConnection(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(nil)
	_, err := s.run(h, "sleep 9", 300*time.Millisecond)
	if !errors.Is(err, errSlow) {
		t.Fatalf("err = %v", err)
	}
	mustContain(t, commandFailed(s.target(), scriptLook, err), fleet.CodeUnavailable, "did not answer to look within")
}

func TestTheHostItselfEndsWhatTakesTooLong(t *testing.T) {
	s := newSSHD(t)
	l, _, err := s.hosts(nil).connection(t.Context(), s.target())
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.run(t.Context(), "timeout -k 2 1 sh -s", "echo begun; sleep 30", 10*time.Second)
	if err != nil || out.status != 124 {
		t.Fatalf("status %d, %v", out.status, err)
	}
	r := judge(s.target(), scriptLook, out, "n")
	if r.broken == nil || !strings.Contains(r.problem, "needed more than 20s") {
		t.Errorf("%+v", r)
	}
}

func TestAFloodIsCutOffAndTheConnectionLives(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(func(o *Options) { o.Limits.Stdout, o.Limits.Stderr = 4096, 512 })
	_, err := s.run(h, "while :; do echo all work and no play; done", 9*time.Second)
	if !errors.Is(err, errFlood) {
		t.Fatalf("err = %v", err)
	}
	mustContain(t, commandFailed(s.target(), scriptLook, err), fleet.CodeUnavailable, "more than an answer can have")
	out, err := s.run(h, "i=0; while [ $i -lt 300 ]; do echo complaint >&2; i=$((i+1)); done; echo ok", 9*time.Second)
	if err != nil || string(out.stdout) != "ok\n" || len(out.stderr) != 512 {
		t.Errorf("%q, %d bytes of complaints, %v", out.stdout, len(out.stderr), err)
	}
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestALoginsNoiseDoesNotHideTheAnswer(t *testing.T) {
	for name, shell := range map[string]string{"sh": "/bin/sh", "bash": "/bin/bash"} {
		t.Run(name, func(t *testing.T) {
			s := newSSHD(t)
			s.write("banner", []byte("Authorized use only\nsluice-begin\n"))
			s.write("noisy", []byte("#!"+shell+"\nprintf 'sluice-begin x\\nWelcome! unit.MainPID=1'\necho to stderr too >&2\n"+
				"export LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8\n"+shell+" -c \"$SSH_ORIGINAL_COMMAND\"\ns=$?\necho bye\nexit $s\n"))
			s.configure("Banner "+s.path("banner"), "ForceCommand "+shell+" "+s.path("noisy"))
			r, err := s.hosts(nil).Look(t.Context(), s.target())
			if err != nil || r.Subject.BootID != theBoot(t) || r.Unit.MainPID == 1 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func TestAnEmptyAnswerIsNoAnswer(t *testing.T) {
	s := newSSHD(t)
	s.configure("ForceCommand true")
	h := s.hosts(nil)
	r, err := h.Look(t.Context(), s.target())
	if err != nil || r.Complete() || r.Unit.Stopped() || !strings.Contains(r.Problem, "no beginning") {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = h.StopIntake(t.Context(), s.target(), fleet.Order{Verb: fleet.OrderStop, Owner: "a", Operation: "b", Number: 1})
	mustContain(t, err, fleet.CodeUnavailable, "f/vm-1", "no beginning")
}

func TestALoginThatMayRunNothingSaysSo(t *testing.T) {
	s := newSSHD(t)
	s.configure("ForceCommand echo 'This account is currently not available.' >&2; exit 1")
	_, err := s.hosts(nil).Inspect(t.Context(), s.target())
	mustContain(t, err, fleet.CodeUnavailable, "status 1", "currently not available")
}

func TestAWaitEndsAtOnceWithItsContext(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(nil)
	ctx, cancel := context.WithCancel(t.Context())
	l, _, err := h.connection(ctx, s.target())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	if _, err := l.run(ctx, "sleep 2", "", 20*time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
	if l.dead() {
		t.Error("the connection was given up")
	}
}

func TestRefusedHungAndAbsentHostsAreOutOfReach(t *testing.T) {
	s := newSSHD(t)
	hung, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hung.Close() }() // it accepts, in the kernel, and says nothing
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	h := s.hosts(func(o *Options) { o.Limits.Connect = 300 * time.Millisecond })
	for address, want := range map[string]string{
		hung.Addr().String(): "did not answer in time (the SSH handshake)",
		gone.Addr().String(): "cannot be reached (connecting)",
		"":                   "no address",
	} {
		target := s.target()
		target.Address = address
		_, err := h.Look(t.Context(), target)
		mustContain(t, err, fleet.CodeUnavailable, "f/vm-1", want)
	}
}

func TestAForgottenHostHasNoConnection(t *testing.T) {
	s := newSSHD(t)
	h := s.hosts(nil)
	l, _, err := h.connection(t.Context(), s.target())
	if err != nil {
		t.Fatal(err)
	}
	h.Forget(s.target())
	if !l.dead() {
		t.Error("the connection is still open")
	}
	h.Close()
	if _, err := h.Look(t.Context(), s.target()); fleet.CodeOf(err) != fleet.CodeCanceled {
		t.Errorf("after Close: %v", err)
	}
}

func BenchmarkLookOverAKeptConnection(b *testing.B) {
	s := newSSHD(b)
	h := s.hosts(nil)
	if _, err := h.Look(b.Context(), s.target()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := h.Look(b.Context(), s.target()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommandOverAKeptConnection(b *testing.B) {
	s := newSSHD(b)
	h := s.hosts(nil)
	l, _, err := h.connection(b.Context(), s.target())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := l.run(b.Context(), "sh -s", "echo hello\n", time.Minute); err != nil {
			b.Fatal(err)
		}
	}
}
