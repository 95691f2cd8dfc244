package ci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	junit "github.com/joshdk/go-junit"

	"gitlab.com/sluice-runners/sluice/internal/ci"
	"gitlab.com/sluice-runners/sluice/test/component/stage"
)

// pipelineJob is a job as GitLab would start it.
type pipelineJob struct {
	ci.Options
	t       *testing.T
	log     *tail
	signals chan os.Signal
}

// tail is a log that can be read while it is written.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits until the log holds a text.
func (l *tail) await(t *testing.T, text string) {
	t.Helper()
	for limit := time.Now().Add(3 * time.Minute); !strings.Contains(l.String(), text); {
		if time.Now().After(limit) {
			t.Fatalf("the log never said %q:\n%s", text, l)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func newJob(t *testing.T, url string, vms ...string) *pipelineJob {
	t.Helper()
	j := &pipelineJob{t: t, log: &tail{}, signals: make(chan os.Signal, 1)}
	j.Options = ci.Options{
		Order:  ci.Order{Fleet: stage.Fleet, VMs: vms},
		Place:  ci.Place{Instance: "https://gitlab.example.com", Project: "42", Pipeline: "1001", Job: "recreate " + t.Name(), URL: "https://gitlab.example.com/acme/runners/-/jobs/7"},
		Server: url, Token: stage.Token, Reports: filepath.Join(t.TempDir(), "sluice"), Patience: 20 * time.Second,
		Out: j.log, Sections: true, Signals: j.signals, Now: time.Now,
	}
	return j
}

// run runs the job to its end.
func (j *pipelineJob) run() int {
	j.t.Helper()
	status := ci.Run(context.WithoutCancel(j.t.Context()), j.Options)
	j.t.Logf("exit status %d, log:\n%s", status, j.log)
	return status
}

// cancel is GitLab's cancel, where the executor passes it on.
func (j *pipelineJob) cancel() { j.signals <- syscall.SIGTERM }

// says wants texts in the log.
func (j *pipelineJob) says(texts ...string) {
	j.t.Helper()
	for _, text := range texts {
		if !strings.Contains(j.log.String(), text) {
			j.t.Errorf("the log does not say %q", text)
		}
	}
}

// cases are JUnit's, by VM, as a parser that is not ours reads them.
func (j *pipelineJob) cases() map[string]junit.Test {
	j.t.Helper()
	suites, err := junit.IngestFile(filepath.Join(j.Reports, ci.JUnitFile))
	if err != nil {
		j.t.Fatal(err)
	}
	found := map[string]junit.Test{}
	for _, suite := range suites {
		for _, test := range suite.Tests {
			if _, twice := found[test.Name]; twice {
				j.t.Errorf("two cases for %s", test.Name)
			}
			found[test.Name] = test
		}
	}
	return found
}

// want compares the JUnit words.
func (j *pipelineJob) want(status junit.Status, vms ...string) {
	j.t.Helper()
	cases := j.cases()
	for _, vm := range vms {
		if got := cases[vm]; got.Status != status {
			j.t.Errorf("JUnit: %s is %q (%v), want %q", vm, got.Status, got.Error, status)
		}
	}
}

// variables are the dotenv report.
func (j *pipelineJob) variables() map[string]string {
	j.t.Helper()
	text, err := os.ReadFile(filepath.Join(j.Reports, ci.DotenvFile))
	if err != nil {
		j.t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			j.t.Errorf("dotenv: %q", line)
		}
		found[name] = value
	}
	return found
}

// links are the annotations, label → URL.
func (j *pipelineJob) links() map[string]string {
	j.t.Helper()
	text, err := os.ReadFile(filepath.Join(j.Reports, ci.AnnotationsFile))
	if err != nil {
		j.t.Fatal(err)
	}
	var sections map[string][]struct {
		Link struct{ Label, URL string } `json:"external_link"`
	}
	if err := json.Unmarshal(text, &sections); err != nil {
		j.t.Fatal(err)
	}
	found := map[string]string{}
	for _, links := range sections {
		for _, l := range links {
			found[l.Link.Label] = l.Link.URL
		}
	}
	return found
}
