package exec

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Provider is one fleet's machines behind commands. It implements
// [engine.Machines] and is safe for concurrent use.
type Provider struct {
	cfg     Config
	spec    json.RawMessage
	clock   engine.Clock
	log     *slog.Logger
	hold    time.Duration // startHold, shorter in tests
	secrets atomic.Pointer[[]string]
	turns   sync.Map // VM name → *sync.Mutex: acts on one VM take turns
	probing sync.Mutex
}

var _ engine.Machines = (*Provider)(nil)

// New makes the provider, its directories under StateDir, and removes old
// sessions. Nothing is run. Errors: CodeInvalid, and CodeUnavailable if
// StateDir cannot be used.
func New(cfg Config, clock engine.Clock, log *slog.Logger) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{cfg: cfg, clock: clock, log: log, hold: startHold}
	if cfg.Spec != nil {
		spec, err := json.Marshal(cfg.Spec)
		if err != nil {
			return nil, cfg.invalid("spec: %w", err).WithHint("spec must be expressible in JSON")
		}
		p.spec = spec
	}
	for _, dir := range []string{p.stateDir(), filepath.Join(p.fleetDir(), "vms")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fleet.Errorf(fleet.CodeUnavailable, "fleet %s: provider exec: state_dir: %w", cfg.Fleet, err).
				WithHint("make %s writable for the user that runs Sluice", cfg.StateDir)
		}
	}
	_, _ = p.configured() // learns what to mask; a missing secret is said when a command needs it
	p.removeOld()
	return p, nil
}

func (p *Provider) fleetDir() string          { return filepath.Join(p.cfg.StateDir, p.cfg.Fleet) }
func (p *Provider) stateDir() string          { return filepath.Join(p.fleetDir(), "state") }
func (p *Provider) vmDir(vm string) string    { return filepath.Join(p.fleetDir(), "vms", vm) }
func (p *Provider) sessions(vm string) string { return filepath.Join(p.vmDir(vm), "sessions") }

func (p *Provider) request(verb Verb, vm string) request {
	return request{Version: wireVersion, Verb: verb, Fleet: p.cfg.Fleet, VM: vm, Spec: p.spec}
}

// List implements [engine.Machines].
func (p *Provider) List(ctx context.Context) ([]fleet.Instance, error) {
	return p.instances(ctx, p.request(VerbList, ""))
}

// Describe implements [engine.Machines].
func (p *Provider) Describe(ctx context.Context, vm string) ([]fleet.Instance, error) {
	if err := checkName("VM name", vm); err != nil {
		return nil, err
	}
	return p.instances(ctx, p.request(VerbDescribe, vm))
}

// instances runs list or describe. Whatever is not a proper answer is an
// error: unknown is not absent.
func (p *Provider) instances(ctx context.Context, req request) ([]fleet.Instance, error) {
	o, err := p.quick(ctx, req)
	if err != nil {
		return nil, err
	}
	if !o.ok() {
		return nil, p.readFailure(req, o)
	}
	a, err := o.answer()
	if err != nil {
		return nil, p.misspoken(fleet.CodeUnavailable, req, err, o)
	}
	list, err := a.instances()
	if err != nil {
		return nil, p.misspoken(fleet.CodeUnavailable, req, err, o)
	}
	for _, instance := range list {
		if req.VM != "" && instance.VM != req.VM {
			err := errors.New("asked about " + req.VM + " it answered about " + instance.VM)
			return nil, p.misspoken(fleet.CodeUnavailable, req, err, o)
		}
	}
	return list, nil
}

// readFailure makes the error of a look that failed. A look refuses nothing
// and finds nothing: but for a missing right, its outcome is unknown.
func (p *Provider) readFailure(req request, o outcome) error {
	err := p.failure(req, o)
	if err.Code == fleet.CodeNotFound {
		err = p.withLog(err, `absence is exit status 0 with {"instances": []}`, o.log)
	}
	if err.Code != fleet.CodeForbidden {
		err.Code = fleet.CodeUnavailable
	}
	return err
}

