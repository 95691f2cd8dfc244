package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The files of a session's directory (docs/providers/exec.md).
const (
	fileRequest = "request"
	fileSession = "session.json"
	fileOut     = "out"
	fileLog     = "log"
	fileResult  = "result"
	fileEnded   = "ended"
)

// session is one run of a long command, as kept on disk. The file is synced
// before the command may begin.
type session struct {
	process
	Act       Verb      `json:"act"`
	VM        string    `json:"vm"`
	Operation string    `json:"operation"`
	Attempt   int       `json:"attempt"`
	Token     string    `json:"token"`
	Instance  string    `json:"instance,omitempty"`
	StartedAt time.Time `json:"started_at"`
	Deadline  time.Time `json:"deadline"` // when it is ended if it still runs

	dir string
}

// state is where a session stands.
type state string

// The states. A session that vanished left no result: it was killed, the host
// was rebooted, or its disk was full.
const (
	stateRunning  state = "running"
	stateFinished state = "finished"
	stateVanished state = "vanished"
)

// key is the name of the session's directory.
func sessionKey(req request) string {
	return fmt.Sprintf("%s.%s.%d.%s", req.Verb, req.Operation, req.Attempt, req.Token)
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

// String names the session for people.
func (s *session) String() string {
	return fmt.Sprintf("the %s command of %s, attempt %d (pid %d, since %s)",
		s.Act, s.Operation, s.Attempt, s.PID, s.StartedAt.UTC().Format(time.RFC3339))
}

// loadSession reads a session; nil without an error means that none was
// started under that key: session.json comes before the command.
func loadSession(dir string) (*session, error) {
	raw, err := os.ReadFile(filepath.Join(dir, fileSession))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "%s: the record of an earlier command cannot be read: %w", refOf(dir), err)
	}
	s := &session{dir: dir}
	if err := json.Unmarshal(raw, s); err != nil || s.PID <= 1 {
		return nil, fleet.Errorf(fleet.CodeUnavailable, "%s: the record of an earlier command is damaged: %s", refOf(dir), dir).
			WithHint("see that no command for this VM runs, then remove that directory")
	}
	return s, nil
}

// refOf yields the VM of a session's directory, FLEET/vms/VM/sessions/KEY.
func refOf(dir string) fleet.Ref {
	vm := filepath.Dir(filepath.Dir(dir))
	return fleet.Ref{Fleet: filepath.Base(filepath.Dir(filepath.Dir(vm))), VM: filepath.Base(vm)}
}

// state looks at the result first, then for living processes, and once more
// at the result, which may have come in between.
func (s *session) state() (state, error) {
	for range 2 {
		if _, ok, err := s.result(); err != nil || ok {
			return stateFinished, err
		}
		pids, err := s.members()
		if err != nil {
			return "", fleet.Errorf(fleet.CodeUnavailable, "%s: whether %s lives cannot be seen: %w", refOf(s.dir), s, err)
		}
		if len(pids) > 0 {
			return stateRunning, nil
		}
	}
	return stateVanished, nil
}

// result reads the exit code. A half-written one is none: the rename comes
// after the write, and the line ends with a newline.
func (s *session) result() (int, bool, error) {
	raw, err := os.ReadFile(s.path(fileResult))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fleet.Errorf(fleet.CodeUnavailable, "%s: the result of %s cannot be read: %w", refOf(s.dir), s, err)
	}
	line, whole := strings.CutSuffix(string(raw), "\n")
	code, err := strconv.Atoi(line)
	if !whole || err != nil || code < 0 || code > 255 {
		return 0, false, nil
	}
	return code, true, nil
}

// outcome reads how a session that no longer runs has ended.
func (s *session) outcome() outcome {
	o := outcome{log: s.path(fileLog), last: s.lastLine()}
	code, ok, _ := s.result()
	o.exit = code
	if !ok {
		o.vanished = true
		o.why = "it vanished without a result (killed, the host rebooted, or the disk is full)"
	}
	if why, err := os.ReadFile(s.path(fileEnded)); err == nil {
		o.vanished = false
		o.why = strings.TrimSpace(string(why))
	}
	// One byte more than allowed tells a flood from a full answer.
	out, err := readHead(s.path(fileOut), maxAnswer+1)
	switch {
	case err != nil:
		o.stdout = nil
	case len(out) > maxAnswer:
		o.flooded = true
	default:
		o.stdout = out
	}
	return o
}

func (s *session) lastLine() string {
	raw, err := readTail(s.path(fileLog), 4096)
	if err != nil {
		return ""
	}
	return lastLine(raw)
}
