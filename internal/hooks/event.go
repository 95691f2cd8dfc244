package hooks

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kind is what kind of event a delivery tells of.
type Kind string

// The kinds. Other is every event that Sluice has no use for.
const (
	KindPipeline Kind = "pipeline"
	KindPush     Kind = "push"
	KindTag      Kind = "tag"
	KindRelease  Kind = "release"
	KindMerge    Kind = "merge"
	KindJob      Kind = "job"
	KindOther    Kind = "other"
)

// Events lists the kinds as text, so that every series can start at 0.
func Events() []string {
	return []string{
		string(KindPipeline), string(KindPush), string(KindTag), string(KindRelease), string(KindMerge), string(KindJob), string(KindOther),
	}
}

// Event is what a delivery says, as far as it matters here.
type Event struct {
	Kind          Kind
	What          string // object_kind, as GitLab calls it
	Project       int64
	Path          string // path_with_namespace
	DefaultBranch string

	Ref     string // the branch or tag, without refs/…; of a merge the target branch
	IsTag   bool
	Deleted bool // the branch or tag was deleted
	SHA     string
	Status  string    // of a pipeline or job; the action of a merge request or release
	Source  string    // why a pipeline was created
	ID      int64     // of the pipeline or release
	IID     int64     // of the pipeline or merge request, within its project
	Moment  time.Time // when it happened, by GitLab's clock; zero = it does not say
	URL     string
	Runner  int64 // of a job; 0 = none yet
}

// Values are what an image's template may use: those that the event has.
func (e *Event) Values() map[string]string {
	values := map[string]string{
		"Project": e.Path, "ProjectID": number(e.Project), "Ref": e.Ref, "RefSlug": slug(e.Ref), "SHA": e.SHA, "ShortSHA": e.SHA,
	}
	if len(e.SHA) > shortSHA {
		values["ShortSHA"] = e.SHA[:shortSHA]
	}
	if e.IsTag {
		values["Tag"] = e.Ref
	} else {
		values["Branch"] = e.Ref
	}
	switch e.Kind {
	case KindPipeline:
		values["PipelineID"], values["PipelineIID"] = number(e.ID), number(e.IID)
	case KindMerge:
		values["MergeRequest"] = number(e.IID)
	}
	for name, value := range values {
		if value == "" {
			delete(values, name)
		}
	}
	return values
}

// shortSHA is the length of CI_COMMIT_SHORT_SHA (docs.gitlab.com, predefined
// CI/CD variables).
const shortSHA = 8

var notInSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug is CI_COMMIT_REF_SLUG: lower case, 63 bytes, what is neither a letter nor
// a digit replaced by a dash, none of them at the ends (docs.gitlab.com,
// predefined CI/CD variables).
func slug(ref string) string {
	text := strings.ToLower(ref)
	text = notInSlug.ReplaceAllStringFunc(text, func(run string) string { return strings.Repeat("-", len([]rune(run))) })
	if len(text) > 63 {
		text = text[:63]
	}
	return strings.Trim(text, "-")
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// rank is the number by which the events of one kind are ordered: the higher
// one is the newer state of the project. The late success of an old pipeline
// does not undo a newer; a release has no date here, because people set those.
// 0 = there is none: the Moment counts, or the order of arrival.
func (e *Event) rank() int64 {
	if e.Kind == KindPipeline || e.Kind == KindRelease {
		return e.ID
	}
	return 0
}
