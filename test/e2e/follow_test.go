//go:build e2e

package e2e_test

import (
	"encoding/json"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
)

// operation reads an operation from the controller.
func (s *scene) operation(id string) client.Operation {
	s.t.Helper()
	var op client.Operation
	said := s.answer("op", "show", id, "--output", "json")
	if err := json.Unmarshal([]byte(said), &op); err != nil {
		s.t.Fatalf("%v: %s", err, said)
	}
	return op
}

// asks begins, at the scene's server, what a person asks for, and yields the operation.
func (s *scene) asks(args ...string) string {
	s.t.Helper()
	return operationIn(s.t, s.sluice(exitDone, append(args, "--detach", "--yes")...))
}

// recreates begins to replace a VM and yields the operation.
func (s *scene) recreates(vm string) string {
	s.t.Helper()
	return s.asks("recreate", fleetName+"/"+vm, "--image", "v2", "--parallel", "9")
}

// follow waits for an operation's end, and for the status that its command would have had.
func (s *scene) follow(id string, status int) client.Operation {
	s.t.Helper()
	s.start("op", "watch", id).wait(2*time.Minute, status)
	return s.operation(id)
}

// awaitPhase waits until an operation is in a phase.
func (s *scene) awaitPhase(id string, phase client.OperationPhase, limit time.Duration) {
	s.t.Helper()
	s.await(limit, "the operation to be "+string(phase), func() (bool, error) {
		return s.operation(id).Phase == phase, nil
	})
}

// mustEndWith fails unless the drain of an operation ended with this verdict, and with
// these jobs told to have been cut.
func (s *scene) mustEndWith(op client.Operation, verdict string, cut ...int64) {
	s.t.Helper()
	if op.Verdict == nil || *op.Verdict != verdict {
		s.t.Errorf("%s on %s: verdict %s, want %s", op.Id, op.Vm, text(op.Verdict), verdict)
	}
	var told []int64
	if op.CutJobs != nil {
		for _, job := range *op.CutJobs {
			told = append(told, job.Id)
		}
	}
	if len(told) != len(cut) || len(cut) > 0 && told[0] != cut[0] {
		s.t.Errorf("%s on %s: cut jobs %v, want %v", op.Id, op.Vm, told, cut)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// mustNotBeDeleted fails if anybody asked the cloud to delete a host.
func (s *scene) mustNotBeDeleted(h *host) {
	s.t.Helper()
	visits, err := s.World.Visits()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range visits {
		if v.Verb == "delete" && v.Instance == h.ID {
			s.t.Errorf("%s was deleted: %+v", h.Name, v)
		}
	}
}

// mustBeUntouched fails unless the host's runner is the very process pid, and nothing of
// ours lies on the host.
func (h *host) mustBeUntouched(pid string) {
	h.scene.t.Helper()
	for property, want := range map[string]string{"ActiveState": "active", "MainPID": pid, "Restart": "always", "Job": ""} {
		if got := h.unit(property); got != want {
			h.scene.t.Errorf("%s: the runner's %s is %q, want %q", h.Name, property, got, want)
		}
	}
	if left := h.root("ls /run/systemd/system/gitlab-runner.service.d/*sluice* 2>/dev/null || :"); strings.Contains(left, ".conf") {
		h.scene.t.Errorf("%s: left on the host: %s", h.Name, left)
	}
}
