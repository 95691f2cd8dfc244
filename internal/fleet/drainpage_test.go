package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

//go:generate go test -run TestDrainPageIsInStep -update .

// lineOfPage is a row of the drain's table for people: when it matches, and
// situations that it decides, from which its cells are computed.
type lineOfPage struct {
	says     string
	examples []worldWords
}

// situation changes one thing about a VM whose runner has ended well, of which
// GitLab says idle.
func situation(change func(*worldWords)) worldWords {
	w := worldWords{
		host:   hostWords{answered: true, unit: "inactive", result: "success", boot: "same", dropIn: true, containers: "none"},
		gitlab: "idle", provider: "running", stopped: "long",
	}
	change(&w)
	return w
}

// linesOfPage has a line for each predicate of the table, by its name.
func linesOfPage() map[string]lineOfPage {
	of := func(says string, changes ...func(*worldWords)) lineOfPage {
		line := lineOfPage{says: says}
		for _, change := range changes {
			line.examples = append(line.examples, situation(change))
		}
		return line
	}
	return map[string]lineOfPage{
		"otherIncarnation": of("a reading is about another VM, or another incarnation of it, than preflight saw",
			func(w *worldWords) { w.provider = "another running" }, func(w *worldWords) { w.host.other = true },
			func(w *worldWords) { w.gitlab = "somebody else's" }),
		"noGuest": of("the host does not answer, and the provider says that the instance is off or absent",
			func(w *worldWords) { w.host, w.provider = hostWords{}, "off" }, func(w *worldWords) { w.host, w.provider = hostWords{}, "absent" }),
		"unreachable": of("the host does not answer",
			func(w *worldWords) { w.host = hostWords{} }),
		"incomplete": of("the host's answer lacks the unit's state, the boot id or, with the process gone, the list of containers",
			func(w *worldWords) { w.host.unit = "" }, func(w *worldWords) { w.host.boot = "missing" },
			func(w *worldWords) { w.host.containers = "unknown" }),
		"intakeOpen": of("intake may be open: not stopped yet, or the host was rebooted, or our drop-in is not in effect, or the unit is anything but deactivating, inactive or failed",
			func(w *worldWords) { w.host.boot = "changed" }, func(w *worldWords) { w.host.dropIn = false },
			func(w *worldWords) { w.host.unit, w.host.pid = "active", true }),
		"busy": of("the unit is deactivating, or the runner process is still there, whatever GitLab says",
			func(w *worldWords) { w.host.unit, w.host.pid = "deactivating", true }),
		"gitlabUnknown": of("GitLab, asked after the process was seen gone, has given no whole answer",
			func(w *worldWords) { w.gitlab = "error" }, func(w *worldWords) { w.gitlab = "stale idle" }),
		"resultOnItsWay": of(fmt.Sprintf("GitLab shows a job, and the process was seen gone less than %s ago: its result is on the way", ResultGrace),
			func(w *worldWords) { w.gitlab, w.stopped = "running", "short" }),
		"gitlabActive": of("GitLab still shows a job",
			func(w *worldWords) { w.gitlab = "running" }, func(w *worldWords) { w.gitlab, w.host.result = "running", "exit-code" }),
		"leftovers": of("GitLab says idle, and containers are left",
			func(w *worldWords) { w.host.containers = "some" }),
		"always": of("GitLab says idle", func(*worldWords) {}),
	}
}

