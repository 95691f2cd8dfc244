package whereabouts

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// search looks at every host of the fleet side by side for the job's container
// or the system_id. Two hosts that both show it are a clone: nobody is believed.
func (f *Finder) search(ctx context.Context, target *engine.Fleet, job Job, systemID string) Place {
	list, err := target.Machines.List(ctx)
	if err != nil {
		return Place{Reason: fmt.Sprintf("neither GitLab nor the provider says where job %d runs", job.ID)}
	}
	found := &search{job: job, systemID: systemID, asked: map[string]bool{}}
	var group errgroup.Group
	group.SetLimit(sideBySide)
	for _, m := range list {
		if !target.Has(m.VM) || m.Presence == fleet.PresenceAbsent {
			continue
		}
		group.Go(func() error {
			found.note(m.VM, f.look(ctx, target, m))
			return nil
		})
	}
	_ = group.Wait() // no look errs
	return found.place(target.VMs)
}

// look yields a reading, or nil where the host does not answer.
func (f *Finder) look(ctx context.Context, target *engine.Fleet, m fleet.Instance) *fleet.HostReading {
	if m.Address == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	ref := fleet.Ref{Fleet: target.Name, VM: m.VM}
	reading, err := target.Hosts.Look(ctx, engine.Target{Ref: ref, Instance: m.ID, Address: m.Address, HostKeys: m.HostKeys})
	if err != nil {
		f.Log.InfoContext(ctx, "a host does not say whether the asking job runs there", "fleet", ref.Fleet, "vm", ref.VM, "error", err)
		return nil
	}
	return reading
}

// search gathers what the hosts say.
type search struct {
	job      Job
	systemID string

	mu        sync.Mutex
	container []string        // VMs that show the job's container
	identity  []string        // VMs with the system_id
	asked     map[string]bool // VMs that told their system_id
}

func (s *search) note(vm string, reading *fleet.HostReading) {
	if reading == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := reading.Subject.SystemID; id != "" {
		s.asked[vm] = true
		if id == s.systemID {
			s.identity = append(s.identity, vm)
		}
	}
	for _, c := range reading.Containers {
		if c.JobID == s.job.ID {
			s.container = append(s.container, vm)
			return
		}
	}
}

// place judges: a system_id before a container, because GitLab links it to the
// job and a container's name may be anybody's.
func (s *search) place(members []string) Place {
	switch {
	case len(s.identity) == 1:
		return Place{VM: s.identity[0], Reason: fmt.Sprintf("GitLab says that job %d runs on system_id %s", s.job.ID, s.systemID)}
	case len(s.identity) == 0 && len(s.container) == 1:
		return Place{VM: s.container[0], Reason: fmt.Sprintf("the container of job %d runs there", s.job.ID)}
	case len(s.identity)+len(s.container) > 1:
		return Place{Reason: fmt.Sprintf("several VMs seem to run job %d", s.job.ID)}
	}
	silent := 0
	for _, vm := range members {
		if !s.asked[vm] {
			silent++
		}
	}
	if s.systemID != "" && silent == 0 {
		return Place{Elsewhere: true, Reason: fmt.Sprintf("job %d runs on system_id %s, which none of the fleet's VMs has", s.job.ID, s.systemID)}
	}
	return Place{Reason: fmt.Sprintf("no host of the fleet shows job %d (%d of %d answered)", s.job.ID, len(members)-silent, len(members))}
}
