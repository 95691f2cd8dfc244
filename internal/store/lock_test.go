package store_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// Environment of the test binary when it is somebody else's process.
const (
	lockFor  = "SLUICE_TEST_LOCK"  // takes this journal's engine lock and waits
	writesTo = "SLUICE_TEST_WRITE" // commits on this journal and ends
	commits  = "SLUICE_TEST_COMMITS"
	livesOn  = "SLUICE_TEST_LIFE" // moves an operation through its phases on this journal and ends
	lifeSync = "SLUICE_TEST_LIFE_SYNC"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(lockFor) != "":
		holdLock(os.Getenv(lockFor))
	case os.Getenv(writesTo) != "":
		commitTo(os.Getenv(writesTo), os.Getenv(commits))
	case os.Getenv(livesOn) != "":
		live(os.Getenv(livesOn), os.Getenv(lifeSync))
	default:
		os.Exit(m.Run())
	}
}

func holdLock(path string) {
	lock, err := store.LockEngine(path, store.Holder{PID: os.Getpid(), Command: "sluice recreate", Operation: "op-1", Since: time.Now()})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("locked\n")
	<-time.After(time.Hour) // until it is killed; a select of nothing is a deadlock where there is no cgo
	_ = lock.Close()
}

func TestASecondEngineIsRefusedByNameUntilTheFirstEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	if holder, held := store.EngineHolder(path); held {
		t.Fatalf("held by %s before anybody took it", holder)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), lockFor+"="+path)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}

	mine := store.Holder{PID: os.Getpid(), Command: "sluice drain", Since: time.Now()}
	_, err = store.LockEngine(path, mine)
	mustSay(t, err, fleet.CodeConflict, path, "pid "+strconv.Itoa(child.Process.Pid), "sluice recreate", "op-1", "--server")
	if holder, held := store.EngineHolder(path); !held || holder.PID != child.Process.Pid || holder.Operation != "op-1" {
		t.Errorf("held %t by %+v", held, holder)
	}

	must(t, child.Process.Kill()) // the kernel gives the lock back
	_ = child.Wait()              // it was killed
	if holder, held := store.EngineHolder(path); held {
		t.Errorf("held by %s, which is dead", holder)
	}
	lock, err := store.LockEngine(path, mine)
	must(t, err)
	must(t, lock.WorksOn("op-2"))
	_, err = store.LockEngine(path, mine)
	mustSay(t, err, fleet.CodeConflict, "pid "+strconv.Itoa(os.Getpid()), "op-2")
	must(t, lock.Close())
	again, err := store.LockEngine(path, mine)
	must(t, err)
	must(t, again.Close())
}

// A server that is killed in the instant in which it begins a command leaves the
// lock to that for a moment. The next server must not give up for it.
func TestTheLockOfADeadHolderIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	gone := exec.Command("/bin/true")
	must(t, gone.Run())
	for pid, waits := range map[int]bool{gone.Process.Pid: true, os.Getpid(): false} {
		lock, err := store.LockEngine(path, store.Holder{PID: pid, Command: "sluice serve"})
		must(t, err)
		release := time.AfterFunc(300*time.Millisecond, func() { _ = lock.Close() })
		next, err := store.LockEngine(path, store.Holder{PID: os.Getpid()})
		if !waits {
			mustSay(t, err, fleet.CodeConflict, "sluice serve")
			release.Stop()
			must(t, lock.Close())
			continue
		}
		must(t, err)
		must(t, next.Close())
	}
}

// Looking who holds the lock must not get in the way of taking it.
func TestLookingForTheHolderRefusesNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				store.EngineHolder(path)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for range 200 {
		lock, err := store.LockEngine(path, store.Holder{PID: 1})
		must(t, err)
		must(t, lock.Close())
	}
}
