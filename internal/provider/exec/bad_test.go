package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// with yields a provider whose verbs are the toy's, but for one.
func with(t *testing.T, w *toy, verb Verb, argv ...string) *Provider {
	t.Helper()
	cfg := w.config(t, t.TempDir())
	cfg.Commands[verb] = argv
	return newProvider(t, cfg)
}

func TestABadAnswerToDescribeIsAnErrorThatSaysWhatIsWrong(t *testing.T) { // T17: unknown is not absent
	one := `{"id":"i","vm":"vm-1","presence":"running"}`
	cases := map[string]struct {
		body  string
		words []string
	}{
		"junk":             {`echo "vm-1 is fine"`, []string{"not the expected JSON", `"vm-1 is fine"`}},
		"nothing":          {`:`, []string{"printed nothing"}},
		"half a document":  {`printf '{"instances":['`, []string{"not the expected JSON"}},
		"no list":          {`echo '{}'`, []string{`no "instances"`}},
		"null list":        {`echo '{"instances":null}'`, []string{`no "instances"`}},
		"wrong type":       {`echo '{"instances":"none"}'`, []string{"not the expected JSON"}},
		"array":            {`echo '[]'`, []string{"not the expected JSON"}},
		"unknown field":    {`echo '{"instances":[{"id":"i","vm":"vm-1","adress":"x"}]}'`, []string{`"adress"`}},
		"two documents":    {`echo '{"instances":[]}{"instances":[]}'`, []string{"after the JSON document"}},
		"a log on stdout":  {`echo '{"instances":[]}'; echo done`, []string{"after the JSON document", `"done"`}},
		"other version":    {`echo '{"version":2,"instances":[]}'`, []string{"version 2"}},
		"no id":            {`echo '{"instances":[{"vm":"vm-1","presence":"running"}]}'`, []string{"no id"}},
		"no name":          {`echo '{"instances":[{"id":"i","presence":"running"}]}'`, []string{`"i" has no vm`}},
		"no presence":      {`echo '{"instances":[{"id":"i","vm":"vm-1"}]}'`, []string{"presence"}},
		"listed as absent": {`echo '{"instances":[{"id":"i","vm":"vm-1","presence":"absent"}]}'`, []string{"leave it out"}},
		"twice the same":   {`echo '{"instances":[` + one + `,` + one + `]}'`, []string{"twice"}},
		"another VM":       {`echo '{"instances":[{"id":"i","vm":"vm-2","presence":"off"}]}'`, []string{"asked about vm-1", "vm-2"}},
		"exit 3":           {`echo '{"instances":[]}'; exit 3`, []string{"exit status 3", "absence is exit status 0"}},
		"exit 1":           {`echo "no route" >&2; exit 1`, []string{"exit status 1", "no route", "describe.log"}},
		"exit 2":           {`exit 2`, []string{"exit status 2"}},
		"exit 127":         {`no-such-tool`, []string{"was not found", "describe.log"}},
		"dies by signal":   {`kill -9 $$`, []string{"signal 9"}},
		"explains itself":  {`echo '{"error":"no key","hint":"log in"}'; exit 5`, []string{"no key", "log in"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := with(t, newToy(t), VerbDescribe, script(t, c.body))
			list, err := p.Describe(t.Context(), "vm-1")
			if err == nil {
				t.Fatalf("answers %+v without an error", list)
			}
			wantCode(t, err, fleet.CodeUnavailable)
			wantText(t, err, append(c.words, "lab/vm-1", "describe command")...)
		})
	}
}

func TestACommandThatCannotBeRunIsInvalidAndPrepareSaysSo(t *testing.T) { // T38
	plain := filepath.Join(t.TempDir(), "plain.sh")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"missing": "/nonexistent/vm.sh", "not executable": plain, "not in PATH": "no-such-command-here"} {
		for _, verb := range []Verb{VerbPrepare, VerbCreate, VerbDelete} {
			t.Run(name+" "+string(verb), func(t *testing.T) {
				w := newToy(t)
				_, err := with(t, w, verb, path).Prepare(t.Context(), "vm-1", "toy-42")
				wantCode(t, err, fleet.CodeInvalid)
				wantText(t, err, "fleet lab", "the "+string(verb)+" command cannot be run", path, "full path")
			})
		}
	}
}

func TestAReadingCommandThatHangsIsEndedWithAllItStarted(t *testing.T) {
	w := newToy(t)
	cfg := w.config(t, t.TempDir())
	command := script(t, "trap '' TERM\n(while :; do sleep 1000; done) &\nwait") // the child is in the same argv
	cfg.Commands[VerbList] = []string{command}
	cfg.Timeouts = map[Verb]time.Duration{VerbList: 800 * time.Millisecond}
	p := newProvider(t, cfg)
	_, err := p.List(t.Context())
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "fleet lab", "list command", "did not end within 800ms")
	if left := commandsWith(t, command); len(left) != 0 {
		t.Errorf("still alive: %v", left)
	}
}

// commandsWith lists the living processes whose command line has the text; a
// test's own temporary path makes it unique.
func commandsWith(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(raw), text) {
			found = append(found, file)
		}
	}
	return found
}

