package simrunner

import (
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
)

// Timing is how long the parts of a job and of an exit take.
type Timing struct {
	Handlers  time.Duration // until signal handlers are installed
	Container time.Duration // from the assignment to the container
	Died      time.Duration // from the script's end to the container's death
	Removed   time.Duration // from its death to its removal
	Result    time.Duration // from its removal to the first final update
	Exit      time.Duration // from the last result to the process's end
	Interrupt time.Duration // from SIGTERM to the container's removal
	Check     time.Duration // between two job requests
	Trace     time.Duration // between two trace patches
}

// Measured is the real runner's timing (facts/runner-host.md).
func Measured() Timing {
	return Timing{
		Handlers: 100 * time.Millisecond, Container: 700 * time.Millisecond,
		Died: 230 * time.Millisecond, Removed: 107 * time.Millisecond, Result: 7 * time.Millisecond,
		Exit: 19 * time.Millisecond, Interrupt: 350 * time.Millisecond,
		Check: 3 * time.Second, Trace: 3 * time.Second,
	}
}

// Containers is the container store that jobs run in.
type Containers interface {
	Run(name string, labels map[string]string)
	Remove(name string)
}

// Options start a runner.
type Options struct {
	Clock      simclock.Clock
	Timing     Timing
	URL        string // GitLab's, without /api/v4
	Token      string
	SystemID   string
	Concurrent int // 0 is fatal, as it is for the real one
	// ShutdownTimeout bounds what SIGTERM waits for. Zero: 30 s.
	ShutdownTimeout time.Duration
	Containers      Containers
	// Fork registers a job's own process with the host: signals that reach the
	// unit's whole group reach it. It yields the call that ends it. May be nil.
	Fork func(argv []string, signal func(syscall.Signal)) (end func())
	// Shell is the shell executor: signals to the job's processes end the job.
	Shell bool
	// Hold keeps scripts from ending for as long as it says so. May be nil.
	Hold func() bool
	// Log gets the lines of the journal. May be nil.
	Log func(line string)
	// Exited is called once, from a goroutine of its own, when the process has
	// ended by itself; not after Kill.
	Exited func(code int)
}
