package exec

import (
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestAConfigurationThatCannotWorkIsRefusedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Config)
		words []string
	}{
		"no prepare":        {func(c *Config) { delete(c.Commands, VerbPrepare) }, []string{"prepare is missing", `prepare: ["true"]`}},
		"no describe":       {func(c *Config) { delete(c.Commands, VerbDescribe) }, []string{"describe is missing"}},
		"unknown verb":      {func(c *Config) { c.Commands["destroy"] = []string{"x"} }, []string{`"destroy"`, "list, describe"}},
		"empty argv":        {func(c *Config) { c.Commands[VerbCreate] = []string{} }, []string{"create has no command", "argv array"}},
		"relative state":    {func(c *Config) { c.StateDir = "state" }, []string{`"state"`, "absolute"}},
		"reserved variable": {func(c *Config) { c.Env["SLUICE_VM"] = Value{Literal: "x"} }, []string{"SLUICE_VM", "reserved"}},
		"bad variable":      {func(c *Config) { c.Env["A-B"] = Value{Literal: "x"} }, []string{`"A-B"`}},
		"two sources":       {func(c *Config) { c.Env["A"] = Value{Literal: "x", File: "/y"} }, []string{"A has more than one source"}},
		"timeout too long":  {func(c *Config) { c.Timeouts = map[Verb]time.Duration{VerbList: time.Minute} }, []string{"1m0s for list", "20s"}},
		"timeout of create": {func(c *Config) { c.Timeouts = map[Verb]time.Duration{VerbCreate: time.Second} }, []string{"create is a long command", "command_timeout"}},
		"negative":          {func(c *Config) { c.CommandTimeout = -1 }, []string{"command_timeout", "negative"}},
		"no fleet":          {func(c *Config) { c.Fleet = "" }, []string{"fleet name"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newToy(t).config(t, t.TempDir())
			c.spoil(&cfg)
			_, err := New(cfg, wallClock{}, quietLog())
			wantCode(t, err, fleet.CodeInvalid)
			wantText(t, err, c.words...)
		})
	}
}

func TestAMissingSecretIsNamedBeforeAnythingIsTouched(t *testing.T) {
	w := newToy(t)
	cfg := w.config(t, t.TempDir())
	cfg.Env["RUNNER_TOKEN"] = Value{File: "/nonexistent/token"}
	p := newProvider(t, cfg)
	_, err := p.Prepare(t.Context(), "vm-1", "toy-42")
	wantCode(t, err, fleet.CodeInvalid)
	wantText(t, err, "fleet lab", "RUNNER_TOKEN", "/nonexistent/token", "readable")
	if calls := w.read(t, "calls"); calls != "" {
		t.Errorf("commands ran: %s", calls)
	}
}

func TestCheckRefusesAnImageThatPrepareNoLongerKeeps(t *testing.T) {
	w := newToy(t)
	p := with(t, w, VerbPrepare, script(t, `echo '{"image":"another"}'`))
	err := p.Check(t.Context(), "vm-1", fleet.Prepared{Image: "toy-42"})
	wantCode(t, err, fleet.CodeInvalid)
	wantText(t, err, "lab/vm-1", `"toy-42"`, `"another"`)
}

func TestACheckCommandIsUsedWhereThereIsOne(t *testing.T) {
	w := newToy(t)
	p := with(t, w, VerbCheck, script(t, `[ "$SLUICE_IMAGE" = toy-42 ] || { echo gone >&2; exit 8; }`))
	if err := p.Check(t.Context(), "vm-1", fleet.Prepared{Image: "toy-42"}); err != nil {
		t.Fatal(err)
	}
	err := p.Check(t.Context(), "vm-1", fleet.Prepared{Image: "toy-41"})
	wantCode(t, err, fleet.CodeImageMissing)
	wantText(t, err, "lab/vm-1", "check command", "gone")
}

func TestPrepareWithoutAnAnswerKeepsImageAndSpec(t *testing.T) {
	w := newToy(t)
	p := with(t, w, VerbPrepare, "true")
	got, err := p.Prepare(t.Context(), "vm-1", "anything")
	if err != nil || got.Image != "anything" || string(got.Spec) != `{"size":"small"}` {
		t.Errorf("prepared %+v, %v", got, err)
	}
}
