package simhost

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"
)

// Container is one container of the runner's user, as podman's JSON has it.
type Container struct {
	ID        string            `json:"Id"`
	Names     []string          `json:"Names"`
	Image     string            `json:"Image"`
	State     string            `json:"State"`
	Labels    map[string]string `json:"Labels"`
	Pid       int               `json:"Pid"`
	StartedAt int64             `json:"StartedAt"`
	ExitCode  int               `json:"ExitCode"`
	Exited    bool              `json:"Exited"`

	since time.Time
}

// podman is the runner user's container store.
type podman struct {
	now func() time.Time
	mu  sync.Mutex
	all map[string]Container
}

func newPodman(now func() time.Time) *podman {
	return &podman{now: now, all: map[string]Container{}}
}

// Run implements simrunner.Containers.
func (p *podman) Run(name string, labels map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := sha256.Sum256([]byte(name))
	p.all[name] = Container{
		ID: hex.EncodeToString(id[:]), Names: []string{name}, Image: "localhost/busybox:latest",
		State: "running", Labels: labels, Pid: 40_000 + len(p.all), StartedAt: p.now().Unix(), since: p.now(),
	}
}

// Remove implements simrunner.Containers.
func (p *podman) Remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

func (p *podman) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.all)
}

// list yields the containers by name; exited ones only if all is set.
func (p *podman) list(all bool) []Container {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []Container{}
	for _, c := range p.all {
		if all || c.State == "running" {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Container) int { return strings.Compare(a.Names[0], b.Names[0]) })
	return out
}

// Containers lists the runner user's running containers.
func (h *Host) Containers() []Container { return h.podman.list(false) }

// ContainerAge is how long a container has been running; false: it is not there.
func (h *Host) ContainerAge(name string) (time.Duration, bool) {
	h.podman.mu.Lock()
	defer h.podman.mu.Unlock()
	c, ok := h.podman.all[name]
	return h.o.Clock.Now().Sub(c.since), ok
}

// AddContainer puts a container beside the runner's: somebody else's, or one
// that a crash has left lying.
func (h *Host) AddContainer(name string) { h.podman.Run(name, nil) }
