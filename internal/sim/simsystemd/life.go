package simsystemd

import "syscall"

// The life of a service: launch → running → (stop commands → signal → kill) →
// dead, failed or waiting for an automatic restart. Lock held throughout.

func (m *Manager) launch(u *unit) {
	now := m.o.Clock.Now()
	u.noRestart, u.result = false, "success"
	line := u.config.get("ExecStart", "")
	pid, err := m.o.Spawner.Spawn(u.name, argv(line), u.config.user(), func(e Exit) { m.mainExited(u, e) })
	if err != nil {
		u.result = "exit-code" // 203/EXEC
		u.set("failed", "failed", now)
		u.finishJob("done")
		m.settle(u, Exit{Code: 203})
		return
	}
	u.mainPID = pid
	u.set("active", "running", now)
	u.finishJob("done")
}

// stopCommands runs ExecStop= before any signal is sent.
func (m *Manager) stopCommands(u *unit) {
	u.commands = append([]string(nil), u.config.values["ExecStop"]...)
	if len(u.commands) == 0 || u.mainPID == 0 {
		m.signalStop(u)
		return
	}
	u.set("deactivating", "stop", m.o.Clock.Now())
	m.arm(u)
	m.nextCommand(u)
}

func (m *Manager) nextCommand(u *unit) {
	if len(u.commands) == 0 {
		u.controlPID = 0
		m.signalStop(u)
		return
	}
	line := u.commands[0]
	u.commands = u.commands[1:]
	pid, err := m.o.Spawner.Spawn(u.name, argv(line), u.config.user(), func(Exit) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.off && u.sub == "stop" {
			m.nextCommand(u)
		}
	})
	if err != nil {
		m.nextCommand(u)
		return
	}
	u.controlPID = pid
}

// signalStop sends KillSignal as KillMode says. The state's name stays
// stop-sigterm whatever the signal is.
func (m *Manager) signalStop(u *unit) {
	u.set("deactivating", "stop-sigterm", m.o.Clock.Now())
	sig := u.config.killSignal()
	if u.config.killMode() == "control-group" {
		for _, pid := range m.o.Spawner.Group(u.name) {
			m.o.Spawner.Signal(pid, sig)
		}
	} else if u.mainPID != 0 {
		m.o.Spawner.Signal(u.mainPID, sig)
	}
	if u.mainPID == 0 {
		m.afterMain(u, Exit{})
		return
	}
	m.arm(u)
}

// arm sets the time limit of a stop, counted from the state's beginning.
func (m *Manager) arm(u *unit) {
	m.disarm(u)
	limit := u.config.stopLimit(m.o.StopLimit)
	if limit == Infinity {
		return
	}
	left := max(limit-m.o.Clock.Now().Sub(u.since), 0)
	serial := u.limitSerial
	u.limit = m.o.Clock.AfterFunc(left, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if serial == u.limitSerial && !m.off && m.stopping(u) {
			m.overdue(u)
		}
	})
}

func (m *Manager) disarm(u *unit) {
	u.limitSerial++
	if u.limit != nil {
		u.limit.Stop()
		u.limit = nil
	}
}

func (m *Manager) overdue(u *unit) {
	if u.result == "success" {
		u.result = "timeout"
	}
	sig, sub := syscall.SIGKILL, "stop-sigkill"
	if u.config.failureMode() == "abort" && u.sub != "stop-watchdog" {
		sig, sub = syscall.SIGABRT, "stop-watchdog"
	}
	u.set("deactivating", sub, m.o.Clock.Now())
	for _, pid := range m.o.Spawner.Group(u.name) {
		m.o.Spawner.Signal(pid, sig)
	}
	m.arm(u)
}

func (m *Manager) mainExited(u *unit, e Exit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.off || u.mainPID == 0 {
		return
	}
	u.mainPID, u.exited = 0, m.o.Clock.Now()
	if u.result == "success" {
		u.result = e.result()
	}
	m.afterMain(u, e)
}

// afterMain clears what is left of the group and lets the unit die.
func (m *Manager) afterMain(u *unit, e Exit) {
	if u.config.killMode() != "process" {
		for _, pid := range m.o.Spawner.Group(u.name) {
			m.o.Spawner.Signal(pid, syscall.SIGKILL)
		}
	}
	m.settle(u, e)
}

// settle decides what follows the end: a restart, a waiting start, or nothing.
func (m *Manager) settle(u *unit, e Exit) {
	m.disarm(u)
	now := m.o.Clock.Now()
	waiting := u.job != nil && u.job.kind == "start" && u.job.waiting
	if !waiting && !u.noRestart && m.wantsRestart(u, e) {
		u.set("activating", "auto-restart", now)
		m.restartLater(u)
		return
	}
	if u.result == "success" {
		u.set("inactive", "dead", now)
	} else {
		u.set("failed", "failed", now)
	}
	if !waiting {
		u.finishJob("done")
		return
	}
	u.restarts = 0
	m.launch(u)
}

func (m *Manager) wantsRestart(u *unit, e Exit) bool {
	switch u.config.restart() {
	case "always":
		return true
	case "on-success":
		return e.clean()
	case "on-failure":
		return !e.clean() || u.result == "timeout"
	case "on-abnormal":
		return e.Signal != 0 && !e.clean() || u.result == "timeout"
	}
	return false
}

func (m *Manager) restartLater(u *unit) {
	m.undelay(u)
	serial := u.delaySerial
	u.delay = m.o.Clock.AfterFunc(u.config.restartDelay(), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if serial != u.delaySerial || m.off || u.sub != "auto-restart" {
			return
		}
		u.restarts++
		m.launch(u)
	})
}

func (m *Manager) undelay(u *unit) {
	u.delaySerial++
	if u.delay != nil {
		u.delay.Stop()
		u.delay = nil
	}
}
