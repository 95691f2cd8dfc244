package runnerhost

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
)

// Whatever a host prints: a runner that is taken for stopped is one of which the
// script said so. All else is unknown, and says why.
func FuzzAnswer(f *testing.F) {
	const whole = "sluice-begin n\nboot_id=b\nsystem_id=s_1\nunit.MainPID=0\nunit.ActiveState=inactive\nunit.SubState=dead\n" +
		"unit.Result=success\ndropin.present=no\npodman.status=0\npodman.line=[]\nsluice-end n\n"
	f.Add(whole)
	f.Add("Welcome!\n" + whole + "logout\n")
	f.Add(strings.Replace(whole, "MainPID=0", "MainPID=17", 1))
	f.Add(strings.Replace(whole, "[]", `[{"Id":"c","Names":["runner-4711"],"State":"running","Labels":{},"StartedAt":1}]`, 1))
	f.Add(whole[:len(whole)/2])
	f.Add(whole + whole)
	f.Fuzz(func(t *testing.T, stdout string) {
		a, err := parseAnswer([]byte(stdout), "n")
		if err != nil {
			return
		}
		r := readReading(engine.Target{}, time.Unix(1, 0), a)
		if !r.Complete() && r.Problem == "" {
			t.Errorf("incomplete, and does not say why: %+v", r)
		}
		if !r.Complete() || !r.Unit.Stopped() {
			return
		}
		lines := strings.Split(stdout, "\n")
		said := func(prefix string) int {
			return len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, prefix) }))
		}
		if !slices.Contains(lines, "podman.status=0") || said("boot_id=") == 0 || said("unit.MainPID=") == 0 ||
			said("unit.ActiveState=inactive")+said("unit.ActiveState=failed") == 0 {
			t.Errorf("taken for a stopped runner: %q", stdout)
		}
	})
}
