package simgitlab

import (
	"path"
	"time"
)

// JobPayload is what a runner gets from POST /jobs/request, with GitLab's
// field names and only the fields that a runner needs here.
type JobPayload struct {
	ID            int64         `json:"id"`
	Token         string        `json:"token"`
	AllowGitFetch bool          `json:"allow_git_fetch"`
	JobInfo       JobInfo       `json:"job_info"`
	GitInfo       GitInfo       `json:"git_info"`
	RunnerInfo    PayloadRunner `json:"runner_info"`
	Variables     []Variable    `json:"variables"`
	Steps         []Step        `json:"steps"`
	Image         Image         `json:"image"`
	Services      []Image       `json:"services"`
	Artifacts     []struct{}    `json:"artifacts"`
	Cache         []struct{}    `json:"cache"`
	Credentials   []struct{}    `json:"credentials"`
	Dependencies  []struct{}    `json:"dependencies"`
	Features      JobFeatures   `json:"features"`
}

// JobInfo names the job and its project.
type JobInfo struct {
	ID              int64  `json:"id"`
	Name            string `json:"name"`
	Stage           string `json:"stage"`
	ProjectID       int64  `json:"project_id"`
	ProjectName     string `json:"project_name"`
	ProjectFullPath string `json:"project_full_path"`
}

// GitInfo is minimal: these jobs fetch nothing (GIT_STRATEGY none).
type GitInfo struct {
	RepoURL  string   `json:"repo_url"`
	Ref      string   `json:"ref"`
	RefType  string   `json:"ref_type"`
	Sha      string   `json:"sha"`
	Refspecs []string `json:"refspecs"`
	Depth    int      `json:"depth"`
}

// PayloadRunner carries the job's timeout in seconds.
type PayloadRunner struct {
	Timeout int `json:"timeout"`
}

// Variable is a CI/CD variable.
type Variable struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Public bool   `json:"public"`
	Masked bool   `json:"masked"`
}

// Step is script (when on_success) or after_script (when always).
type Step struct {
	Name         string   `json:"name"`
	Script       []string `json:"script"`
	Timeout      int      `json:"timeout"` // seconds
	When         string   `json:"when"`
	AllowFailure bool     `json:"allow_failure"`
}

// Image is a container image.
type Image struct {
	Name string `json:"name"`
}

// JobFeatures tells the runner how to report.
type JobFeatures struct {
	TraceSections  bool     `json:"trace_sections"`
	FailureReasons []string `json:"failure_reasons"`
}

// failureReasons are those the instance knows; a runner uses unknown_failure
// for any other.
var failureReasons = []string{
	"script_failure", "runner_system_failure", "job_execution_timeout",
	"stuck_or_timeout_failure", "runner_interrupted", "unknown_failure",
}

const afterScriptTimeout = 5 * time.Minute

func (s *Server) payload(base string, j *job) JobPayload {
	spec := j.spec
	timeout := int(spec.Timeout.Seconds())
	p := JobPayload{
		ID:    j.id,
		Token: j.token,
		JobInfo: JobInfo{
			ID: j.id, Name: spec.Name, Stage: spec.Stage, ProjectID: j.projectID,
			ProjectName: path.Base(spec.Project), ProjectFullPath: spec.Project,
		},
		GitInfo: GitInfo{
			RepoURL: base + "/" + spec.Project + ".git", Ref: "main", RefType: "branch",
			Sha: commitSHA, Refspecs: []string{},
		},
		RunnerInfo: PayloadRunner{Timeout: timeout},
		Variables: []Variable{
			{Key: "GIT_STRATEGY", Value: "none", Public: true},
			{Key: VarDuration, Value: spec.Duration.String(), Public: true},
			{Key: VarAfterDuration, Value: spec.AfterDuration.String(), Public: true},
		},
		Steps: []Step{{
			Name: "script", Script: spec.scriptLines(), Timeout: timeout, When: "on_success",
		}},
		Image:       Image{Name: spec.Image},
		Services:    []Image{},
		Artifacts:   []struct{}{},
		Cache:       []struct{}{},
		Credentials: []struct{}{}, Dependencies: []struct{}{},
		Features: JobFeatures{TraceSections: true, FailureReasons: failureReasons},
	}
	if spec.hasAfterScript() {
		p.Steps = append(p.Steps, Step{
			Name: "after_script", Script: spec.afterScriptLines(),
			Timeout: int(afterScriptTimeout.Seconds()), When: "always", AllowFailure: true,
		})
	}
	return p
}
