package exec

import (
	"encoding/json"
	"strings"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestTheRequestSaysWhatTheProtocolPromises(t *testing.T) {
	w, p := newLab(t)
	order := createOrder("vm-1", 3)
	order.Prepared.Spec = json.RawMessage(`{"size":"stored"}`)
	if _, err := settleCreate(t, p, order); err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"verb":"create","fleet":"lab","vm":"vm-1","image":"toy-42","operation":"op-test1","attempt":3,"token":"` +
		order.Token + `","spec":{"size":"stored"}}`
	if got := strings.TrimSpace(w.read(t, "last-create.json")); got != want {
		t.Errorf("create was asked\n%s, want\n%s", got, want)
	}
	want = `{"version":1,"verb":"describe","fleet":"lab","vm":"vm-1","spec":{"size":"small"}}`
	if got := strings.TrimSpace(w.read(t, "last-describe.json")); got != want {
		t.Errorf("describe was asked\n%s, want\n%s", got, want)
	}
}

func TestExitCodesMeanWhatTheProtocolSays(t *testing.T) {
	for exit, want := range map[int]fleet.Code{
		1: fleet.CodeUnavailable, 2: fleet.CodeInvalid, 3: fleet.CodeNotFound, 4: fleet.CodeConflict, 5: fleet.CodeUnavailable,
		6: fleet.CodeQuota, 7: fleet.CodeStockout, 8: fleet.CodeImageMissing, 9: fleet.CodeForbidden,
		10: fleet.CodeUnavailable, 126: fleet.CodeUnavailable, 127: fleet.CodeUnavailable, 137: fleet.CodeUnavailable, 255: fleet.CodeUnavailable,
	} {
		if got := (outcome{exit: exit}).code(); got != want {
			t.Errorf("exit %d means %s, want %s", exit, got, want)
		}
	}
	if got := (outcome{exit: 2, why: "it was ended"}).code(); got != fleet.CodeUnavailable {
		t.Errorf("a command that Sluice ended counts as %s: its own exit status means nothing", got)
	}
}

func TestLastLineIsSafeToShow(t *testing.T) {
	for log, want := range map[string]string{
		"one\ntwo\n":              "two",
		"one\n\n  \n":             "one",
		"50%\r100%\r":             "100%",
		"\x1b[31mred\x1b[0m\n":    "[31mred[0m",
		"":                        "",
		strings.Repeat("x", 1000): strings.Repeat("x", maxLastLine) + "…",
	} {
		if got := lastLine([]byte(log)); got != want {
			t.Errorf("the last line of %q is %q, want %q", log, got, want)
		}
	}
}

func TestAProcessNameWithParenthesesIsReadRight(t *testing.T) {
	const line = `4242 (a) b ( S 1) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1`
	got, err := parseStat(4242, line)
	if err != nil || got.session != 77 || got.start != 987654 || got.dead {
		t.Errorf("read as %+v, %v", got, err)
	}
	for _, bad := range []string{"", "4242 (x", "4242 (x) S 1", `4242 (x) S 1 77 sid 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 1`} {
		if got, err := parseStat(4242, bad); err == nil {
			t.Errorf("%q is read as %+v", bad, got)
		}
	}
}
