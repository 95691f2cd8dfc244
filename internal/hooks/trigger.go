package hooks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/hooks/imagename"
)

// Trigger says which events recreate which VMs.
type Trigger struct {
	Name    string
	On      Kind
	Project int64
	Branch  string   // a pattern; "" = the project's default branch
	Tag     string   // a pattern; "" = every tag, where On is about tags
	Status  string   // of a pipeline
	Sources []string // of a pipeline; none = those by default

	Fleet     string
	VMs       []string
	Image     *imagename.Template // nil = the fleet's own
	ImageWait time.Duration       // 0 = do not wait for the image
}

// byDefault are the sources of pipelines that run what a branch's configuration
// says. Of the others, a merge request's runs before the merge, from a fork even
// under its branch's name; a child's success is not its parent's; a scan or a
// policy builds nothing; and GitLab adds new ones (docs.gitlab.com,
// CI_PIPELINE_SOURCE).
var byDefault = []string{"push", "web", "schedule", "trigger", "api", "pipeline", "chat"}

// Match says whether an event is one that the trigger waits for, and if not, why.
func (t *Trigger) Match(e *Event) (ok bool, why string) {
	switch {
	case e.Kind != t.On:
		return false, fmt.Sprintf("it is on %s events", t.On)
	case e.Project != t.Project:
		return false, fmt.Sprintf("it is for project %d", t.Project)
	case e.Deleted:
		return false, fmt.Sprintf("%s was deleted", e.Ref)
	}
	for _, differs := range []string{t.refDiffers(e), t.statusDiffers(e), t.sourceDiffers(e)} {
		if differs != "" {
			return false, differs
		}
	}
	return true, ""
}

// refDiffers compares the branch or the tag.
func (t *Trigger) refDiffers(e *Event) string {
	wantsTag := t.On == KindTag || t.On == KindRelease || t.Tag != ""
	switch {
	case wantsTag != e.IsTag && e.IsTag:
		return fmt.Sprintf("%s is a tag, not a branch", e.Ref)
	case wantsTag != e.IsTag:
		return fmt.Sprintf("%s is a branch, not a tag", e.Ref)
	case wantsTag && t.Tag != "" && !like(t.Tag, e.Ref):
		return fmt.Sprintf("the tag is %s, not %s", e.Ref, t.Tag)
	case wantsTag:
		return ""
	}
	branch := t.Branch
	if branch == "" {
		if e.DefaultBranch == "" {
			return "the event does not say which branch is the default one, and the trigger names none"
		}
		if e.Ref != e.DefaultBranch {
			return fmt.Sprintf("the branch is %s, not the default one, %s", e.Ref, e.DefaultBranch)
		}
		return ""
	}
	if !like(branch, e.Ref) {
		return fmt.Sprintf("the branch is %s, not %s", e.Ref, branch)
	}
	return ""
}

// statusDiffers compares what happened: a pipeline's status, a merge, a new
// release.
func (t *Trigger) statusDiffers(e *Event) string {
	want := ""
	switch t.On {
	case KindPipeline:
		want = t.Status
	case KindMerge:
		want = "merge"
	case KindRelease:
		want = "create"
	}
	if want != "" && e.Status != want {
		return fmt.Sprintf("it is %q, not %q", e.Status, want)
	}
	return ""
}

func (t *Trigger) sourceDiffers(e *Event) string {
	switch {
	case t.On != KindPipeline:
		return ""
	case len(t.Sources) > 0 && !slices.Contains(t.Sources, e.Source):
		return fmt.Sprintf("the pipeline's source is %q, not %s", e.Source, strings.Join(t.Sources, ", "))
	case len(t.Sources) == 0 && !slices.Contains(byDefault, e.Source):
		return fmt.Sprintf("the pipeline's source is %q; name it in sources if it shall count", e.Source)
	}
	return ""
}

// lane names the line in which the events of the trigger supersede each other.
// The kind is part of it: numbers of different things do not compare.
func (t *Trigger) lane() string { return fmt.Sprintf("%s %s %d", t.Name, t.On, t.Project) }

// like compares with a pattern as GitLab's own filters do: * stands for any
// text, slashes included.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	matched, err := regexp.MatchString(`\A`+strings.Join(parts, `.*`)+`\z`, text)
	return err == nil && matched
}