func TestAReadingCommandThatFloodsIsEnded(t *testing.T) {
	p := with(t, newToy(t), VerbDescribe, script(t, "yes '{}'"))
	began := time.Now()
	_, err := p.Describe(t.Context(), "vm-1")
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "more than 1 MiB on stdout")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s: the flood was read to the timeout", took)
	}
}

func TestAFloodOfLogIsCutToItsEnd(t *testing.T) {
	p := with(t, newToy(t), VerbDescribe, script(t, "yes noise | head -c 3000000 >&2; echo 'the reason' >&2; exit 5"))
	_, err := p.Describe(t.Context(), "vm-1")
	wantText(t, err, "the reason")
	info, err := os.Stat(filepath.Join(p.vmDir("vm-1"), "describe.log"))
	if err != nil || info.Size() > maxTail || info.Mode().Perm() != 0o600 {
		t.Errorf("the kept log: %v, %v; want at most %d bytes, mode 0600", info, err, maxTail)
	}
}

func TestABackgroundChildDoesNotHoldAReadingCommand(t *testing.T) {
	p := with(t, newToy(t), VerbDescribe, script(t, "sleep 1000 &\necho '{\"instances\":[]}'"))
	began := time.Now()
	if list, err := p.Describe(t.Context(), "vm-1"); err != nil || len(list) != 0 {
		t.Fatalf("answers %v, %v", list, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestJunkFromACreateIsJudgedByWhatIsThere(t *testing.T) {
	w := newToy(t)
	toyScript := w.config(t, "/nowhere").Commands[VerbCreate][0]
	p := with(t, w, VerbCreate, script(t, toyScript+" >/dev/null; echo 'VM created!'"))
	progress, err := settleCreate(t, p, createOrder("vm-1", 1))
	if err != nil || !progress.Done || progress.Instance.ID != w.ids(t)[0] {
		t.Fatalf("answers %+v, %v", progress, err)
	}
}

func TestACreateThatDidNothingIsNotDoneAndThenUnavailable(t *testing.T) { // T3, T42
	w := newToy(t)
	clock := &laterClock{}
	cfg := w.config(t, t.TempDir())
	cfg.Commands[VerbCreate] = []string{"true"}
	p, err := New(cfg, clock, quietLog())
	if err != nil {
		t.Fatal(err)
	}
	progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
	if err != nil || progress.Done || !strings.Contains(progress.Detail, "does not show") {
		t.Fatalf("answers %+v, %v; want not done yet", progress, err)
	}
	clock.ahead = settle + time.Second
	_, err = p.Create(t.Context(), createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "sluice-operation=op-test1", "its log is")
}

func TestADeleteThatDidNothingIsNotDoneAndThenUnavailable(t *testing.T) { // T3
	for _, exit := range []string{"exit 0", "exit 3"} {
		t.Run(exit, func(t *testing.T) {
			w, clock := newToy(t), &laterClock{}
			cfg := w.config(t, t.TempDir())
			cfg.Commands[VerbDelete] = []string{script(t, exit)}
			p, err := New(cfg, clock, quietLog())
			if err != nil {
				t.Fatal(err)
			}
			id := w.Appear(t, "vm-1", nil)
			progress, err := p.Delete(t.Context(), deleteOrder("vm-1", id, 1))
			if err != nil || progress.Done || !strings.Contains(progress.Detail, "still shows instance "+id) {
				t.Fatalf("answers %+v, %v; want not done yet", progress, err)
			}
			clock.ahead = settle + time.Second
			_, err = p.Delete(t.Context(), deleteOrder("vm-1", id, 1))
			wantCode(t, err, fleet.CodeUnavailable)
			wantText(t, err, "lab/vm-1", "delete command", "still shows instance "+id, "its log is")
		})
	}
}

func TestAFailedCreateNamesWhatItLeft(t *testing.T) { // T43
	w := newToy(t)
	toyScript := w.config(t, "/nowhere").Commands[VerbCreate][0]
	p := with(t, w, VerbCreate, script(t, toyScript+" >/dev/null; echo 'setup failed' >&2; exit 1"))
	progress, err := settleCreate(t, p, createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "create command failed", "exit status 1", "setup failed", "its log is")
	if progress.Instance == nil || progress.Instance.ID != w.ids(t)[0] {
		t.Errorf("it names %+v, the cloud has %v", progress.Instance, w.ids(t))
	}
}

func TestAVMNameThatIsNoNameTouchesNothing(t *testing.T) { // T92
	w, p := newLab(t)
	order := createOrder("../../escape", 1)
	_, err := p.Create(t.Context(), order)
	wantCode(t, err, fleet.CodeInvalid)
	order = createOrder("vm-1", 1)
	order.Token = "../x"
	_, err = p.Create(t.Context(), order)
	wantCode(t, err, fleet.CodeInvalid)
	order = createOrder("vm-1", 1)
	order.Fleet = "other"
	_, err = p.Create(t.Context(), order)
	wantCode(t, err, fleet.CodeInvalid)
	if calls := w.read(t, "calls"); calls != "" {
		t.Errorf("commands ran: %s", calls)
	}
}
