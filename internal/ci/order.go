package ci

import (
	"regexp"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Order is what a job asks for. Zero values leave the choice to the fleet.
type Order struct {
	Fleet     string
	VMs       []string
	Image     string
	Cap       string // a duration such as 10m
	OnOverrun string // proceed, wait, abort; fleet is the fleet's own too
	Parallel  int
}

// Names splits a list of VMs at commas and white space.
func Names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

// plain is what a fleet or VM may be called; the controller has the last word.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// mostVMs is how many one job may ask for: as many operations as one request
// for events names. A follow token may read no other events.
const mostVMs = client.MostNamed

// check refuses what cannot be asked for. Errors: CodeInvalid.
func (o Order) check() error {
	switch {
	case o.Fleet == "":
		return fleet.Errorf(fleet.CodeInvalid, "no fleet was named").WithHint("set the component's input `fleet` (or --fleet)")
	case !plain.MatchString(o.Fleet):
		return fleet.Errorf(fleet.CodeInvalid, "fleet %q is no name of a fleet", o.Fleet).WithHint("set the input `fleet` to the name in the controller's configuration; a variable in it may be empty or not known here")
	case len(o.VMs) == 0:
		return fleet.Errorf(fleet.CodeInvalid, "no VM was named").WithHint("set the component's input `vms`, such as vms: runner-01 runner-02; a variable in it may be empty")
	case len(o.VMs) > mostVMs:
		return fleet.Errorf(fleet.CodeInvalid, "%d VMs are too many for one job", len(o.VMs)).WithHint("name at most %d, and include the component more than once", mostVMs)
	case o.Parallel < 0:
		return fleet.Errorf(fleet.CodeInvalid, "parallel %d is negative", o.Parallel).WithHint("leave it out for the fleet's max_unavailable")
	}
	seen := map[string]bool{}
	for _, vm := range o.VMs {
		if !plain.MatchString(vm) {
			return fleet.Errorf(fleet.CodeInvalid, "%q is no name of a VM", vm).WithHint("set the input `vms` to names with spaces between them")
		}
		if seen[vm] {
			return fleet.Errorf(fleet.CodeInvalid, "VM %s was named twice", vm).WithHint("name each VM once")
		}
		seen[vm] = true
	}
	return nil
}

// body is the request for all VMs. Errors: CodeInvalid.
func (o Order) body(why string) (client.AskBody, error) {
	body := client.AskBody{Kind: client.AskBodyKindRecreate, Vms: o.VMs, Why: optional(why), Image: optional(o.Image), Parallel: optional(int64(o.Parallel))}
	ours := o.OnOverrun != "" && o.OnOverrun != "fleet"
	if o.Cap == "" && !ours {
		return body, nil
	}
	body.Policy = &client.PolicyPatch{}
	if o.Cap != "" {
		length, err := time.ParseDuration(o.Cap)
		if err != nil || length <= 0 {
			return body, fleet.Errorf(fleet.CodeInvalid, "cap %q is no length of time", o.Cap).WithHint("write 45s, 10m or 1h30m; leave it out for the fleet's own")
		}
		body.Policy.Cap = optional(length.String())
	}
	if ours {
		word := client.PolicyPatchOnOverrun(o.OnOverrun)
		if !word.Valid() {
			return body, fleet.Errorf(fleet.CodeInvalid, "on-overrun %q is not known", o.OnOverrun).WithHint("use proceed, wait or abort, or leave it out for the fleet's own")
		}
		body.Policy.OnOverrun = &word
	}
	return body, nil
}

// optional is nil for a zero value.
func optional[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// deref is the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
