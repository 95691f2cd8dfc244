package machines

import (
	"os"
	"path/filepath"
	"syscall"
)

// Lease is the maker's hold on a world that is not persistent. When the process ends,
// however it ends, the hold is gone and the world is anybody's to sweep.
type Lease struct{ file *os.File }

// Release gives the hold back.
func (l *Lease) Release() { _ = l.file.Close() }

// takeLease holds the world for this process; syscall.EWOULDBLOCK if another does.
func takeLease(dir string) (*Lease, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lease"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Lease{file}, nil
}

// lockWorlds serializes the making and sweeping of worlds over all processes.
func lockWorlds() (unlock func(), err error) {
	if err := os.MkdirAll(StateDir, 0o700); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(StateDir, "lock"))
}

// lock serializes changes to the world's machines over all processes.
func (w *World) lock() (unlock func(), err error) {
	return lockFile(filepath.Join(w.Dir(), "lock"))
}

func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}
