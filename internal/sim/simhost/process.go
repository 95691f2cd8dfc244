package simhost

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simrunner"
	"gitlab.com/sluice-runners/sluice/internal/sim/simsystemd"
)

// process is one line of the process table.
type process struct {
	pid    int
	argv   []string
	user   string
	unit   string                   // whose group it is in; "" = none
	signal func(sig syscall.Signal) // all but SIGKILL; nil: dies of it
	end    func()                   // what SIGKILL does besides; may be nil
	exited func(simsystemd.Exit)    // who waits for it; may be nil
	once   sync.Once
	gone   chan struct{}
}

// comm is the kernel's short name.
func (p *process) comm() string {
	name := path.Base(p.argv[0])
	return name[:min(len(name), 15)]
}

// proc enters a process into the table and into /proc.
func (h *Host) proc(b *boot, p *process) *process {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.pid == 0 {
		b.lastPID += 1 + b.lastPID%3
		p.pid = b.lastPID
	}
	p.gone = make(chan struct{})
	b.procs[p.pid] = p
	dir := "/proc/" + strconv.Itoa(p.pid)
	group := "0::/user.slice\n"
	if p.unit != "" {
		group = "0::/system.slice/" + p.unit + "\n"
	}
	cmdline := strings.Join(p.argv, "\x00") + "\x00"
	for name, text := range map[string]string{
		"cmdline": cmdline, "comm": p.comm() + "\n", "cgroup": group,
		"status": fmt.Sprintf("Name:\t%s\nState:\tS (sleeping)\nPid:\t%d\n", p.comm(), p.pid),
		"stat":   fmt.Sprintf("%d (%s) S 1 %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n", p.pid, p.comm(), p.pid, p.pid, 1000+p.pid),
	} {
		h.files.Put(path.Join(dir, name), text, memfs.Root, 0o444)
	}
	return p
}

// leave takes a process out of the table and tells who waits for it. Never
// called with a lock held; the waiting one is told from a goroutine.
func (h *Host) leave(b *boot, p *process, e simsystemd.Exit) {
	p.once.Do(func() {
		h.mu.Lock()
		delete(b.procs, p.pid)
		alive := h.boot == b
		if alive && p.exited != nil { // under the lock: Destroy waits for what was begun before
			h.wait.Go(func() { p.exited(e) })
		}
		h.mu.Unlock()
		if alive {
			h.files.RemoveAll("/proc/" + strconv.Itoa(p.pid))
		}
		close(p.gone)
	})
}

// kill ends what stands behind a process without telling anybody.
func (h *Host) kill(p *process) {
	h.mu.Lock()
	end := p.end
	h.mu.Unlock()
	if end != nil {
		end()
	}
}

// send delivers a signal.
func (h *Host) send(b *boot, pid int, sig syscall.Signal) {
	h.mu.Lock()
	p := b.procs[pid]
	var signal func(syscall.Signal)
	if p != nil {
		signal = p.signal
	}
	h.mu.Unlock()
	switch {
	case p == nil || sig == 0:
	case sig == syscall.SIGKILL || signal == nil:
		h.kill(p)
		h.leave(b, p, simsystemd.Exit{Signal: sig})
	default:
		signal(sig)
	}
}

// pids lists processes that match, by pid.
func (h *Host) pids(b *boot, match func(*process) bool) []*process {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*process
	for _, p := range b.procs {
		if match(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(x, y *process) int { return x.pid - y.pid })
	return out
}

// spawner runs systemd's processes.
type spawner struct {
	h *Host
	b *boot
}

// Group implements simsystemd.Spawner.
func (s *spawner) Group(unit string) []int {
	var out []int
	for _, p := range s.h.pids(s.b, func(p *process) bool { return p.unit == unit }) {
		out = append(out, p.pid)
	}
	return out
}

// Signal implements simsystemd.Spawner. The lock of systemd is held: effects
// come from another goroutine.
func (s *spawner) Signal(pid int, sig syscall.Signal) { s.h.send(s.b, pid, sig) }

// Spawn implements simsystemd.Spawner.
func (s *spawner) Spawn(unit string, argv []string, user string, exited func(simsystemd.Exit)) (int, error) {
	if len(argv) == 0 {
		return 0, fmt.Errorf("unit %s has no command", unit)
	}
	p := &process{argv: argv, user: user, unit: unit, exited: exited}
	switch {
	case isRunner(argv):
		s.runner(p)
	case runnerInside(argv) != nil:
		s.wrapped(p, runnerInside(argv))
	default:
		s.command(p)
	}
	return p.pid, nil
}

func isRunner(argv []string) bool {
	return path.Base(argv[0]) == "gitlab-runner" && slices.Contains(argv[1:], "run")
}

// runnerInside yields the runner's argv out of `sh -c "gitlab-runner run …"`.
func runnerInside(argv []string) []string {
	i := slices.Index(argv, "-c")
	if i < 1 || i+1 >= len(argv) {
		return nil
	}
	inner := strings.Fields(argv[i+1])
	if len(inner) == 0 || !isRunner(inner) {
		return nil
	}
	return inner
}

// runner starts a gitlab-runner for p.
func (s *spawner) runner(p *process) {
	cfg := s.h.runnerConfig(p.argv)
	s.h.proc(s.b, p)
	s.h.rememberSystemID()
	r := simrunner.Start(simrunner.Options{
		Clock: s.h.o.Clock, Timing: s.h.o.Timing, Hold: s.h.o.Hold, URL: cfg.url, Token: cfg.token,
		SystemID: s.h.SystemID(), Concurrent: cfg.concurrent, ShutdownTimeout: cfg.shutdown,
		Containers: s.h.podman, Shell: cfg.executor == "shell", Log: s.h.note,
		Fork: func(argv []string, signal func(syscall.Signal)) func() {
			child := s.h.proc(s.b, &process{argv: argv, user: p.user, unit: p.unit, signal: signal})
			return func() { s.h.leave(s.b, child, simsystemd.Exit{}) }
		},
		Exited: func(code int) { s.h.leave(s.b, p, simsystemd.Exit{Code: code}) },
	})
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	p.signal, p.end = r.Signal, r.Kill
}

// wrapped starts a shell with a gitlab-runner behind it: SIGQUIT stays with
// the shell, and the runner never hears of it.
func (s *spawner) wrapped(p *process, inner []string) {
	p.signal = func(sig syscall.Signal) {
		if sig != syscall.SIGQUIT {
			s.h.leave(s.b, p, simsystemd.Exit{Signal: sig})
		}
	}
	s.h.proc(s.b, p)
	child := &process{argv: inner, user: p.user, unit: p.unit}
	child.exited = func(e simsystemd.Exit) { s.h.leave(s.b, p, e) }
	s.runner(child)
}

// command runs anything else as a script of the host.
func (s *spawner) command(p *process) {
	ctx, cancel := context.WithCancel(s.b.ctx)
	p.end = cancel
	s.h.proc(s.b, p)
	s.h.wait.Add(1)
	go func() {
		defer s.h.wait.Done()
		defer cancel()
		code := s.h.run(ctx, s.b, p.user, p.argv)
		s.h.leave(s.b, p, simsystemd.Exit{Code: code})
	}()
}