// predicate is the name of a row's condition.
func predicate(r row) string {
	name := runtime.FuncForPC(reflect.ValueOf(r.when).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

func (d Decision) forPeople() string {
	switch {
	case d.Action == ActWait:
		return "wait, look again"
	case d.Action == ActHold:
		return "wait for the process to end"
	case d.Action == ActStopIntake:
		return "stop intake"
	case d.Action == ActRestore:
		return "give intake back; the operation fails"
	case d.Action == ActConflict:
		return "fail (`conflict`), nothing is touched"
	case d.Action == ActProceed:
		return fmt.Sprintf("go on without a proof: `%s`", d.Verdict)
	case d.CutByOthers && d.Verdict == VerdictDrained:
		return "if it did not end well, too: the job was cut by others"
	case d.Row == 8:
		return "`drained`: if the runner ended well, the orphan watch takes over"
	default:
		return fmt.Sprintf("`%s`", d.Verdict)
	}
}

// decideWords asks the table about a situation, and insists on the row.
func decideWords(t *testing.T, row int, w worldWords) string {
	t.Helper()
	s := w.snapshot(readings{w.host.reading(), gitlabReadings()[w.gitlab], providerReadings()[w.provider]})
	d := Decide(&s)
	if d.Row != row {
		t.Fatalf("row %d decides a situation of row %d: %+v", d.Row, row, w)
	}
	return d.forPeople()
}

// policies are the three that a drain's end may depend on.
var policies = []struct {
	name   string
	values []string
	set    func(*worldWords, string)
}{
	{"unreachable", texts(unreachables), func(w *worldWords, v string) { w.unreachable = Unreachable(v) }},
	{"on_overrun", texts(overruns), func(w *worldWords, v string) { w.overrun = Overrun(v) }},
	{"on_unproven", texts(unprovens), func(w *worldWords, v string) { w.unproven = Unproven(v) }},
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// everyPolicy yields a situation under every combination of the policies.
func everyPolicy(w worldWords) []worldWords {
	list := []worldWords{w}
	for _, policy := range policies {
		var more []worldWords
		for _, world := range list {
			for _, value := range policy.values {
				policy.set(&world, value)
				more = append(more, world)
			}
		}
		list = more
	}
	return list
}

// cellOf says what a row decides in a situation, or on which policies it depends.
func cellOf(t *testing.T, row int, w worldWords) string {
	t.Helper()
	var depends []string
	for _, policy := range policies {
		for _, world := range everyPolicy(w) {
			other := world
			for _, value := range policy.values {
				policy.set(&other, value)
				name := "`" + policy.name + "`"
				if decideWords(t, row, world) != decideWords(t, row, other) && !slices.Contains(depends, name) {
					depends = append(depends, name)
				}
			}
		}
	}
	if len(depends) > 0 {
		return "by " + strings.Join(depends, " and ")
	}
	return decideWords(t, row, everyPolicy(w)[0])
}

// cellsOf are a line's: inside the cap, past a limit of its own, past the cap.
func cellsOf(t *testing.T, row int, line lineOfPage) [3]string {
	t.Helper()
	var cells [3]string
	for i, moment := range [][2]string{{"inside", "short"}, {"inside", "long"}, {"at the cap", "short"}} {
		var said []string
		for _, w := range line.examples {
			w.cap, w.silence, w.left = moment[0], moment[1], moment[1]
			cell := cellOf(t, row, w)
			if w.again = true; cellOf(t, row, w) != cell {
				cell += " once more, then " + cellOf(t, row, w)
			}
			if !slices.Contains(said, cell) {
				said = append(said, cell)
			}
		}
		cells[i] = strings.Join(said, "; ")
	}
	for i := 1; i < len(cells); i++ {
		if cells[i] == cells[0] {
			cells[i] = "as inside"
		}
	}
	return cells
}

func drainTable(t *testing.T) string {
	t.Helper()
	var page strings.Builder
	page.WriteString("| # | the first of these that holds | inside the cap | past a limit of its own | past the cap |\n| --- | --- | --- | --- | --- |\n")
	lines := linesOfPage()
	for _, r := range table {
		line, ok := lines[predicate(r)]
		if !ok {
			t.Fatalf("row %d: no words for %s", r.number, predicate(r))
		}
		delete(lines, predicate(r))
		cells := cellsOf(t, r.number, line)
		fmt.Fprintf(&page, "| %d | %s | %s | %s | %s |\n", r.number, line.says, cells[0], cells[1], cells[2])
	}
	for name := range lines {
		t.Errorf("words for %s, which no row asks", name)
	}
	return page.String()
}

// deadlineTable is what each policy does when its time is up.
func deadlineTable(t *testing.T) string {
	t.Helper()
	lines := linesOfPage()
	p := DefaultDrainPolicy()
	var page strings.Builder
	page.WriteString("| when | policy | then |\n| --- | --- | --- |\n")
	add := func(when string, row int, predicate, policy, value, moment string, base func(*worldWords)) {
		w := lines[predicate].examples[0]
		w.overrun, w.unproven, w.unreachable, w.cap, w.silence = p.OnOverrun, p.OnUnproven, p.Unreachable, moment, "long"
		if base != nil {
			base(&w)
		}
		for _, known := range policies {
			if known.name == policy {
				known.set(&w, value)
			}
		}
		fmt.Fprintf(&page, "| %s | `%s: %s` | %s |\n", when, policy, value, decideWords(t, row, w))
	}
	for _, v := range texts(unreachables) {
		add(fmt.Sprintf("the host was out of reach for `reach_deadline` (%s) without a break", brief(p.ReachDeadline)), 2, "unreachable", "unreachable", v, "inside", nil)
	}
	for _, v := range texts(overruns) {
		add(fmt.Sprintf("the `cap` (%s) has passed, the process runs", brief(p.Cap)), 5, "busy", "on_overrun", v, "at the cap", nil)
	}
	add(fmt.Sprintf("the `hard_cap` (%s) has passed, the process runs", brief(p.HardCap)), 5, "busy", "on_overrun", "wait", "at the hard cap", nil)
	for _, v := range texts(unprovens) {
		add("the `cap` has passed, the process is gone, and GitLab's answer is unknown (or the host's incomplete)", 6, "gitlabUnknown", "on_unproven", v, "at the cap", nil)
	}
	waiting := func(w *worldWords) { w.overrun = OverrunWait }
	add("the same, with `on_overrun: wait`", 6, "gitlabUnknown", "on_unproven", "abort", "at the cap", waiting)
	for _, v := range texts(unprovens) {
		add("the same at the `hard_cap`", 6, "gitlabUnknown", "on_unproven", v, "at the hard cap", waiting)
	}
	return page.String()
}

// brief is a duration without its zeros.
func brief(d time.Duration) string {
	return strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(d.String())
}

// between replaces what a page has between a marker and the end of it.
func between(t *testing.T, page, marker, text string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "<!-- "+marker+" -->\n")
	_, after, closed := strings.Cut(rest, "<!-- end of "+marker+" -->\n")
	if !ok || !closed {
		t.Fatalf("the page has no place for %s", marker)
	}
	return before + "<!-- " + marker + " -->\n" + text + "<!-- end of " + marker + " -->\n" + after
}

func TestDrainPageIsInStep(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "how-a-drain-works.md")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(got), "the decision table", drainTable(t))
	want = between(t, want, "the deadlines", deadlineTable(t))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Errorf("%s is not what the table decides: run make generate", path)
	}
}
