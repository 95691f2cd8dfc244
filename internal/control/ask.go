package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (c *Control) ask(ctx context.Context, in Intent) ([]Answer, error) {
	ops, err := c.draft(in)
	if err != nil {
		return nil, err
	}
	inserted, err := c.Store.Insert(ctx, ops, key(in), func(list []Inserted) error { return c.judge(in, ops, list) })
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(inserted))
	for _, got := range inserted {
		answers[slices.Index(in.VMs, got.Operation.VM)] = Answer{Operation: got.Operation, Attached: !got.New}
		if err := c.Waker.Wake(ctx, got.Operation.ID); err != nil {
			c.Log.WarnContext(ctx, "the engine was not woken; its sweep will find the operation",
				"op", got.Operation.ID, "fleet", in.Fleet, "vm", got.Operation.VM, "error", err)
		}
	}
	return answers, nil
}

// draft checks an intent against its fleet and yields the operations that it
// comes to, not stored yet.
func (c *Control) draft(in Intent) ([]fleet.Operation, error) {
	spec, err := c.Spec(in.Fleet)
	if err != nil {
		return nil, err
	}
	if err := check(spec, in); err != nil {
		return nil, err
	}
	return c.operations(spec, in)
}

func check(spec fleet.Spec, in Intent) error {
	if !slices.Contains(fleet.Kinds(), in.Kind) {
		return fleet.Errorf(fleet.CodeInvalid, "operations of kind %q are not known", in.Kind).
			WithHint("use recreate, drain, undrain, delete or create")
	}
	if len(in.VMs) == 0 {
		return fleet.Errorf(fleet.CodeInvalid, "no VM was named").WithHint("name at least one VM of fleet %s", spec.Name)
	}
	seen := map[string]bool{}
	for _, vm := range in.VMs {
		if !spec.Has(vm) {
			return unknown("VM", vm, " in fleet "+spec.Name, spec.VMs)
		}
		if seen[vm] {
			return fleet.Errorf(fleet.CodeInvalid, "VM %s/%s was named twice", spec.Name, vm).WithHint("name each VM once")
		}
		seen[vm] = true
	}
	if in.Parallel < 0 {
		return fleet.Errorf(fleet.CodeInvalid, "parallel %d is negative", in.Parallel).WithHint("leave it out for the fleet's max_unavailable, %d", spec.MaxUnavailable)
	}
	if in.NoDrain && in.Kind != fleet.KindDelete {
		return fleet.Errorf(fleet.CodeInvalid, "no_drain goes with delete only, not with %s", in.Kind).
			WithHint("leave it out; to replace a VM without a drain, ask for a delete with it, then for a create")
	}
	if in.Replace && in.Kind != fleet.KindCreate {
		return fleet.Errorf(fleet.CodeInvalid, "recreate goes with create only, not with %s", in.Kind).WithHint("leave it out")
	}
	if in.Image != "" && !in.Kind.Creates() {
		return fleet.Errorf(fleet.CodeInvalid, "a %s has no use for an image", in.Kind).WithHint("leave it out, or ask for a recreate or a create")
	}
	return evidenceFor(spec, in)
}

// evidenceFor refuses drains of which nothing could be proven: with neither a
// GitLab token nor a runner token there is no second source at all
// (design.md section 4.2).
func evidenceFor(spec fleet.Spec, in Intent) error {
	if spec.HasGitLab || spec.HasRunnerToken || in.NoDrain || !in.kind().Drains() {
		return nil
	}
	return fleet.Errorf(fleet.CodeForbidden, "fleet %s has neither a GitLab token nor a runner token: nothing could be proven about a %s", spec.Name, in.Kind).
		WithHint("set gitlab.token (scope read_api) or the fleet's runner.token")
}

func (c *Control) operations(spec fleet.Spec, in Intent) ([]fleet.Operation, error) {
	policy := in.Policy.Apply(spec.Drain)
	if err := policy.Validate(); err != nil {
		return nil, err
	}
	kind, now := in.kind(), c.Clock.Now()
	ops := make([]fleet.Operation, len(in.VMs))
	for i, vm := range in.order() {
		id, err := fleet.NewOperationID(c.Random)
		if err != nil {
			return nil, err
		}
		ops[i] = fleet.Operation{
			ID: id, Fleet: spec.Name, VM: vm, Kind: kind, Phase: fleet.PhaseQueued,
			CreatedAt: now, UpdatedAt: now, PhaseSince: now,
			Request: fleet.Request{
				Image: in.Image, Policy: policy, NoDrain: in.NoDrain, Replace: in.Replace,
				TakeOver: in.TakeOver, Parallel: in.Parallel, By: in.By,
			},
		}
	}
	return ops, nil
}

// order is in which order the VMs are worked on: operations that were stored
// first are admitted first.
func (in Intent) order() []string {
	vms := slices.Clone(in.VMs)
	if i := slices.Index(vms, in.Last); i >= 0 {
		vms = append(slices.Delete(vms, i, i+1), in.Last)
	}
	return vms
}

// key digests what was asked, so that a key cannot be reused for something else.
func key(in Intent) Key {
	if in.Key == "" {
		return Key{}
	}
	in.By = fleet.Actor{}
	body, err := json.Marshal(in)
	if err != nil { // an Intent holds nothing that cannot be rendered
		body = fmt.Append(nil, in)
	}
	sum := sha256.Sum256(body)
	return Key{Scope: in.KeyScope, Value: in.Key, Digest: hex.EncodeToString(sum[:]), Job: in.Job}
}
