package fleet

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestRefIsReadAsItIsWritten(t *testing.T) {
	ref, err := ParseRef("gcp-shared/runner-01")
	if err != nil || ref != (Ref{Fleet: "gcp-shared", VM: "runner-01"}) || ref.String() != "gcp-shared/runner-01" {
		t.Errorf("got %v, %v", ref, err)
	}
	for _, bad := range []string{"", "runner-01", "/runner-01", "shared/", "a/b/c", "/"} {
		_, err := ParseRef(bad)
		if CodeOf(err) != CodeInvalid || HintOf(err) != "write FLEET/VM, for example gcp-shared/runner-01" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestKindsSayWhatTheyDoToAVM(t *testing.T) {
	for kind, want := range map[Kind][3]bool{ // drains, deletes, creates
		KindRecreate: {true, true, true},
		KindDelete:   {true, true, false},
		KindCreate:   {false, false, true},
		KindDrain:    {true, false, false},
		KindUndrain:  {false, false, false},
	} {
		if got := [3]bool{kind.Drains(), kind.Deletes(), kind.Creates()}; got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}

func TestJobIsNamedByItsLink(t *testing.T) {
	if got := testJob.String(); got != "job 42 (https://gitlab.example.com/g/p/-/jobs/42)" {
		t.Error(got)
	}
	if got := (Job{ID: 42}).String(); got != "job 42" {
		t.Error(got)
	}
}

// The id becomes a label on the VM: lower-case letters, digits and hyphens,
// begun by a letter, at most 63 (the rules of Compute and Kubernetes).
func TestOperationIDFitsALabel(t *testing.T) {
	label := regexp.MustCompile(`^op-[a-z0-9]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id, err := NewOperationID(nil)
		if err != nil || !label.MatchString(id) || seen[id] {
			t.Fatalf("%q, %v, seen before: %t", id, err, seen[id])
		}
		seen[id] = true
	}
	a, _ := NewOperationID(strings.NewReader("12345678"))
	b, _ := NewOperationID(bytes.NewBufferString("12345678"))
	if a != b || a == "" {
		t.Errorf("the same randomness gave %q and %q", a, b)
	}
	if _, err := NewOperationID(iotest.ErrReader(errRefused)); CodeOf(err) != CodeInternal {
		t.Errorf("without randomness: %v", err)
	}
}

// Case T42: a repeat after a crash must carry the token of the first call.
func TestRequestTokenIsTheSameForARepeatOnly(t *testing.T) {
	first := RequestToken("op-1", "create", 1)
	if again := RequestToken("op-1", "create", 1); again != first {
		t.Errorf("a repeat has %s, not %s", again, first)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(first) {
		t.Errorf("%s is no UUIDv5", first)
	}
	for _, other := range []string{
		RequestToken("op-1", "create", 2), RequestToken("op-1", "delete", 1), RequestToken("op-2", "create", 1),
	} {
		if other == first {
			t.Errorf("two different calls share the token %s", first)
		}
	}
}

func TestVMServesUnlessSomethingSpeaksAgainstIt(t *testing.T) {
	for _, test := range []struct {
		vm   VM
		want bool
	}{
		{VM{Intake: IntakeServing}, true},
		{VM{}, true},
		{VM{Intake: IntakeDrained}, false},
		{VM{Intake: IntakeServing, Missing: true}, false},
		{VM{Intake: IntakeServing, Failed: true}, false},
	} {
		if got := test.vm.Serving(); got != test.want {
			t.Errorf("%+v: serving %t", test.vm, got)
		}
	}
}

func TestOperationTellsWhereItStands(t *testing.T) {
	op := Operation{Fleet: "shared", VM: "runner-01", Kind: KindRecreate, Phase: PhaseDraining, Old: testExpected.Incarnation}
	if got, want := op.Position(), (Position{Kind: KindRecreate, Phase: PhaseDraining}); got != want {
		t.Errorf("untouched: %+v", got)
	}
	op.Order.Verb = OrderStop
	if !op.Position().Stopping {
		t.Error("an order was given, and intake still counts as untouched")
	}
	op.Delete.IntentAt = time.Unix(1, 0)
	if !op.Position().Intent {
		t.Error("the intent is committed, and the way back still counts as open")
	}
	if got := op.OldSubject(); got != testExpected {
		t.Errorf("evidence must be about %+v", got)
	}
	if chore := (&Chore{Fleet: "shared", VM: "runner-01"}); chore.Ref() != op.Ref() {
		t.Errorf("the chore is about %s", chore.Ref())
	}
}
