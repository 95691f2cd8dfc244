package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/simclock"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// VMSummary is one VM as the cloud has it now.
type VMSummary struct {
	VM        string   `json:"vm"`
	First     string   `json:"first"`     // the instance it began with
	Instances []string `json:"instances"` // those that carry the name now
	Replaced  bool     `json:"replaced"`  // exactly one, and a new one
}

// Summary is the world's own account, from GitLab's ledger and the cloud.
type Summary struct {
	VMs         []VMSummary             `json:"vms"`
	Replaced    int                     `json:"replaced"`
	JobsRun     int                     `json:"jobs_run"`     // taken up by a runner
	Succeeded   int                     `json:"succeeded"`    // and ended well
	Cut         int                     `json:"cut"`          // ended by their VM's removal
	Orphaned    int                     `json:"orphaned"`     // assigned, never received
	CutJobs     []simgitlab.JobRecord   `json:"cut_jobs"`     // for people
	TokenDamage []simgitlab.TokenDamage `json:"token_damage"` // calls that hurt the shared token
	Twins       []string                `json:"twins"`        // names that two instances carry
	Missing     []string                `json:"missing"`      // names that none carries
	Strays      []string                `json:"strays"`       // instances and disks that belong to no VM
}

// Summary reads the account as of now.
func (w *World) Summary() Summary {
	ledger := w.gitlab.Ledger()
	s := Summary{
		JobsRun: ledger.Ran, Succeeded: ledger.Succeeded, Cut: ledger.Cut, Orphaned: ledger.Orphaned,
		TokenDamage: ledger.Damage,
	}
	for _, j := range ledger.Jobs {
		if j.Verdict == simgitlab.VerdictCut {
			s.CutJobs = append(s.CutJobs, j)
		}
	}
	w.countVMs(&s)
	return s
}

func (w *World) countVMs(s *Summary) {
	for _, name := range w.names {
		s.VMs = append(s.VMs, VMSummary{VM: name, First: w.first[name], Instances: []string{}})
	}
	byVM := map[string]*VMSummary{}
	for i := range s.VMs {
		byVM[s.VMs[i].VM] = &s.VMs[i]
	}
	known := map[string]bool{}
	for _, in := range w.cloud.Instances() {
		known["disk-"+in.ID] = true
		if vm := byVM[in.VM]; vm != nil {
			vm.Instances = append(vm.Instances, in.ID)
		} else {
			s.Strays = append(s.Strays, "instance "+in.ID+" ("+in.VM+")")
		}
	}
	for _, disk := range w.cloud.Disks() {
		if !known[disk] {
			s.Strays = append(s.Strays, "disk "+disk)
		}
	}
	for i := range s.VMs {
		vm := &s.VMs[i]
		switch {
		case len(vm.Instances) == 0:
			s.Missing = append(s.Missing, vm.VM)
		case len(vm.Instances) > 1:
			s.Twins = append(s.Twins, vm.VM)
		case vm.Instances[0] != vm.First:
			vm.Replaced = true
			s.Replaced++
		}
	}
}

// Damage says what went wrong in a world in which every VM should have been
// replaced: a cut job, a hurt token, a VM that is missing, doubled or old.
// Nil: nothing. It names everything that it found.
func (w *World) Damage() error { return w.Summary().Damage(w.names...) }

// DamageTo is Damage where only these VMs should have been replaced.
func (w *World) DamageTo(replaced ...string) error { return w.Summary().Damage(replaced...) }

// Damage judges a summary; replaced are the VMs that should be new.
func (s Summary) Damage(replaced ...string) error {
	var found []error
	for _, j := range s.CutJobs {
		found = append(found, fmt.Errorf("job %d (%s) was cut on %s: %s", j.ID, j.Name, j.SystemID, orNone(j.FailureReason)))
	}
	for _, d := range s.TokenDamage {
		found = append(found, fmt.Errorf("%s: %s", d.Route, d.Effect))
	}
	if len(s.Missing) > 0 {
		found = append(found, fmt.Errorf("no VM carries the name of %s", strings.Join(s.Missing, ", ")))
	}
	if len(s.Twins) > 0 {
		found = append(found, fmt.Errorf("two VMs carry the name of %s", strings.Join(s.Twins, ", ")))
	}
	for _, vm := range s.VMs {
		if slices.Contains(replaced, vm.VM) && len(vm.Instances) == 1 && !vm.Replaced {
			found = append(found, fmt.Errorf("%s is still the old instance %s", vm.VM, vm.First))
		}
	}
	return errors.Join(found...)
}

func orNone(reason string) string {
	if reason == "" {
		return "its VM was removed while it ran"
	}
	return reason
}

// AwaitBusy waits until every VM is up and runs a job in its container.
func (w *World) AwaitBusy(ctx context.Context) error {
	return w.await(ctx, func() string {
		for _, name := range w.names {
			h := w.Host(name)
			if h == nil || !h.Up() || len(h.Containers()) == 0 {
				return name + " does not run a job yet"
			}
		}
		return ""
	})
}

// await polls until missing says "".
func (w *World) await(ctx context.Context, missing func() string) error {
	for {
		what := missing()
		if what == "" {
			return nil
		}
		if !simclock.Sleep(ctx, w.clock, 10*time.Millisecond) {
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
	}
}
