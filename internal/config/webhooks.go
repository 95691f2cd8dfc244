package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks/imagename"
)

// Webhooks says who may send events.
type Webhooks struct {
	GitLab GitLabWebhook `json:"gitlab,omitempty" doc:"GitLab's webhooks. Without a token none is let in."`
}

// GitLabWebhook holds the tokens of GitLab's webhooks: several at once, so that
// they can be changed without a gap.
type GitLabWebhook struct {
	SigningTokens []*Secret `json:"signing_tokens,omitempty" maxItems:"8" doc:"Signing tokens (whsec_…), as GitLab shows them once (GitLab 19.0 and later). A delivery that is signed must be signed by one of them."`
	SecretTokens  []*Secret `json:"secret_tokens,omitempty" maxItems:"8" doc:"Secret tokens, of at least 16 characters, for deliveries that are not signed."`
	URL           string    `json:"url,omitempty" format:"uri" doc:"The address that GitLab's webhooks have, for doctor to find them. Empty: every one that ends in /webhooks/gitlab."`
}

// Trigger recreates VMs when an event comes.
type Trigger struct {
	Name      string   `json:"name,omitempty" maxLength:"64" pattern:"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$" doc:"What it is called in the journal; default: on and fleet, with a dash."`
	On        string   `json:"on,omitempty" enum:"pipeline,push,tag,release,merge" doc:"The kind of event: a pipeline whose status changed (the default), commits pushed to a branch, a tag pushed, a release made, a merge request merged."`
	ProjectID int64    `json:"project_id" minimum:"1" doc:"GitLab's number of the project (on its page, under the dots)."`
	Status    string   `json:"status,omitempty" enum:"success,failed,canceled,skipped,manual" doc:"With on: pipeline. Default: success."`
	Branch    string   `json:"branch,omitempty" maxLength:"255" doc:"The branch, of a merge the target; * stands for any text. Default: the project's default branch."`
	Tag       string   `json:"tag,omitempty" maxLength:"255" doc:"The tag; * stands for any text. With on: tag or release, default: every tag. With on: pipeline: pipelines of tags, instead of a branch."`
	Sources   []string `json:"sources,omitempty" minItems:"1" doc:"With on: pipeline: only pipelines of these sources (GitLab's CI_PIPELINE_SOURCE). Default: push, web, schedule, trigger, api, pipeline and chat."`
	Fleet     string   `json:"fleet" minLength:"1" doc:"The fleet whose VMs are recreated, within its max_unavailable."`
	VMs       []string `json:"vms,omitempty" minItems:"1" doc:"Only these VMs. Default: all of the fleet's."`
	Image     string   `json:"image,omitempty" maxLength:"1024" doc:"The image of the new VMs, a text/template: {{ .ShortSHA }}, {{ .SHA }}, {{ .Ref }}, {{ .RefSlug }}, {{ .Project }}, {{ .ProjectID }}; {{ .Branch }} or {{ .Tag }}; of a pipeline {{ .PipelineID }}, {{ .PipelineIID }}; of a merge {{ .MergeRequest }}. Empty: the fleet's own. Needed with on: merge."`
	ImageWait Duration `json:"image_wait,omitempty" doc:"Wait so long (at most 72h) for the image before any VM is touched. Default: 1h with on: merge, which comes before its image is built; else do not wait."`
}

// Defaults of triggers.
const (
	onPipeline       = "pipeline"
	onMerge          = "merge"
	defaultMergeWait = time.Hour
	longestImageWait = 72 * time.Hour
)

