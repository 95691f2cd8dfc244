package simgitlab

import (
	"path"
	"slices"
	"time"
)

// commitSHA is the commit of every job: these projects never change.
const commitSHA = "5f3c1d0a9b7e4c2d8a6f0e1b3c5d7f9a1b2c3d4e"

const (
	staleAfter  = 7 * 24 * time.Hour
	onlineFor   = 2 * time.Hour
	statusField = "job_execution_status"
)

// managerEntity is the API's runner manager (facts/gitlab.md section 2).
type managerEntity struct {
	ID                 int64      `json:"id"`
	SystemID           string     `json:"system_id"`
	Version            string     `json:"version"`
	Revision           string     `json:"revision"`
	Platform           string     `json:"platform"`
	Architecture       string     `json:"architecture"`
	CreatedAt          *time.Time `json:"created_at"`
	ContactedAt        *time.Time `json:"contacted_at"`
	IPAddress          string     `json:"ip_address"`
	Status             string     `json:"status"`
	JobExecutionStatus string     `json:"job_execution_status,omitempty"`
}

func (s *Server) managerEntity(st *state, m *manager) managerEntity {
	e := managerEntity{
		ID: m.id, SystemID: m.systemID, Version: m.info.Version, Revision: m.info.Revision,
		Platform: m.info.Platform, Architecture: m.info.Architecture,
		CreatedAt: timeOrNil(m.createdAt), ContactedAt: timeOrNil(m.contactedAt),
		IPAddress: m.ip, Status: onlineStatus(s.now(), m.createdAt, m.contactedAt),
	}
	if !s.switches.OmitJobExecutionStatus {
		e.JobExecutionStatus = s.managerActivity(st, m)
	}
	return e
}

func (s *Server) managerActivity(st *state, m *manager) string {
	if slices.Contains(s.switches.GhostBusy, m.systemID) {
		return "active"
	}
	return activity(st, func(j *job) bool { return j.managerID == m.id })
}

func activity(st *state, of func(*job) bool) string {
	for _, j := range st.jobs {
		if of(j) && j.executing() {
			return "active"
		}
	}
	return "idle"
}

// onlineStatus follows GitLab's order: stale, never contacted, online, offline.
func onlineStatus(now, created, contacted time.Time) string {
	last := created
	if contacted.After(last) {
		last = contacted
	}
	switch {
	case now.Sub(last) >= staleAfter:
		return "stale"
	case contacted.IsZero():
		return "never_contacted"
	case now.Sub(contacted) < onlineFor:
		return "online"
	}
	return "offline"
}

// runnerEntity is GET /runners/:id (facts/gitlab.md 10.4). Lock held.
func (s *Server) runnerEntity(st *state, ru *runner) map[string]any {
	status := onlineStatus(s.now(), ru.createdAt, ru.contactedAt)
	online := status == "online"
	if ru.paused {
		status = "paused"
	}
	e := map[string]any{
		"id": ru.spec.ID, "description": ru.spec.Description, "ip_address": "",
		"active": !ru.paused, "paused": ru.paused, "is_shared": ru.spec.Type == "instance_type",
		"runner_type": ru.spec.Type, "name": nil, "online": online,
		"created_at": ru.createdAt, "status": status, "tag_list": []string{},
		"run_untagged": true, "locked": false, "maximum_timeout": nil,
		"access_level": "not_protected", "version": "", "revision": "", "platform": "",
		"architecture": "", "contacted_at": timeOrNil(ru.contactedAt), "maintenance_note": nil,
		"projects": []any{}, "groups": []any{},
	}
	if !s.switches.OmitJobExecutionStatus {
		e[statusField] = activity(st, func(j *job) bool { return j.runnerID == ru.spec.ID })
	}
	return e
}

type projectEntity struct {
	ID                int64     `json:"id"`
	Description       *string   `json:"description"`
	Name              string    `json:"name"`
	NameWithNamespace string    `json:"name_with_namespace"`
	Path              string    `json:"path"`
	PathWithNamespace string    `json:"path_with_namespace"`
	CreatedAt         time.Time `json:"created_at"`
}

