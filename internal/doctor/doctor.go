package doctor

import (
	"context"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Limits of an examination.
const (
	hostLimit  = 25 * time.Second // for one host
	readLimit  = 20 * time.Second // for GitLab and the provider
	sideBySide = 8                // hosts at once
)

// TokenInfo is what GitLab says of the token that it is asked with.
type TokenInfo struct {
	Scopes    []string
	CanRead   bool
	CanWrite  bool      // cancel and retry jobs
	ExpiresAt time.Time // zero = never
}

// Patient is a fleet and what only the doctor asks about it.
type Patient struct {
	*engine.Fleet
	// Token describes the GitLab token; nil without one.
	Token func(context.Context) (TokenInfo, error)
	// TokenExpiry is when the runner token expires; nil without a GitLab token.
	TokenExpiry func(context.Context) (time.Time, error)
	// Version is GitLab's; nil without a GitLab token.
	Version func(context.Context) (string, error)
	// UnseenProjects lists those of the runner entry whose jobs the token does not
	// see; nil without a GitLab token.
	UnseenProjects func(context.Context) ([]string, error)
	// WriteToken describes the write token, and UnwritableProjects lists those of
	// the runner entry in which it can cancel no job; nil without one.
	WriteToken         func(context.Context) (TokenInfo, error)
	UnwritableProjects func(context.Context) ([]string, error)
	// EntriesRemain says that the VMs' own runner entries cannot be removed.
	EntriesRemain bool
	// AnyHostKey says that host keys are not checked.
	AnyHostKey bool
	// RunnerToken is the SHA-256 (hex) of the fleet's runner token; "" = not given.
	RunnerToken string

	// Triggers are those that recreate VMs of the fleet.
	Triggers []Trigger
	// Webhooks lists a project's webhooks that come here; nil without a GitLab
	// token.
	Webhooks func(ctx context.Context, project int64) ([]Webhook, error)
	// Heard is when a project's webhook was last let in; zero = never.
	Heard func(ctx context.Context, project int64) (time.Time, error)
}

// Options are what a Doctor is made of.
type Options struct {
	Fleets map[string]Patient
	Spec   func(name string) (fleet.Spec, error) // CodeNotFound with the near name
	Clock  interface{ Now() time.Time }
}

// Doctor examines fleets.
type Doctor struct{ Options }

// New makes a Doctor.
func New(o Options) *Doctor { return &Doctor{o} }

// Examine looks at a fleet, or at some of its VMs, and changes nothing.
// Errors: CodeNotFound (fleet, VM). What is wrong with them is no error, but a
// finding.
func (d *Doctor) Examine(ctx context.Context, fleetName string, vms []string) (Report, error) {
	spec, err := d.Spec(fleetName)
	if err != nil {
		return Report{}, err
	}
	for _, vm := range vms {
		if !spec.Has(vm) {
			return Report{}, fleet.Errorf(fleet.CodeNotFound, "there is no VM %q in fleet %s", vm, fleetName)
		}
	}
	if len(vms) == 0 {
		vms = spec.VMs
	}
	e := &examination{patient: d.Fleets[fleetName], spec: spec, now: d.Clock.Now(), vms: vms, alone: d.alone(fleetName, spec)}
	e.tokens(ctx)
	e.writeToken(ctx)
	e.gitlab(ctx)
	e.webhooks(ctx)
	e.hosts(ctx)
	e.ownEntries(ctx)
	e.hostTokens()
	e.identities()
	return Report{Fleet: fleetName, At: e.now, Examined: vms, Findings: e.sorted()}, nil
}

// alone says whether no other fleet has the same runner entry.
func (d *Doctor) alone(name string, spec fleet.Spec) bool {
	for other, p := range d.Fleets {
		if other != name && p.Fleet != nil && p.RunnerID == spec.RunnerID && p.GitLabURL == spec.GitLabURL {
			return false
		}
	}
	return true
}