// Prepare implements [engine.Machines]. It also checks what create and delete
// will need here: their executables, the environment, the state directory.
func (p *Provider) Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error) {
	if err := checkName("VM name", vm); err != nil {
		return fleet.Prepared{}, err
	}
	for _, verb := range []Verb{VerbCreate, VerbDelete} {
		if _, err := p.resolve(verb); err != nil {
			return fleet.Prepared{}, err
		}
	}
	if err := p.probeState(); err != nil {
		return fleet.Prepared{}, p.noState(vm, err)
	}
	req := p.request(VerbPrepare, vm)
	req.Image = image
	return p.prepare(ctx, req)
}

func (p *Provider) prepare(ctx context.Context, req request) (fleet.Prepared, error) {
	o, err := p.quick(ctx, req)
	if err != nil {
		return fleet.Prepared{}, err
	}
	if !o.ok() {
		return fleet.Prepared{}, p.failure(req, o)
	}
	prepared := fleet.Prepared{Image: req.Image, Spec: req.Spec}
	a, err := o.answer()
	switch {
	case errors.Is(err, errEmpty):
		return prepared, nil
	case err != nil:
		return fleet.Prepared{}, p.misspoken(fleet.CodeInvalid, req, err, o)
	}
	if a.Image != "" {
		prepared.Image = a.Image
	}
	if len(a.Spec) > 0 {
		prepared.Spec = a.Spec
	}
	return prepared, nil
}

// probeState writes a file and removes it, one caller after the other: the name
// is always the same, so that a crash leaves no more than one.
func (p *Provider) probeState() error {
	p.probing.Lock()
	defer p.probing.Unlock()
	path := filepath.Join(p.fleetDir(), "probe")
	if err := writeDurable(path, []byte(strings.Repeat("sluice\n", 1024))); err != nil {
		return err
	}
	return os.Remove(path)
}

// Check implements [engine.Machines]: the check command, or prepare once more
// with the exact image, which must stay what it is.
func (p *Provider) Check(ctx context.Context, vm string, prepared fleet.Prepared) error {
	if err := checkName("VM name", vm); err != nil {
		return err
	}
	req := p.request(VerbCheck, vm)
	req.Image, req.Spec = prepared.Image, prepared.Spec
	if len(p.cfg.Commands[VerbCheck]) > 0 {
		o, err := p.quick(ctx, req)
		if err == nil && !o.ok() {
			return p.failure(req, o)
		}
		return err
	}
	req.Verb, req.Spec = VerbPrepare, p.spec
	again, err := p.prepare(ctx, req)
	if err != nil {
		return err
	}
	if again.Image != prepared.Image {
		return fleet.Errorf(fleet.CodeInvalid, "%s: prepare was given the exact image %q and answered another, %q", p.subject(req), prepared.Image, again.Image).
			WithHint("prepare must yield an exact id and keep it when it gets one, or write a check command")
	}
	return nil
}

// Remains implements [engine.Machines]: the instance while describe shows it,
// whatever the remains command names, and a delete command that still runs.
func (p *Provider) Remains(ctx context.Context, o engine.DeleteOrder) ([]string, error) {
	req, err := p.deleteRequest(o)
	if err != nil {
		return nil, err
	}
	list, err := p.Describe(ctx, o.VM)
	if err != nil {
		return nil, err
	}
	remains := []string{}
	if find(list, o.Instance) != nil {
		remains = append(remains, "instance "+o.Instance)
	}
	running, err := p.running(ctx, o.VM)
	if err != nil {
		return nil, err
	}
	for _, s := range running {
		if s.Act == VerbDelete && s.Instance == o.Instance {
			remains = append(remains, s.String())
		}
	}
	if len(p.cfg.Commands[VerbRemains]) == 0 {
		return remains, nil
	}
	req.Verb = VerbRemains
	named, err := p.remains(ctx, req)
	return append(remains, named...), err
}

func (p *Provider) remains(ctx context.Context, req request) ([]string, error) {
	o, err := p.quick(ctx, req)
	if err != nil {
		return nil, err
	}
	if !o.ok() {
		return nil, p.readFailure(req, o)
	}
	a, err := o.answer()
	if err == nil && a.Remains == nil {
		err = errors.New(`its answer has no "remains" (nothing left is {"remains": []})`)
	}
	if err != nil {
		return nil, p.misspoken(fleet.CodeUnavailable, req, err, o)
	}
	return a.Remains, nil
}

func find(list []fleet.Instance, id string) *fleet.Instance {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}
