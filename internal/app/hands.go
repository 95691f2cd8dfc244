package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/config"
	"gitlab.com/sluice-runners/sluice/internal/doctor"
	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/gitlab"
	"gitlab.com/sluice-runners/sluice/internal/metrics"
	"gitlab.com/sluice-runners/sluice/internal/provider/exec"
	"gitlab.com/sluice-runners/sluice/internal/runnerhost"
)

const providerExec = "exec"

// hands are the adapters of every fleet: what Sluice acts with.
type hands struct {
	config   *config.Config
	specs    map[string]fleet.Spec
	trust    trustStore
	metrics  *metrics.Metrics
	log      *slog.Logger
	gitlab   *gitlab.Instance
	writer   *gitlab.Writer // cancels and retries jobs; nil without a write token
	write    string         // the token that may remove entries; "" = none may
	fleets   map[string]*engine.Fleet
	patients map[string]doctor.Patient
	closers  []func()
}

// openHands makes the adapters. Reading alone needs none, and so no secret.
func (a *App) openHands(context.Context) error {
	a.hands = &hands{
		config: a.Config, specs: a.specs, trust: trustStore{journal: a.journal, readOnly: !a.Role.works()},
		metrics: a.metrics, log: a.log, fleets: map[string]*engine.Fleet{}, patients: map[string]doctor.Patient{},
	}
	if a.Role == RoleRead {
		return nil
	}
	if a.Fleets != nil {
		for name, f := range a.Fleets {
			a.hands.fleets[name], a.hands.patients[name] = f, doctor.Patient{Fleet: f}
		}
		return nil
	}
	return a.hands.open()
}

func (h *hands) open() error {
	if err := h.openGitLab(); err != nil {
		return err
	}
	for _, name := range h.config.Names() {
		if err := h.openFleet(name, h.config.Fleets[name]); err != nil {
			return err
		}
	}
	return nil
}

func (h *hands) openGitLab() (err error) {
	token := ""
	if h.config.GitLab.Token != nil {
		if token, err = h.config.GitLab.Token.Value(); err != nil {
			return err
		}
	}
	o := gitlab.Config{URL: h.config.GitLab.URL, Token: token, Now: clock{}.Now, Observe: h.metrics.GitLabRequest, Log: h.log}
	if h.gitlab, err = gitlab.New(o); err != nil || h.config.GitLab.WriteToken == nil {
		return err
	}
	if h.write, err = h.config.GitLab.WriteToken.Value(); err != nil {
		return err
	}
	o.Token = h.write
	h.writer, err = gitlab.NewWriter(o)
	return err
}

func (h *hands) openFleet(name string, c *config.Fleet) error {
	spec := h.specs[name]
	f := &engine.Fleet{Spec: spec}
	p := doctor.Patient{Fleet: f, AnyHostKey: runnerhost.HostKeyPolicy(c.Host.HostKeys) == runnerhost.HostKeysOff}
	var err error
	if f.Hosts, err = h.hosts(name, c, spec); err != nil {
		return err
	}
	if f.Machines, err = h.machines(name, c); err != nil {
		return err
	}
	switch {
	case spec.HasGitLab && spec.Individual():
		entries := h.gitlab.Entries(h.write)
		f.GitLab, f.Entries, p.Token, p.Version = entries, entries, h.tokenInfo, h.gitlab.Version
		p.EntriesRemain = h.write == ""
		if h.writer != nil { // a job is the same through every entry
			f.Jobs, p.WriteToken = h.gitlab.Entry(0).Jobs(h.writer), h.writeTokenInfo
		}
	case spec.HasGitLab:
		entry := h.gitlab.Entry(spec.RunnerID)
		f.GitLab, p.TokenExpiry, p.Token = entry, entry.TokenExpiry, h.tokenInfo
		p.Version, p.UnseenProjects = h.gitlab.Version, entry.UnseenProjects
		if h.writer != nil {
			jobs := entry.Jobs(h.writer)
			f.Jobs, p.WriteToken, p.UnwritableProjects = jobs, h.writeTokenInfo, jobs.UnwritableProjects
		}
	}
	if c.Runner.Token != nil {
		token, err := c.Runner.Token.Value()
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(token))
		f.Registrar, p.RunnerToken = h.gitlab.Registrar(token), hex.EncodeToString(sum[:])
	}
	h.watch(name, &p)
	h.fleets[name], h.patients[name] = f, p
	return nil
}

func (h *hands) tokenInfo(ctx context.Context) (doctor.TokenInfo, error) {
	info, err := h.gitlab.Token(ctx)
	return doctor.TokenInfo{Scopes: info.Scopes, CanRead: info.CanRead(), ExpiresAt: info.ExpiresAt}, err
}

func (h *hands) writeTokenInfo(ctx context.Context) (doctor.TokenInfo, error) {
	info, err := h.writer.Token(ctx)
	return doctor.TokenInfo{Scopes: info.Scopes, CanRead: info.CanRead(), CanWrite: info.CanWrite(), ExpiresAt: info.ExpiresAt}, err
}

// machines makes the fleet's provider.
func (h *hands) machines(name string, c *config.Fleet) (engine.Machines, error) {
	provider, err := exec.New(execConfig(name, c), clock{}, h.log)
	if err != nil {
		return nil, err
	}
	return counted(providerExec, provider, h.metrics), nil
}

func execConfig(name string, c *config.Fleet) exec.Config {
	e := c.Provider.Exec
	o := exec.Config{
		Fleet: name, Commands: map[exec.Verb][]string{}, Env: map[string]exec.Value{}, Spec: e.Spec,
		Timeouts: map[exec.Verb]time.Duration{}, CommandTimeout: e.CommandTimeout.D(), StateDir: e.StateDir,
	}
	for verb, argv := range e.Commands() {
		o.Commands[exec.Verb(verb)] = argv
	}
	for key, v := range e.Env {
		o.Env[key] = exec.Value{Literal: v.Literal, File: v.File, Env: v.Env}
	}
	for verb, limit := range e.Timeouts {
		o.Timeouts[exec.Verb(verb)] = limit.D()
	}
	return o
}

func (h *hands) close() {
	for _, end := range h.closers {
		end()
	}
}
