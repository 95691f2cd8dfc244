package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// exitStatus runs a command and compares its exit status: status N sluice …
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		code, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = code.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func world(ts *testscript.TestScript) *sim.World {
	w, ok := ts.Value(worldKey{}).(*sim.World)
	if !ok {
		ts.Fatalf("this script has no world: name it world_….txtar")
	}
	return w
}

// busy waits until every VM of the world runs a job.
func busy(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	ts.Check(world(ts).AwaitBusy(ctx))
}

// damage compares the world's ledger: damage VM… says which are new, and that
// nothing else happened; ! damage wants some.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	err := world(ts).DamageTo(args...)
	if (err != nil) != neg {
		ts.Fatalf("damage: %v", err)
	}
}

// fault makes the world's GitLab answer a status to everything: fault 500, or
// to one route; fault off ends it.
func fault(ts *testscript.TestScript, _ bool, args []string) {
	gitlab := world(ts).GitLab()
	if args[0] == "off" {
		gitlab.ClearFaults()
		return
	}
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	gitlab.Inject(simgitlab.Fault{Kind: simgitlab.FaultStatus, Code: code, Routes: args[1:]})
}

// await waits until a file holds a text: await FILE TEXT.
func await(ts *testscript.TestScript, _ bool, args []string) {
	limit := time.Now().Add(90 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(text), args[1]) {
			tick.Stop()
			return
		}
		if time.Now().After(limit) {
			ts.Fatalf("%s never held %q: %s", args[0], args[1], text)
		}
	}
}

// running are the commands that a script began and has not ended.
type running struct{ commands map[string]*exec.Cmd }

type runningKey struct{}

// begin starts a command whose output goes to NAME.log: begin NAME command…
func begin(ts *testscript.TestScript, _ bool, args []string) {
	log, err := os.Create(ts.MkAbs(args[0] + ".log"))
	ts.Check(err)
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.Background(), args[1], args[2:]...) //nolint:gosec // a test's own script
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), log, log
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "TOYCLOUD", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "SLUICE_SERVER", "SLUICE_TOKEN",
		"CI_PROJECT_ID", "CI_PIPELINE_ID", "CI_JOB_NAME",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	ts.Value(runningKey{}).(*running).commands[args[0]] = cmd
}

// interrupt sends Ctrl-C to a command: interrupt NAME, or another signal:
// interrupt NAME TERM; or kill -9: ! interrupt.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	signal := os.Interrupt
	switch {
	case neg:
		signal = os.Kill
	case len(args) == 2 && args[1] == "TERM":
		signal = syscall.SIGTERM
	}
	ts.Check(ts.Value(runningKey{}).(*running).commands[args[0]].Process.Signal(signal))
}

// ended waits for a command and compares its exit status: ended NAME N.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	cmd := ts.Value(runningKey{}).(*running).commands[args[0]]
	err := cmd.Wait()
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		for name := range ts.Value(runningKey{}).(*running).commands {
			ts.Logf("%s.log:\n%s", name, ts.ReadFile(name+".log"))
		}
		ts.Fatalf("%s: exit status %s, want %s (%v)", args[0], got, args[1], err)
	}
	delete(ts.Value(runningKey{}).(*running).commands, args[0])
}

// creates makes the world's cloud fail the next creates: creates CODE….
func creates(ts *testscript.TestScript, _ bool, args []string) {
	codes := make([]fleet.Code, len(args))
	for i, arg := range args {
		codes[i] = fleet.Code(arg)
	}
	world(ts).Cloud().FailCreates(codes...)
}

// deletes makes the world's cloud take that long for a delete: deletes 5s.
func deletes(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	world(ts).Cloud().SlowDeletes(d)
}

var (
	operationID = regexp.MustCompile(`op-[0-9a-z]+`)
	eventLine   = regexp.MustCompile(`^\d\d:\d\d:\d\d  `)
)

// told compares what a command printed while it followed an operation with
// the operation's journal: each line once, in order: told NAME.
func told(ts *testscript.TestScript, _ bool, args []string) {
	log := ts.ReadFile(args[0] + ".log")
	ts.Check(ts.Exec("sluice", "op", "show", operationID.FindString(log)))
	printed := strings.Split(log, "\n")
	var journal []string
	for line := range strings.SplitSeq(ts.ReadFile("stdout"), "\n") {
		if eventLine.MatchString(line) {
			journal = append(journal, line)
		}
	}
	if len(journal) < 5 {
		ts.Fatalf("the journal has only %d lines", len(journal))
	}
	next := 0
	for _, line := range printed {
		switch {
		case next < len(journal) && line == journal[next]:
			next++
		case slices.Contains(journal, line):
			ts.Fatalf("lost or doubled: %q comes where %q should\n%s", line, journal[min(next, len(journal)-1)], log)
		}
	}
	if missing := journal[next:]; !onlyLater(missing) {
		ts.Fatalf("%d lines were not told: %q\n%s", len(missing), missing, log)
	}
}

// onlyLater says whether lines are of what follows an operation that has
// ended: nobody waits for that beside a server.
func onlyLater(lines []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(line, "  succeeded") })
}
