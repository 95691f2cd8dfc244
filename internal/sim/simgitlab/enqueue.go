package simgitlab

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// Lines that a job's trace shows when its parts ended; the ledger reads them.
const (
	ScriptEndedMark      = "sim: script ended"
	AfterScriptEndedMark = "sim: after_script ended"
)

// Variables of the payload that tell a simulated runner, which executes no
// script, how long each part takes (Go durations).
const (
	VarDuration      = "SIM_DURATION"
	VarAfterDuration = "SIM_AFTER_DURATION"
)

// JobSpec is a job to be queued. The zero value is a job that does nothing.
type JobSpec struct {
	Name    string `json:"name,omitempty"`    // default "build"
	Stage   string `json:"stage,omitempty"`   // default "test"
	Project string `json:"project,omitempty"` // path, default "acme/app"; made when new
	Image   string `json:"image,omitempty"`   // default "busybox"
	// Duration is how long the script runs. With an empty Script it becomes a
	// sleep; with one it is only told to simulated runners.
	Duration time.Duration `json:"duration,omitempty"`
	Script   []string      `json:"script,omitempty"`
	// AfterDuration and AfterScript make an after_script; none if both are empty.
	AfterDuration time.Duration `json:"after_duration,omitempty"`
	AfterScript   []string      `json:"after_script,omitempty"`
	// Timeout of the job; default 1 h.
	Timeout time.Duration `json:"timeout,omitempty"`
	// RunnerID restricts the job to one runner entry; 0: any.
	RunnerID int64 `json:"runner_id,omitempty"`
	// Pipeline puts the job into the pipeline of that number; 0: one of its own.
	Pipeline int64 `json:"pipeline,omitempty"`
	// SystemID pins the job to one VM. GitLab cannot do that; tests must.
	SystemID string `json:"system_id,omitempty"`
}

func (j JobSpec) withDefaults() JobSpec {
	if j.Name == "" {
		j.Name = "build"
	}
	if j.Stage == "" {
		j.Stage = "test"
	}
	if j.Project == "" {
		j.Project = "acme/app"
	}
	if j.Image == "" {
		j.Image = "busybox"
	}
	if j.Timeout == 0 {
		j.Timeout = time.Hour
	}
	return j
}

// Enqueue puts a pending job into the queue and returns its id.
func (s *Server) Enqueue(spec JobSpec) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueue(spec.withDefaults(), 0)
}

// enqueue adds a job with all defaults applied; the lock is held.
func (s *Server) enqueue(spec JobSpec, retryOf int64) int64 {
	p := s.project(spec.Project)
	id := s.id()
	if spec.Pipeline == 0 {
		spec.Pipeline = id
	}
	s.st.jobs[id] = &job{
		id: id, token: jobToken(id), spec: spec, projectID: p.id, retryOf: retryOf,
		status: StatusPending, createdAt: s.now(), touchedAt: s.now(),
	}
	s.wakeQueue()
	return id
}

// project finds or makes it; the lock is held.
func (s *Server) project(path string) *project {
	p := s.st.projectByPath(path)
	if p == nil {
		p = &project{id: s.id(), path: path, createdAt: s.now()}
		s.st.projects[p.id] = p
	}
	return p
}

// jobToken is unguessable enough for a fake: it only must be unique.
func jobToken(id int64) string {
	return "glcbt-" + hex.EncodeToString([]byte(strconv.FormatInt(id, 10)))
}

func (j JobSpec) hasAfterScript() bool { return len(j.AfterScript) > 0 || j.AfterDuration > 0 }

// scriptLines ends with the mark. The text is split by quotes so that a runner
// which prints its commands does not print the mark too soon.
func (j JobSpec) scriptLines() []string {
	lines := j.Script
	if len(lines) == 0 && j.Duration > 0 {
		lines = []string{"sleep " + seconds(j.Duration)}
	}
	return append(append([]string(nil), lines...), `echo "sim: script"" ended"`)
}

func (j JobSpec) afterScriptLines() []string {
	lines := j.AfterScript
	if len(lines) == 0 {
		lines = []string{"sleep " + seconds(j.AfterDuration)}
	}
	return append(append([]string(nil), lines...), `echo "sim: after_script"" ended"`)
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// webURL is where a person finds the job.
func (s *Server) webURL(base string, j *job) string {
	return fmt.Sprintf("%s/%s/-/jobs/%d", base, j.spec.Project, j.id)
}
