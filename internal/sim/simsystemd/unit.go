package simsystemd

import (
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// Exit is how a process ended.
type Exit struct {
	Code   int
	Signal syscall.Signal // not 0: killed by it
}

// clean is systemd's idea of a good end.
func (e Exit) clean() bool {
	switch e.Signal {
	case 0:
		return e.Code == 0
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE:
		return true
	}
	return false
}

// result is the unit's Result after such an end.
func (e Exit) result() string {
	switch {
	case e.clean():
		return "success"
	case e.Signal == 0:
		return "exit-code"
	}
	return "signal"
}

// Spawner runs processes for systemd. It must never call back into the
// manager from inside a call: exits are told from another goroutine.
type Spawner interface {
	// Spawn starts argv as user in the unit's group. exited is called once.
	Spawn(unit string, argv []string, user string, exited func(Exit)) (pid int, err error)
	// Signal sends sig to one process, if it is there.
	Signal(pid int, sig syscall.Signal)
	// Group lists the living processes of the unit, the main one included.
	Group(unit string) []int
}

// job is a start or stop that systemd has accepted and not finished.
type job struct {
	id      int
	kind    string // start, stop
	waiting bool
	done    chan struct{} // closed at the end
	result  string        // done, canceled
}

type unit struct {
	name   string
	config *config // nil: not found

	active, sub string
	result      string
	mainPID     int
	controlPID  int
	commands    []string  // ExecStop commands still to run
	exited      time.Time // when the last main process ended
	restarts    int
	noRestart   bool      // a stop was asked for
	since       time.Time // of the state: time limits count from here
	limit       simclock.Timer
	limitSerial int
	delay       simclock.Timer // of an automatic restart
	delaySerial int
	job         *job
}

func (u *unit) set(active, sub string, now time.Time) {
	u.active, u.sub, u.since = active, sub, now
}

func (u *unit) finishJob(result string) {
	if u.job == nil {
		return
	}
	u.job.result = result
	close(u.job.done)
	u.job = nil
}
