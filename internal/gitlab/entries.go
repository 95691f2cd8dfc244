package gitlab

import (
	"context"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Entries are the runner entries of a fleet whose VMs have one each: an
// engine.Entries, and an engine.GitLab that answers through the entry of whom
// it is asked about.
type Entries struct {
	in    *Instance
	write string // the token that may remove an entry; "" = none may

	mu   sync.Mutex
	byID map[int64]*Entry
}

var (
	_ engine.Entries = (*Entries)(nil)
	_ engine.GitLab  = (*Entries)(nil)
)

// mostEntries are kept at once: each recreation brings a new one.
const mostEntries = 4096

// Entries returns those of a fleet with registration individual; nothing is
// sent. writeToken is a user token with scope api or manage_runner whose user may
// delete the entries (facts/gitlab.md section 3); "" = none is ever removed.
func (in *Instance) Entries(writeToken string) *Entries {
	return &Entries{in: in, write: writeToken, byID: map[int64]*Entry{}}
}

// Entry implements engine.Entries.
func (es *Entries) Entry(id int64) engine.GitLab {
	if id <= 0 {
		return unknownEntry{es}
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	e := es.byID[id]
	if e == nil {
		if len(es.byID) >= mostEntries {
			clear(es.byID)
		}
		e = es.in.Entry(id)
		e.ofVM = true
		es.byID[id] = e
	}
	return e
}

// Read implements engine.GitLab, through the entry that about names.
func (es *Entries) Read(ctx context.Context, about fleet.Subject, after time.Time) *fleet.GitLabReading {
	return es.Entry(about.Entry).Read(ctx, about, after)
}

// Managers implements engine.GitLab: there is no list of all.
func (es *Entries) Managers(ctx context.Context) ([]fleet.Manager, time.Time, error) {
	return unknownEntry{es}.Managers(ctx)
}

// Runner implements engine.GitLab: there is no entry of all.
func (es *Entries) Runner(ctx context.Context) (engine.RunnerInfo, error) {
	return unknownEntry{es}.Runner(ctx)
}

// TraceEmpty implements engine.GitLab: a job is the same through every entry.
func (es *Entries) TraceEmpty(ctx context.Context, job fleet.Job) (bool, error) {
	return es.in.Entry(0).TraceEmpty(ctx, job)
}

// Place says where a job runs, as [Entry.Place] does.
func (es *Entries) Place(ctx context.Context, project, job int64) (fleet.JobPlace, error) {
	return es.in.Entry(0).Place(ctx, project, job)
}

// unknownEntry is GitLab seen through an entry that nobody knows.
type unknownEntry struct{ *Entries }

func (unknownEntry) err() error {
	return fleet.Errorf(fleet.CodeInvalid, "the VM's runner entry is not known, so GitLab cannot be asked about it").
		WithHint("its id is read from [[runners]] in the host's config.toml")
}

// Read implements engine.GitLab.
func (u unknownEntry) Read(_ context.Context, about fleet.Subject, _ time.Time) *fleet.GitLabReading {
	return &fleet.GitLabReading{Subject: about, TakenAt: u.in.cfg.Now(), Unknown: "the VM's runner entry is not known"}
}

// Managers implements engine.GitLab.
func (u unknownEntry) Managers(context.Context) ([]fleet.Manager, time.Time, error) {
	return nil, time.Time{}, u.err()
}

// Runner implements engine.GitLab.
func (u unknownEntry) Runner(context.Context) (engine.RunnerInfo, error) {
	return engine.RunnerInfo{}, u.err()
}
