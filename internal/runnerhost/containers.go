package runnerhost

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// podmanContainer is what `podman ps --format json` says of one
// (facts/runner-host.md, section Looking).
type podmanContainer struct {
	ID        string            `json:"Id"`
	Names     []string          `json:"Names"`
	State     string            `json:"State"`
	Labels    map[string]string `json:"Labels"`
	StartedAt int64             `json:"StartedAt"`
}

var (
	// runner-4711 is a custom executor's name; the docker executor's
	// runner-TOKEN-project-… names no job.
	jobName   = regexp.MustCompile(`^runner-(\d+)$`)
	jobLabels = []string{"com.gitlab.gitlab-runner.job.id", "com.gitlab.gitlab-runner.job_id"}
)

// parseContainers reads podman's list. An empty text is no list.
func parseContainers(text string) ([]fleet.Container, error) {
	var found []podmanContainer
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return nil, err
	}
	var list []fleet.Container
	for _, c := range found {
		name := c.ID
		if len(c.Names) > 0 {
			name = c.Names[0]
		}
		list = append(list, fleet.Container{Name: name, State: c.State, JobID: jobOf(c), Started: c.StartedAt})
	}
	return list, nil
}

// jobOf finds the job in a label or in the name; 0 = in neither.
func jobOf(c podmanContainer) int64 {
	var digits string
	for _, label := range jobLabels {
		digits = cmp.Or(digits, c.Labels[label])
	}
	for _, name := range c.Names {
		if m := jobName.FindStringSubmatch(strings.TrimPrefix(name, "/")); m != nil {
			digits = cmp.Or(digits, m[1])
		}
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return id
}
