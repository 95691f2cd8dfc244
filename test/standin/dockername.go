package main

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// shortToken is how much of a runner's token, behind its prefix, the docker executor's
// names show.
const shortToken = 9

// dockerName is the docker executor's name for a job's build container
// (facts/runner-host.md): it tells the runner and the project, and no job.
func dockerName(e entry, j *job) string {
	token := strings.TrimPrefix(e.Token, "glrt-")
	token = token[:min(shortToken, len(token))]
	random := fnv.New64a()
	_, _ = random.Write([]byte(j.Token))
	return fmt.Sprintf("runner-%s-project-%d-concurrent-0-%016x-build", token, j.JobInfo.ProjectID, random.Sum64())
}

// dockerLabels are those that the docker executor gives to its containers, as far as they
// tell whose they are.
func dockerLabels(j *job) []string {
	const prefix = "com.gitlab.gitlab-runner."
	return []string{
		prefix + "managed=true", prefix + "type=build",
		prefix + "job.id=" + strconv.FormatInt(j.ID, 10),
		prefix + "project.id=" + strconv.FormatInt(j.JobInfo.ProjectID, 10),
	}
}
