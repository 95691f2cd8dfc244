package simcloud

import (
	"cmp"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// The cloud seen and changed past its API: what the world, tests and sabotage
// use.

// view is the instance as the API shows it. Lock held.
func (c *Cloud) view(in *instance) fleet.Instance {
	out := in.Instance
	out.Labels = map[string]string{}
	for k, v := range in.Labels {
		out.Labels[k] = v
	}
	out.Presence = fleet.PresenceRunning
	out.Ready = !c.faults.holdReady
	if in.guest != nil {
		out.HostKeys = []string{in.guest.HostKey()}
		out.Ready = out.Ready && in.guest.Up()
	}
	switch {
	case in.off:
		out.Presence, out.Ready = fleet.PresenceOff, false
	case in.going:
		out.Presence, out.Ready, out.Detail = fleet.PresenceOther, false, "STOPPING"
	case !out.Ready:
		out.Detail = "STAGING"
	default:
		out.Detail = "RUNNING"
	}
	return out
}

// Instances lists everything there is, by id.
func (c *Cloud) Instances() []fleet.Instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listed("")
}

func (c *Cloud) listed(vm string) []fleet.Instance {
	out := []fleet.Instance{}
	for _, in := range c.instances {
		if vm == "" || in.VM == vm {
			out = append(out, c.view(in))
		}
	}
	slices.SortFunc(out, func(a, b fleet.Instance) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Disks lists the disks there are, by name.
func (c *Cloud) Disks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, 0, len(c.disks))
	for d := range c.disks {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// Guest yields an instance's guest; nil if there is none.
func (c *Cloud) Guest(id string) Guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.instances[id]; in != nil {
		return in.guest
	}
	return nil
}

// Appear makes a running instance past the API, as somebody else would.
func (c *Cloud) Appear(vm string, labels map[string]string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, err := c.put(vm, c.images[0], "", labels)
	if err != nil {
		return "", err
	}
	c.note(&act{kind: "appear", vm: vm, instance: in.ID}, "effect", "")
	return in.ID, nil
}

// Vanish removes an instance past the API, as somebody else would.
func (c *Cloud) Vanish(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in := c.instances[id]; in != nil {
		c.note(&act{kind: "vanish", vm: in.VM, instance: id}, "effect", "")
		c.take(in)
	}
}

// DeleteByName removes every instance of that name. No careful client does
// this; a sabotage does.
func (c *Cloud) DeleteByName(vm string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, in := range c.instances {
		if in.VM == vm {
			c.note(&act{kind: "delete", vm: vm, instance: in.ID}, "effect", "by name")
			c.take(in)
			n++
		}
	}
	return n
}

// PowerOff switches an instance off, and it stays listed; PowerOn undoes it.
func (c *Cloud) PowerOff(id string) { c.power(id, true) }

// PowerOn switches an instance on again.
func (c *Cloud) PowerOn(id string) { c.power(id, false) }

func (c *Cloud) power(id string, off bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.instances[id]
	if in == nil {
		return
	}
	in.off = off
	switch {
	case in.guest == nil:
	case off:
		in.guest.PowerCut()
	default:
		in.guest.PowerOn()
	}
}
