package main

import (
	"regexp"
	"slices"
	"testing"
)

// facts/runner-host.md: runner-<short token>-project-<id>-concurrent-<n>-<16 hex>-build.
func TestTheDockerExecutorsContainerIsNamedByRunnerAndProject(t *testing.T) {
	t.Parallel()
	j := &job{ID: 42, Token: "secret"}
	j.JobInfo.ProjectID = 7
	c, ok := newBox(entry{Executor: "docker", Token: "glrt-t1_abcdefghijkl"}, j).(container)
	if want := regexp.MustCompile(`^runner-t1_abcdef-project-7-concurrent-0-[0-9a-f]{16}-build$`); !ok || !want.MatchString(c.name) {
		t.Errorf("the container is named %q", c.name)
	}
	if !slices.Contains(c.labels, "com.gitlab.gitlab-runner.job.id=42") {
		t.Errorf("its labels are %q", c.labels)
	}
}
