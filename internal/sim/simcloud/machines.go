package simcloud

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

var _ engine.Machines = (*Cloud)(nil)

var goodName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,61}[a-z0-9]$`)

// up says whether the API answers. Lock held.
func (c *Cloud) up(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "the cloud was not asked: %w", err)
	}
	if c.faults.blind {
		return fleet.Errorf(fleet.CodeUnavailable, "the cloud answers 503 Service Unavailable")
	}
	return nil
}

// List implements engine.Machines.
func (c *Cloud) List(ctx context.Context) ([]fleet.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.up(ctx); err != nil {
		return nil, err
	}
	return c.listed(""), nil
}

// Describe implements engine.Machines.
func (c *Cloud) Describe(ctx context.Context, vm string) ([]fleet.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.up(ctx); err != nil {
		return nil, err
	}
	if vm == "" {
		return nil, fleet.Errorf(fleet.CodeInvalid, "a VM's name is missing")
	}
	return c.listed(vm), nil
}

// Prepare implements engine.Machines.
func (c *Cloud) Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.up(ctx); err != nil {
		return fleet.Prepared{}, err
	}
	if !goodName.MatchString(vm) {
		return fleet.Prepared{}, fleet.Errorf(fleet.CodeInvalid, "%q cannot be a VM's name here", vm).
			WithHint("use lower-case letters, digits and dashes, a letter first")
	}
	if image == "" || image == Newest {
		image = c.images[len(c.images)-1]
	}
	if err := c.hasImage(image); err != nil {
		return fleet.Prepared{}, err
	}
	spec, err := json.Marshal(map[string]string{"name": vm, "image": image, "machine_type": "sim-standard-2"})
	if err != nil {
		return fleet.Prepared{}, fleet.Errorf(fleet.CodeInternal, "the create request of %s cannot be written: %w", vm, err)
	}
	return fleet.Prepared{Image: image, Spec: spec}, nil
}

func (c *Cloud) hasImage(image string) error {
	if !slices.Contains(c.images, image) {
		return fleet.Errorf(fleet.CodeImageMissing, "there is no image %q", image).WithHint("build it, or name another one")
	}
	return nil
}

// Check implements engine.Machines.
func (c *Cloud) Check(ctx context.Context, _ string, p fleet.Prepared) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.up(ctx); err != nil {
		return err
	}
	return c.hasImage(p.Image)
}

// Create implements engine.Machines.
func (c *Cloud) Create(ctx context.Context, o engine.CreateOrder) (engine.Progress, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.up(ctx); err != nil {
		return engine.Progress{}, err
	}
	a := c.acts[o.Token]
	if a == nil {
		a = &act{kind: "create", vm: o.VM, token: o.Token, operation: o.Operation}
		if in := c.ofOperation(o.VM, o.Operation); in != nil {
			a.instance, a.ended = in.ID, true // an earlier attempt's late success
		} else if err := c.refuseCreate(o); err != nil {
			c.note(a, "refused", err.Error())
			return engine.Progress{}, err
		} else {
			c.startCreate(a, o)
		}
		c.acts[o.Token] = a
	}
	if err := c.lost(); err != nil {
		return engine.Progress{}, err
	}
	return c.progress(a)
}

// ofOperation finds what an operation has made already.
func (c *Cloud) ofOperation(vm, operation string) *instance {
	for _, in := range c.instances {
		if in.VM == vm && operation != "" && in.Labels[fleet.LabelOperation] == operation {
			return in
		}
	}
	return nil
}

func (c *Cloud) refuseCreate(o engine.CreateOrder) error {
	for _, a := range c.acts {
		if a.vm == o.VM && !a.ended {
			return fleet.Errorf(fleet.CodeConflict, "%s: a %s is at work on that name", o.Ref, a.kind)
		}
	}
	for _, in := range c.instances {
		if in.VM == o.VM {
			return fleet.Errorf(fleet.CodeConflict, "%s: instance %s has that name", o.Ref, in.ID)
		}
	}
	return c.hasImage(o.Prepared.Image)
}

// startCreate begins an act; failures strike at its end, as a cloud's
// operations do. Lock held.
func (c *Cloud) startCreate(a *act, o engine.CreateOrder) {
	c.note(a, "begin", "")
	fail := c.faults.takeCreateFailure()
	put := func() {
		in, err := c.put(o.VM, o.Prepared.Image, o.Token, map[string]string{fleet.LabelOperation: o.Operation})
		if err != nil {
			c.finish(a, err)
			return
		}
		a.instance = in.ID
		c.note(a, "effect", "")
		c.finish(a, nil)
	}
	if c.faults.loseCreate { // the answer is lost; the success comes late
		c.faults.loseCreate = false
		c.faults.late = put
		c.finish(a, fleet.Errorf(fleet.CodeUnavailable, "%s: the create's answer was lost", o.Ref))
		return
	}
	c.after(c.o.Create, func() {
		if fail != "" {
			c.finish(a, fleet.Errorf(fail, "%s: %s", o.Ref, failureWords[fail]))
			return
		}
		put()
	})
}

func (c *Cloud) finish(a *act, err error) {
	a.ended, a.err = true, err
	if err != nil {
		c.note(a, "failed", err.Error())
		return
	}
	c.note(a, "end", "")
}

func (c *Cloud) progress(a *act) (engine.Progress, error) {
	if a.err != nil {
		return engine.Progress{}, a.err
	}
	p := engine.Progress{Done: a.ended, Detail: a.kind + " of " + a.vm + ": in work"}
	if a.ended {
		p.Detail = a.kind + " of " + a.vm + ": done"
	}
	if in := c.instances[a.instance]; in != nil && a.kind == "create" {
		view := c.view(in)
		p.Instance = &view
	}
	return p, nil
}

// Delete implements engine.Machines.
func (c *Cloud) Delete(ctx context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Instance == "" {
		return engine.Progress{}, fleet.Errorf(fleet.CodeInvalid, "%s: a delete needs an instance id", o.Ref)
	}
	if err := c.up(ctx); err != nil {
		return engine.Progress{}, err
	}
	a := c.acts[o.Token]
	if a == nil {
		var err error
		if a, err = c.startDelete(o); err != nil {
			return engine.Progress{}, err
		}
	}
	if err := c.lost(); err != nil {
		return engine.Progress{}, err
	}
	return c.progress(a)
}

func (c *Cloud) startDelete(o engine.DeleteOrder) (*act, error) {
	a := &act{kind: "delete", vm: o.VM, instance: o.Instance, token: o.Token, operation: o.Operation}
	in := c.instances[o.Instance]
	switch {
	case in == nil:
		a.ended = true // not found is done
	case in.VM != o.VM:
		return nil, fleet.Errorf(fleet.CodeInvalid, "%s: instance %s is %s", o.Ref, o.Instance, in.VM)
	default:
		for _, other := range c.acts {
			if other.vm == o.VM && !other.ended && other.kind == "create" {
				return nil, fleet.Errorf(fleet.CodeConflict, "%s: a create is at work on that name", o.Ref)
			}
		}
		c.note(a, "begin", "")
		in.going = true
		c.after(c.o.Delete, func() {
			if c.instances[in.ID] == in {
				c.take(in)
				c.note(a, "effect", "")
			}
			c.finish(a, nil)
		})
	}
	c.acts[o.Token] = a
	return a, nil
}

// Remains implements engine.Machines.
func (c *Cloud) Remains(ctx context.Context, o engine.DeleteOrder) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.up(ctx); err != nil {
		return nil, err
	}
	var out []string
	if c.instances[o.Instance] != nil {
		out = append(out, "instance "+o.Instance)
	}
	for disk, id := range c.disks {
		if id == o.Instance {
			out = append(out, "disk "+disk)
		}
	}
	slices.Sort(out)
	return out, nil
}