func (c *Config) fillHooks() {
	for i, s := range c.Webhooks.GitLab.SigningTokens {
		name(s, "webhooks.gitlab.signing_tokens["+strconv.Itoa(i)+"]")
	}
	for i, s := range c.Webhooks.GitLab.SecretTokens {
		name(s, "webhooks.gitlab.secret_tokens["+strconv.Itoa(i)+"]")
	}
	for i := range c.Triggers {
		t := &c.Triggers[i]
		set(&t.On, onPipeline)
		set(&t.Name, t.On+"-"+t.Fleet)
		if t.On == onPipeline {
			set(&t.Status, "success")
		}
		if t.On == onMerge {
			set(&t.ImageWait, length(defaultMergeWait))
		}
	}
}

func (l *lint) triggers(c *Config) {
	seen := map[string]bool{}
	for i := range c.Triggers {
		t, at := &c.Triggers[i], "["+strconv.Itoa(i)+"]"
		if seen[t.Name] {
			l.add("two triggers are called "+quoted(t.Name), "give each a name of its own", "triggers", at)
		}
		seen[t.Name] = true
		l.triggerFilters(t, at)
		l.triggerTarget(c, t, at)
		l.triggerImage(t, at)
	}
	hooks := c.Webhooks.GitLab
	if len(c.Triggers) > 0 && len(hooks.SigningTokens) == 0 && len(hooks.SecretTokens) == 0 {
		l.add("no event can come: webhooks.gitlab has no token", "give webhooks.gitlab.signing_tokens or secret_tokens", "triggers")
	}
}

// triggerFilters refuses what the kind of event does not have.
func (l *lint) triggerFilters(t *Trigger, at string) {
	refuse := func(given bool, key, where string) {
		if given {
			l.add("on: "+t.On+" has none", "use it with on: "+where+", or leave it out", "triggers", at, key)
		}
	}
	ofTag := t.On == "tag" || t.On == "release"
	refuse(t.Status != "" && t.On != onPipeline, "status", onPipeline)
	refuse(len(t.Sources) > 0 && t.On != onPipeline, "sources", onPipeline)
	refuse(t.Branch != "" && ofTag, "branch", "pipeline, push or merge")
	refuse(t.Tag != "" && !ofTag && t.On != onPipeline, "tag", "pipeline, tag or release")
	if t.On == onPipeline && t.Branch != "" && t.Tag != "" {
		l.add("a pipeline is of a branch or of a tag", "give one of them; write two triggers for both", "triggers", at, "tag")
	}
}

func (l *lint) triggerTarget(c *Config, t *Trigger, at string) {
	f, ok := c.Fleets[t.Fleet]
	if !ok {
		l.add("there is no fleet "+quoted(t.Fleet), meant(t.Fleet, c.Names()), "triggers", at, "fleet")
		return
	}
	members, seen := f.VMs.List(), map[string]bool{}
	for i, vm := range t.VMs {
		key := []string{"triggers", at, "vms", "[" + strconv.Itoa(i) + "]"}
		if !slices.Contains(members, vm) {
			l.add("there is no VM "+quoted(vm)+" in fleet "+t.Fleet, meant(vm, members), key...)
		}
		if seen[vm] {
			l.add("VM "+quoted(vm)+" is named twice", "", key...)
		}
		seen[vm] = true
	}
}

func (l *lint) triggerImage(t *Trigger, at string) {
	if t.ImageWait.D() > longestImageWait {
		l.add("longer than 72h", "what is built later than that is another event", "triggers", at, "image_wait")
	}
	switch {
	case t.Image == "" && t.On == onMerge:
		l.add("is missing: a merge comes before its image is built, and without a name nobody can wait for it",
			`write image: "runner-{{ .ShortSHA }}", or use on: pipeline`, "triggers", at, "image")
	case t.Image == "" && t.ImageWait != "":
		l.add("waits for no image: image is missing", "give image, or leave image_wait out", "triggers", at, "image_wait")
	case t.Image != "":
		if _, err := imagename.Parse(t.On, t.Image); err != nil {
			hint := fleet.HintOf(err)
			l.add(strings.TrimSuffix(err.Error(), " ("+hint+")"), hint, "triggers", at, "image")
		}
	}
}
