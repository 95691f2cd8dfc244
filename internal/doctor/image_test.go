package doctor

import (
	"context"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// askedFor is a provider that knows one image, and has none of its own choice.
type askedFor struct {
	*ward
	knows string
}

func (a askedFor) Prepare(_ context.Context, _, image string) (fleet.Prepared, error) {
	if image != a.knows {
		return fleet.Prepared{}, fleet.Errorf(fleet.CodeImageMissing, "there is no image %q", image)
	}
	return fleet.Prepared{Image: image}, nil
}

// Doctor asks as preflight does: for
// the image that the fleet's configuration names.
func TestTheFleetsOwnImageIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		configured, knows string
		found             bool
	}{{"runner-9", "runner-9", false}, {"runner-9-typo", "", true}} {
		w := newWard()
		w.spec.Image = c.configured
		p := Patient{Fleet: &engine.Fleet{Spec: w.spec, Hosts: w, Machines: askedFor{w, c.knows}}}
		report, err := New(Options{
			Fleets: map[string]Patient{"gcp": p}, Clock: still{},
			Spec: func(string) (fleet.Spec, error) { return w.spec, nil },
		}).Examine(t.Context(), "gcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range report.Findings {
			found = found || f.Code == CodeImageMissing
		}
		if found != c.found {
			t.Errorf("image %q, the provider knows %q: found %v, want %v: %+v", c.configured, c.knows, found, c.found, report.Findings)
		}
	}
}
