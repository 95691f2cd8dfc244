package queue_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/store"
)

// journalOfChild names the journal on which the test binary works as a
// controller that somebody else will kill.
const journalOfChild = "SLUICE_TEST_QUEUE_JOURNAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(journalOfChild); path != "" {
		beKilled(path)
	}
	os.Exit(m.Run())
}

// beKilled works until it is killed: one operation is in the middle of a look,
// one rests for an hour.
func beKilled(path string) {
	t := &childT{}
	s := openStore(t, path)
	l := newLooker(func(ctx context.Context, id string, _ int) (time.Duration, bool, error) {
		if id == "op-resting" {
			return time.Hour, false, nil
		}
		<-ctx.Done()
		return 0, false, ctx.Err()
	})
	q := newQueue(t, s, l, nil)
	must(t, q.Start(context.Background()))
	eventually(t, "both were looked at", patience, func() bool {
		return l.count("op-looking") == 1 && jobs(t, s, "kind = 'vm_operation' and state = 'running'") == 1 &&
			jobs(t, s, "kind = 'vm_operation' and state = 'scheduled'") == 1 && jobs(t, s, "state = 'running' and kind = 'sweep'") == 0
	})
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}

// childT is as much of a testing.TB as a process without a test needs.
type childT struct{ testing.TB }

func (childT) Helper()                      {}
func (childT) Cleanup(func())               {}
func (childT) Fatal(args ...any)            { panic(args) }
func (childT) Fatalf(_ string, args ...any) { panic(args) }

// killedJournal is the journal of a controller that was killed in mid-work.
func killedJournal(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := openStore(t, path)
	ask(t, s, "looking", "resting")

	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), journalOfChild+"="+path)
	var complaint strings.Builder
	child.Stderr = &complaint
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if killErr := child.Process.Kill(); killErr != nil {
		t.Fatal(killErr)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = child.Wait() // it was killed
	if err != nil || line != "ready\n" {
		t.Fatalf("the controller said %q, %v\n%s", line, err, complaint.String())
	}
	return path
}

// Case T41: what a crash left is taken up at the next start.
// With River alone it takes until the end of the lease and of rescueAfter.
func TestAfterKill9EverythingMovesAtOnce(t *testing.T) {
	path := killedJournal(t)
	s := openStore(t, path)
	if n := jobs(t, s, "kind = 'vm_operation' and state = 'running'"); n != 1 {
		t.Fatalf("%d jobs were left running: nothing to rescue", n)
	}
	lease := leader(t, s, "expires_at")
	l := newLooker(forever)
	began := time.Now()
	start(t, s, l, nil)
	eventually(t, "both move", patience, func() bool { return l.count("op-looking") > 0 && l.count("op-resting") > 0 })
	took := time.Since(began)
	t.Logf("restart → moving: %s (bar 1 s)", took.Round(time.Millisecond))
	if took > 20*time.Second { // River alone takes longer than 55 s
		t.Errorf("taken over after %s only", took)
	}
	eventually(t, "this process leads and sweeps", patience, func() bool { return l.swept() > 0 })
	if elected := leader(t, s, "elected_at"); elected >= lease {
		t.Errorf("elected at %s, when the dead one's lease had ended (%s)", elected, lease)
	}
}

// leader reads a time of River's leader; they compare as text.
func leader(t testing.TB, s *store.Store, column string) (at string) {
	t.Helper()
	must(t, s.DB().QueryRowContext(context.Background(), "select cast("+column+" as text) from river_leader").Scan(&at))
	return at
}

// BenchmarkRestart prints restart → moving after a kill -9 (bar 1 s, aim 0.2 s).
func BenchmarkRestart(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		path := killedJournal(b)
		b.StartTimer()
		s := openStore(b, path)
		l := newLooker(forever)
		q := newQueue(b, s, l, nil)
		must(b, q.Start(context.Background()))
		eventually(b, "both move", 5*time.Second, func() bool { return l.count("op-looking") > 0 && l.count("op-resting") > 0 })
		b.StopTimer()
		stop(b, q)
		b.StartTimer()
	}
}
