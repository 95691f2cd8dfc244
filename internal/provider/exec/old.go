package exec

import (
	"os"
	"path/filepath"
	"time"
)

// keepSessions is how long a session's files are kept after it began.
const keepSessions = 7 * 24 * time.Hour

// removeOld removes the sessions that began long ago and do not live. What
// cannot be read or removed is left for people.
func (p *Provider) removeOld() {
	vms, _ := os.ReadDir(filepath.Join(p.fleetDir(), "vms"))
	for _, vm := range vms {
		sessions, _ := os.ReadDir(p.sessions(vm.Name()))
		for _, entry := range sessions {
			dir := filepath.Join(p.sessions(vm.Name()), entry.Name())
			if !p.old(dir) {
				continue
			}
			if err := os.RemoveAll(dir); err != nil {
				p.log.Warn("an old session cannot be removed", "fleet", p.cfg.Fleet, "vm", vm.Name(), "directory", dir, "error", err.Error())
			}
		}
	}
}

func (p *Provider) old(dir string) bool {
	limit := p.clock.Now().Add(-keepSessions)
	s, err := loadSession(dir)
	if err != nil {
		return false
	}
	if s == nil { // never recorded, so never run
		info, err := os.Stat(dir)
		return err == nil && info.ModTime().Before(limit)
	}
	if !s.StartedAt.Before(limit) {
		return false
	}
	pids, err := s.members()
	return err == nil && len(pids) == 0
}
