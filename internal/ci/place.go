package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Place is the GitLab job that this process is, from the predefined CI/CD
// variables.
type Place struct {
	Instance string // CI_SERVER_URL
	Project  string // CI_PROJECT_ID
	Pipeline string // CI_PIPELINE_ID
	Job      string // CI_JOB_NAME
	URL      string // CI_JOB_URL
}

// PlaceOf reads the predefined variables.
func PlaceOf(getenv func(string) string) Place {
	return Place{
		Instance: getenv("CI_SERVER_URL"), Project: getenv("CI_PROJECT_ID"), Pipeline: getenv("CI_PIPELINE_ID"),
		Job: getenv("CI_JOB_NAME"), URL: getenv("CI_JOB_URL"),
	}
}

// missing names the variables without which there is no key.
func (p Place) missing() string {
	var names []string
	for _, v := range []struct{ name, value string }{
		{"CI_PROJECT_ID", p.Project}, {"CI_PIPELINE_ID", p.Pipeline}, {"CI_JOB_NAME", p.Job},
	} {
		if v.value == "" {
			names = append(names, v.name)
		}
	}
	return strings.Join(names, ", ")
}

// Key is the Idempotency-Key: the same for every try of this job in this
// pipeline that asks for the same, so that a retried job attaches to what its
// first try began, and a manual job that is run again with other variables asks
// anew. At most 255 characters of ASCII, whatever the job's name.
func (p Place) Key(o Order) string {
	sum := sha256.New()
	for _, part := range []string{
		p.Instance, p.Project, p.Pipeline, p.Job,
		o.Fleet, strings.Join(o.VMs, " "), o.Image, o.Cap, o.OnOverrun, strconv.Itoa(o.Parallel),
	} {
		sum.Write([]byte(part + "\x00")) //nolint:errcheck // a hash takes everything (hash.Hash)
	}
	return "gitlab-job-" + hex.EncodeToString(sum.Sum(nil)[:16])
}