// jobBasic is the element of the job list: no runner, no manager in it.
type jobBasic struct {
	ID             int64          `json:"id"`
	Status         string         `json:"status"`
	Stage          string         `json:"stage"`
	Name           string         `json:"name"`
	Ref            string         `json:"ref"`
	Tag            bool           `json:"tag"`
	Coverage       *float64       `json:"coverage"`
	AllowFailure   bool           `json:"allow_failure"`
	CreatedAt      *time.Time     `json:"created_at"`
	StartedAt      *time.Time     `json:"started_at"`
	FinishedAt     *time.Time     `json:"finished_at"`
	ErasedAt       *time.Time     `json:"erased_at"`
	Duration       *float64       `json:"duration"`
	QueuedDuration *float64       `json:"queued_duration"`
	User           map[string]any `json:"user"`
	Commit         map[string]any `json:"commit"`
	Pipeline       map[string]any `json:"pipeline"`
	FailureReason  string         `json:"failure_reason,omitempty"`
	WebURL         string         `json:"web_url"`
	Project        *projectEntity `json:"project,omitempty"`
}

// jobFull is GET /projects/:id/jobs/:job_id: with runner and runner_manager.
type jobFull struct {
	jobBasic
	Runner        map[string]any `json:"runner"`
	RunnerManager *managerEntity `json:"runner_manager"`
	Artifacts     []any          `json:"artifacts"`
	TagList       []string       `json:"tag_list"`
	Archived      bool           `json:"archived"`
}

func (s *Server) jobBasic(st *state, base string, j *job) jobBasic {
	p := st.projects[j.projectID]
	e := jobBasic{
		ID: j.id, Status: j.status, Stage: j.spec.Stage, Name: j.spec.Name, Ref: "main",
		CreatedAt: timeOrNil(j.createdAt), StartedAt: timeOrNil(j.startedAt), FinishedAt: timeOrNil(j.finishedAt),
		Duration: s.elapsed(j.startedAt, j.finishedAt), QueuedDuration: s.elapsed(j.createdAt, j.startedAt),
		User:     map[string]any{"id": 1, "username": "ci", "name": "CI", "state": "active"},
		Commit:   map[string]any{"id": commitSHA, "short_id": commitSHA[:8], "title": "A change"},
		Pipeline: map[string]any{"id": j.spec.Pipeline, "iid": j.spec.Pipeline, "project_id": j.projectID, "sha": commitSHA, "ref": "main", "status": st.pipelineStatus(j.spec.Pipeline), "source": "push"},
		WebURL:   s.webURL(base, j), FailureReason: j.failureReason,
	}
	e.Project = projectOf(p)
	return e
}

func projectOf(p *project) *projectEntity {
	return &projectEntity{
		ID: p.id, Name: path.Base(p.path), NameWithNamespace: p.path,
		Path: path.Base(p.path), PathWithNamespace: p.path, CreatedAt: p.createdAt,
	}
}

func (s *Server) jobFull(st *state, base string, j *job) jobFull {
	e := jobFull{jobBasic: s.jobBasic(st, base, j), Artifacts: []any{}, TagList: []string{}}
	e.Project = nil
	if ru := st.runners[j.runnerID]; ru != nil {
		e.Runner = map[string]any{"id": ru.spec.ID, "description": ru.spec.Description, "runner_type": ru.spec.Type, "active": !ru.paused, "paused": ru.paused}
	}
	if m := st.managers[j.managerID]; m != nil {
		me := s.managerEntity(st, m)
		e.RunnerManager = &me
	}
	return e
}

// elapsed is seconds from a to b, or to now while b has not come; nil before a.
func (s *Server) elapsed(a, b time.Time) *float64 {
	if a.IsZero() {
		return nil
	}
	if b.IsZero() {
		b = s.now()
	}
	d := b.Sub(a).Seconds()
	return &d
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	u := t.UTC()
	return &u
}
