package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Holder says who runs the engine on a journal.
type Holder struct {
	PID       int       `json:"pid"`
	Command   string    `json:"command"`             // for example "sluice serve"
	Operation string    `json:"operation,omitempty"` // what it works on, if it is one command's
	Since     time.Time `json:"since"`
}

// String renders the holder for a person.
func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	text := fmt.Sprintf("pid %d (%s, since %s)", h.PID, h.Command, h.Since.Format(time.RFC3339))
	if h.Operation != "" {
		text += ", working on " + h.Operation
	}
	return text
}

// EngineLock is the right to run the engine on a journal: one process at a
// time. The kernel ends it with the process, however that ends; child
// processes do not inherit it.
type EngineLock struct {
	mu     sync.Mutex
	file   *os.File
	holder Holder
}

// LockEngine takes the engine lock of the journal at path (a flock on
// path.lock). It waits for nobody who lives. Errors: CodeConflict naming the holder's pid and
// operation, CodeForbidden, CodeInvalid.
func LockEngine(path string, holder Holder) (*EngineLock, error) {
	name := lockPath(path)
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeForbidden, "the engine lock cannot be opened: %w", err).
			WithHint("check that %s exists and can be written", filepath.Dir(name))
	}
	if err := takeLock(file); err != nil {
		other := readHolder(file)
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fleet.Errorf(fleet.CodeConflict, "the engine of %s is run by %s", path, other).
				WithHint("wait for it, or ask it with --server; reading commands work beside it")
		}
		return nil, fleet.Errorf(fleet.CodeInternal, "the engine lock %s: %w", name, err)
	}
	l := &EngineLock{file: file, holder: holder}
	if err := l.write(); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// takeLock tries for a moment: [EngineHolder] holds a shared lock while it looks.
// It tries for longer if the holder is dead: a command that was about to begin
// when it was killed has its files until exec closes them (execve(2), FD_CLOEXEC).
// One that is just giving the lock back has taken its name out already.
func takeLock(file *os.File) error {
	const tries, pause, patience = 10, 5 * time.Millisecond, 5 * time.Second
	for n := 1; ; n++ {
		err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if n >= tries && (time.Duration(n)*pause > patience || stays(readHolder(file))) {
			return err
		}
		<-time.After(pause)
	}
}

// stays says whether a holder has the lock to work: it has a name, and its
// process has not ended for certain.
func stays(h Holder) bool {
	return h.PID > 0 && !errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH)
}

// EngineHolder says whether the engine of the journal at path is run by
// somebody, and by whom. It takes nothing and waits for nothing.
func EngineHolder(path string) (Holder, bool) {
	file, err := os.Open(lockPath(path))
	if err != nil {
		return Holder{}, false
	}
	defer func() { _ = file.Close() }()
	if err := flock(file, syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return Holder{}, false // closing gives the shared lock back
	}
	return readHolder(file), true
}

// WorksOn says which operation the holder works on now, for those it refuses.
func (l *EngineLock) WorksOn(operation string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder.Operation = operation
	return l.write()
}

// Close gives the lock back.
func (l *EngineLock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Truncate(0); err != nil {
		_ = l.file.Close()
		return fleet.Errorf(fleet.CodeInternal, "giving the engine lock back: %w", err)
	}
	return l.file.Close()
}

func (l *EngineLock) write() error {
	text, err := json.Marshal(l.holder)
	if err == nil {
		err = errors.Join(l.file.Truncate(0), writeAt(l.file, append(text, '\n')))
	}
	if err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the engine lock %s cannot be written: %w", l.file.Name(), err).
			WithHint("check the space on the disk that holds it")
	}
	return nil
}

func writeAt(file *os.File, text []byte) error {
	_, err := file.WriteAt(text, 0)
	return err
}

// readHolder reads what the holder wrote; the zero Holder if it is just writing.
func readHolder(file *os.File) (h Holder) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 4096))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return Holder{}
	}
	return h
}

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func lockPath(path string) string { return path + ".lock" }
