package exec

import (
	"os"
	"path/filepath"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func TestACreateThatVanishedBeforeItsEffectIsTriedAgain(t *testing.T) {
	w, p := newLab(t)
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	kill(t, live(t, p, "vm-1"))
	w.HoldActs(t, false)
	_, err := p.Create(t.Context(), createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "lab/vm-1", "create", "vanished", "its log is")
	if progress, err := settleCreate(t, p, createOrder("vm-1", 2)); err != nil || len(w.ids(t)) != 1 {
		t.Fatalf("the second attempt: %+v, %v; the cloud has %v", progress, err, w.ids(t))
	}
}

func TestACreateThatVanishedAfterItsEffectIsDone(t *testing.T) { // T42, T43
	w, p := newLab(t)
	w.flag(t, "hold-answer", true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the instance", func() bool { return len(w.ids(t)) == 1 })
	kill(t, live(t, p, "vm-1"))
	progress, err := p.Create(t.Context(), createOrder("vm-1", 1))
	if err != nil || !progress.Done || progress.Instance.ID != w.ids(t)[0] {
		t.Fatalf("answers %+v, %v; want the instance %v", progress, err, w.ids(t))
	}
}

func TestADeleteThatVanishedIsJudgedByWhatIsThere(t *testing.T) {
	for hold, done := range map[string]bool{"hold-delete": false, "hold-answer": true} {
		t.Run(hold, func(t *testing.T) {
			w, p := newLab(t)
			id := w.Appear(t, "vm-1", nil)
			w.flag(t, hold, true)
			if progress, err := p.Delete(t.Context(), deleteOrder("vm-1", id, 1)); err != nil || progress.Done {
				t.Fatalf("a delete whose command still runs answers %+v, %v", progress, err)
			}
			eventually(t, "the effect", func() bool { return w.Exists(t, id) != done })
			kill(t, live(t, p, "vm-1"))
			w.flag(t, hold, false)
			progress, err := p.Delete(t.Context(), deleteOrder("vm-1", id, 1))
			if progress.Done != done || (err == nil) != done {
				t.Fatalf("answers %+v, %v; want done %t", progress, err, done)
			}
			if progress, err = settleDelete(t, p, deleteOrder("vm-1", id, 2)); err != nil || w.Exists(t, id) {
				t.Fatalf("the second attempt: %+v, %v", progress, err)
			}
		})
	}
}

func TestADeleteHasNotEndedWhileItsCommandRuns(t *testing.T) { // T3
	w, p := newLab(t)
	id := w.Appear(t, "vm-1", nil)
	w.flag(t, "hold-answer", true)
	if _, err := p.Delete(t.Context(), deleteOrder("vm-1", id, 1)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the instance to be absent", func() bool { return !w.Exists(t, id) })
	progress, err := p.Delete(t.Context(), deleteOrder("vm-1", id, 1))
	if err != nil || progress.Done {
		t.Fatalf("absent, its command at work: %+v, %v; want not done", progress, err)
	}
	left, err := p.Remains(t.Context(), deleteOrder("vm-1", id, 1))
	if err != nil || len(left) != 1 {
		t.Fatalf("remains %q, %v; want the command that still runs", left, err)
	}
	w.flag(t, "hold-answer", false)
	if _, err := settleDelete(t, p, deleteOrder("vm-1", id, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestALateSuccessBesideANewAttemptIsVisible(t *testing.T) { // T42, T45, T62
	w, p := newLab(t)
	w.LoseCreate(t)
	_, err := settleCreate(t, p, createOrder("vm-1", 1))
	wantCode(t, err, fleet.CodeUnavailable)
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 2)); err != nil {
		t.Fatal(err)
	}
	late := w.DeliverLate(t)
	w.HoldActs(t, false)
	first, err := settleCreate(t, p, createOrder("vm-1", 2))
	if err != nil {
		t.Fatal(err)
	}
	again, err := settleCreate(t, p, createOrder("vm-1", 2))
	if err != nil || again.Instance.ID != first.Instance.ID || first.Instance.ID == late {
		t.Fatalf("names %s, then %s (%v); want twice the one its command made, not %s", first.Instance.ID, again.Instance.ID, err, late)
	}
	list, err := p.Describe(t.Context(), "vm-1")
	if err != nil || len(list) != 2 {
		t.Fatalf("described: %+v, %v; want both", list, err)
	}
	for _, instance := range list {
		if instance.Labels[fleet.LabelOperation] != "op-test1" {
			t.Errorf("instance %s carries %v, want the operation's label", instance.ID, instance.Labels)
		}
	}
	if _, err := settleDelete(t, p, deleteOrder("vm-1", late, 1)); err != nil || len(w.ids(t)) != 1 {
		t.Fatalf("the late one cannot be deleted by id: %v; the cloud has %v", err, w.ids(t))
	}
}

func TestAResultThatCannotBeWrittenIsJudgedByWhatIsThere(t *testing.T) { // a full disk
	w, p := newLab(t)
	w.HoldActs(t, true)
	if _, err := p.Create(t.Context(), createOrder("vm-1", 1)); err != nil {
		t.Fatal(err)
	}
	s := live(t, p, "vm-1")
	if err := os.Mkdir(s.path(fileResult+".tmp"), 0o700); err != nil { // no file can be made there
		t.Fatal(err)
	}
	w.HoldActs(t, false)
	progress, err := settleCreate(t, p, createOrder("vm-1", 1))
	if err != nil || !progress.Done || len(w.ids(t)) != 1 {
		t.Fatalf("answers %+v, %v; the cloud has %v", progress, err, w.ids(t))
	}
	if _, err := os.Stat(s.path(fileResult)); err == nil {
		t.Error("there is a result; this test tests nothing")
	}
}

func TestNoSpaceForTheSessionMeansNothingIsRun(t *testing.T) {
	w, p := newLab(t)
	order := createOrder("vm-1", 1)
	key := filepath.Join(p.sessions("vm-1"), "create."+order.Operation+".1."+order.Token)
	if err := os.MkdirAll(filepath.Join(key, fileSession+".tmp"), 0o700); err != nil { // a directory where the file must be
		t.Fatal(err)
	}
	_, err := p.Create(t.Context(), order)
	wantCode(t, err, fleet.CodeUnavailable)
	wantText(t, err, "vm-1", "not started", "writable")
	if n := w.calls(t, VerbCreate); n != 0 {
		t.Errorf("%d creates ran without a record", n)
	}
}

func TestAHalfWrittenResultIsNone(t *testing.T) {
	for content, want := range map[string]bool{"0\n": true, "17\n": true, "0": false, "": false, "x\n": false, "1\n2\n": false, "999\n": false} {
		s := &session{dir: t.TempDir()}
		if err := os.WriteFile(s.path(fileResult), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.result(); ok != want || err != nil {
			t.Errorf("result %q counts: %t, %v; want %t", content, ok, err, want)
		}
	}
}
