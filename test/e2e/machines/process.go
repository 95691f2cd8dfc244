package machines

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Handle names one process for good: a pid alone may be somebody else's by now.
type Handle struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // field 22 of /proc/PID/stat, in ticks since boot
	BootID  string `json:"boot_id"`
}

// HandleOf makes the handle of a living process.
func HandleOf(pid int) Handle {
	return Handle{PID: pid, Started: startOf(pid), BootID: bootID()}
}

// Alive says whether that very process still runs (a zombie does not).
func (h Handle) Alive() bool {
	return h.PID > 0 && h.Started != "" && h.BootID == bootID() && startOf(h.PID) == h.Started
}

// Kill sends SIGKILL to that very process, if it is still there.
func (h Handle) Kill() {
	if h.Alive() {
		_ = syscall.Kill(h.PID, syscall.SIGKILL)
	}
}

// startOf yields a process's start time, "" if it is gone or a zombie.
func startOf(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything; the rest is counted after it.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
