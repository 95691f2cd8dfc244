package simgitlab

import (
	"maps"
	"slices"
	"time"
)

// Job statuses as GitLab names them (facts/gitlab.md 1.1).
const (
	StatusPending   = "pending"
	StatusRunning   = "running"
	StatusCanceling = "canceling"
	StatusSuccess   = "success"
	StatusFailed    = "failed"
	StatusCanceled  = "canceled"
)

// statusEnum is the whole enum that the list endpoint accepts.
var statusEnum = []string{
	"created", "waiting_for_resource", "preparing", "waiting_for_callback",
	StatusPending, StatusRunning, StatusSuccess, StatusFailed,
	StatusCanceling, StatusCanceled, "skipped", "manual", "scheduled",
}

// stuckAfter is when GitLab's sweeper fails a job that nobody has touched.
const stuckAfter = time.Hour

// runner is one runner entry. dead: its token was deleted or rotated away.
type runner struct {
	spec        RunnerSpec
	createdAt   time.Time
	updatedAt   time.Time // by people; a contact does not count
	contactedAt time.Time
	paused      bool
	deleted     bool
}

// manager is one VM under a runner entry, keyed by system_id.
type manager struct {
	id          int64
	runnerID    int64
	systemID    string
	info        runnerInfo
	ip          string
	createdAt   time.Time
	contactedAt time.Time
}

// job is one build. managerID is the link row (0: not linked); systemID is
// the ledger's own memory of who got it and survives the manager's deletion.
type job struct {
	id        int64
	token     string
	spec      JobSpec
	projectID int64

	status        string
	failureReason string
	runnerID      int64
	managerID     int64
	systemID      string
	createdAt     time.Time
	startedAt     time.Time
	finishedAt    time.Time
	touchedAt     time.Time
	trace         []byte
	retryOf       int64
	retried       bool

	// The ledger's facts.
	assignedAt  time.Time
	heard       bool // the runner has spoken about this job
	undelivered bool // the client was gone before the answer
	canceledBy  string
}

func (j *job) executing() bool {
	return j.status == StatusRunning || j.status == StatusCanceling
}

func (j *job) finished() bool {
	return j.status == StatusSuccess || j.status == StatusFailed || j.status == StatusCanceled
}

// project exists as soon as a job names it.
type project struct {
	id        int64
	path      string
	createdAt time.Time
}

// state is everything a reader can see, so that a stale read is a copy of it.
type state struct {
	runners  map[int64]*runner
	managers map[int64]*manager
	jobs     map[int64]*job
	projects map[int64]*project
}

func newState() *state {
	return &state{
		runners:  map[int64]*runner{},
		managers: map[int64]*manager{},
		jobs:     map[int64]*job{},
		projects: map[int64]*project{},
	}
}

// clone copies deep enough that later changes do not show through.
func (s *state) clone() *state {
	c := newState()
	for k, v := range s.runners {
		cp := *v
		c.runners[k] = &cp
	}
	for k, v := range s.managers {
		cp := *v
		c.managers[k] = &cp
	}
	for k, v := range s.jobs {
		cp := *v
		c.jobs[k] = &cp
	}
	c.projects = maps.Clone(s.projects)
	return c
}

// managersOf returns a runner's managers by id.
func (s *state) managersOf(runnerID int64) []*manager {
	var out []*manager
	for _, m := range s.managers {
		if m.runnerID == runnerID {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *manager) int { return int(a.id - b.id) })
	return out
}

func (s *state) managerBySystemID(runnerID int64, systemID string) *manager {
	for _, m := range s.managers {
		if m.runnerID == runnerID && m.systemID == systemID {
			return m
		}
	}
	return nil
}

// jobsOf returns the jobs that match, newest id first.
func (s *state) jobsOf(match func(*job) bool) []*job {
	var out []*job
	for _, j := range s.jobs {
		if match(j) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int { return int(b.id - a.id) })
	return out
}

func (s *state) projectByPath(path string) *project {
	for _, p := range s.projects {
		if p.path == path {
			return p
		}
	}
	return nil
}
