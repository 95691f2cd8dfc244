package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process names a process for good: a pid alone is given again after its end,
// and start times begin anew with each boot.
type process struct {
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // clock ticks since boot, field 22 of /proc/PID/stat
	BootID    string `json:"boot_id"`
}

// stat is what matters of /proc/PID/stat (proc(5)).
type stat struct {
	session int
	start   uint64 // clock ticks since boot
	dead    bool   // a zombie, or being removed
}

func bootID() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(raw)), err
}

// identify names a running process.
func identify(pid int) (process, error) {
	boot, err := bootID()
	if err != nil {
		return process{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return process{}, err
	}
	return process{PID: pid, StartTime: s.start, BootID: boot}, nil
}

func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(pid, string(raw))
}

// parseStat reads the fields after the command's name, which stands in
// parentheses and may hold blanks and parentheses itself.
func parseStat(pid int, raw string) (stat, error) {
	_, rest, ok := cutLast(raw, ")")
	fields := strings.Fields(rest)
	const state, session, start = 0, 3, 19 // fields 3, 6 and 22 of proc(5)
	if !ok || len(fields) <= start {
		return stat{}, fmt.Errorf("/proc/%d/stat has an unknown form", pid)
	}
	sid, err := strconv.Atoi(fields[session])
	if err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat: session: %w", pid, err)
	}
	ticks, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("/proc/%d/stat: start time: %w", pid, err)
	}
	return stat{session: sid, start: ticks, dead: strings.ContainsAny(fields[state], "ZXx")}, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// members lists the living processes of the session that leader leads or led.
// The kernel gives a pid to no other process while a session has that id; so
// if another process has it by now, the session is over.
func (leader process) members() ([]int, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if leader.PID <= 1 || leader.BootID != boot {
		return nil, nil
	}
	if s, err := readStat(leader.PID); err == nil && s.start != leader.StartTime {
		return nil, nil
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var pids []int
	for pid, s := range all {
		if s.session == leader.PID && s.start >= leader.StartTime {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// processes reads every living process.
func processes() (map[int]stat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	all := map[int]stat{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && !s.dead { // it may have ended while we looked
			all[pid] = s
		}
	}
	return all, nil
}

// sessionIDs are the ids of the sessions that have a living process. It is read once
// for many kept sessions, nearly all of which ended long ago.
func sessionIDs() (map[int]bool, error) {
	all, err := processes()
	ids := map[int]bool{}
	for _, s := range all {
		ids[s.session] = true
	}
	return ids, err
}

// end ends the session: TERM to each process of it, KILL once grace has
// passed. It returns when the session is empty, or with an error when it is
// not by the end of ctx.
func (leader process) end(ctx context.Context, grace time.Duration) error {
	if err := leader.signal(syscall.SIGTERM); err != nil {
		return err
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for impatient := false; ; {
		pids, err := leader.members()
		if err != nil || len(pids) == 0 {
			return err
		}
		if impatient {
			if err := leader.signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v of its session still live: %w", pids, ctx.Err())
		case <-patience.C:
			impatient = true
		case <-ticker.C:
		}
	}
}

// signal reaches every member by itself: a command may have made process
// groups of its own inside the session. A member that we may not signal (it
// runs as root through sudo) is left to the others.
func (leader process) signal(sig syscall.Signal) error {
	pids, err := leader.members()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		err := syscall.Kill(pid, sig)
		if err != nil && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EPERM) {
			return fmt.Errorf("signal %s to process %d: %w", sig, pid, err)
		}
	}
	return nil
}
