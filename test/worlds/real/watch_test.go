package real

import (
	"regexp"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
	"gitlab.com/sluice-runners/sluice/internal/sim/simhost"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// What the world itself sees of hosts and journal while time goes by.

// lookEvery is how often the hosts are looked at.
const lookEvery = 50 * time.Millisecond

// dropIn is where Sluice's drain drop-in lies on a host.
const dropIn = "/run/systemd/system/gitlab-runner.service.d/zz-sluice-drain.conf"

var ofOperation = regexp.MustCompile(`(?m)^# operation: (\S+)$`)

// watch notes when each operation's drop-in first was on each instance, until
// the world ends.
func (w *world) watch() {
	for w.pause(lookEvery) {
		for _, in := range w.Cloud().Instances() {
			h := w.HostOf(in.ID)
			if h == nil {
				continue
			}
			operation := drainedBy(h)
			if operation == "" {
				continue
			}
			at := time.Now()
			if info, err := h.Files().Stat(dropIn, memfs.Root); err == nil {
				at = info.ModTime()
			}
			w.mu.Lock()
			if _, known := w.stops[stopKey{in.ID, operation}]; !known {
				w.stops[stopKey{in.ID, operation}] = at
			}
			w.mu.Unlock()
		}
	}
}

// drainedBy is whose drop-in lies on a host; "" = none's.
func drainedBy(h *simhost.Host) string {
	text, err := h.Files().ReadFile(dropIn, memfs.Root)
	if err != nil {
		return ""
	}
	if match := ofOperation.FindSubmatch(text); match != nil {
		return string(match[1])
	}
	return "?"
}

// unit yields two properties of the runner's unit.
func (w *world) unit(h *simhost.Host) (active, pid string) {
	m := h.Systemd()
	if m == nil {
		return "", "0"
	}
	for _, p := range m.Show(w.Spec().Host.Unit) {
		switch p.Name {
		case "ActiveState":
			active = p.Value
		case "MainPID":
			pid = p.Value
		}
	}
	return active, pid
}

// serving says whether a VM's runner runs and takes jobs.
func (w *world) serving(vm string) bool {
	h := w.Host(vm)
	if h == nil || !h.Up() {
		return false
	}
	active, pid := w.unit(h)
	return active == "active" && pid != "0"
}

// journal opens Sluice's journal for reading, once there is one.
func (w *world) journal() *store.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sees == nil {
		s, err := store.OpenReader(w.life, store.Options{Path: w.path("db"), Clock: wall{}})
		if err != nil {
			return nil
		}
		w.sees = s
	}
	return w.sees
}

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// allOf is more than any world has.
const allOf = 1000

// operations lists all there are, newest first. The caller may hold the lock.
func (w *world) operations() []fleet.Operation {
	if w.sees == nil {
		return nil
	}
	list, err := w.sees.Operations(w.life, control.Filter{Limit: allOf})
	if err != nil {
		return nil
	}
	return list
}
