package runnerhost

import (
	"testing"
	"time"
)

func TestALookAtARunningHostIsACompleteReading(t *testing.T) {
	w := newWorld(t, nil)
	id := w.job(time.Minute)
	r := w.look()
	if !r.Complete() || r.Problem != "" {
		t.Fatalf("incomplete: %+v", r)
	}
	if r.Unit.ActiveState != "active" || r.Unit.SubState != "running" || r.Unit.MainPID == 0 || r.Unit.Result != "success" {
		t.Errorf("unit = %+v", r.Unit)
	}
	if r.Subject.BootID != w.BootID() || r.Subject.SystemID != w.SystemID() || r.Subject.Instance != "i-1" {
		t.Errorf("subject = %+v", r.Subject)
	}
	if len(r.Containers) != 1 || r.Containers[0].JobID != id {
		t.Errorf("containers = %+v, job %d", r.Containers, id)
	}
	if r.DropIn.Present || r.DropIn.Effective {
		t.Errorf("drop-in = %+v", r.DropIn)
	}
}
