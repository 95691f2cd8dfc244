package hooks

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// payload is the union of what the events carry, as far as it is read
// (docs.gitlab.com, "Webhook events"; facts/gitlab.md section 5.4). What may hold
// secrets, such as a pipeline's variables, is not even decoded.
type payload struct {
	ObjectKind string `json:"object_kind"`
	EventName  string `json:"event_name"` // of group events, which have no object_kind
	Project    struct {
		ID            int64  `json:"id"`
		Path          string `json:"path_with_namespace"`
		WebURL        string `json:"web_url"`
		DefaultBranch string `json:"default_branch"`
	} `json:"project"`
	ProjectID int64 `json:"project_id"`

	Ref   string `json:"ref"`   // push, tag, job
	After string `json:"after"` // push, tag
	SHA   string `json:"sha"`   // job

	BuildStatus string `json:"build_status"`
	Runner      *struct {
		ID int64 `json:"id"`
	} `json:"runner"`

	ID        any    `json:"id"`  // a number of a release
	Tag       any    `json:"tag"` // a name of a release, a flag of a job
	Action    string `json:"action"`
	CreatedAt any    `json:"created_at"` // of a release
	URL       string `json:"url"`
	Commit    *struct {
		ID any `json:"id"` // a job's is the pipeline's number
	} `json:"commit"`

	Object object `json:"object_attributes"`
}

// object is object_attributes of a pipeline or a merge request.
type object struct {
	ID           int64  `json:"id"`
	IID          int64  `json:"iid"`
	Ref          string `json:"ref"`
	Tag          bool   `json:"tag"`
	SHA          string `json:"sha"`
	Source       any    `json:"source"` // a word of a pipeline, a project of a merge request
	Status       string `json:"status"`
	URL          string `json:"url"`
	Action       string `json:"action"`
	TargetBranch string `json:"target_branch"`
	UpdatedAt    string `json:"updated_at"`
	MergeCommit  string `json:"merge_commit_sha"`
	SquashCommit string `json:"squash_commit_sha"`
	LastCommit   struct {
		ID string `json:"id"`
	} `json:"last_commit"`
}

// Parse reads the body of a delivery. What kind of event it is, the body says:
// headers are not signed, and a custom template may have made the body. Errors:
// CodeInvalid, for what is no event or lacks what its kind must have; the body
// is never repeated.
func Parse(body []byte) (*Event, error) {
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "the body is not the JSON of a GitLab event").
			WithHint("a custom webhook template must keep GitLab's own form")
	}
	if p.ObjectKind == "" {
		p.ObjectKind = p.EventName
	}
	if p.ObjectKind == "" {
		return nil, fleet.Errorf(fleet.CodeInvalid, "the body has no object_kind").
			WithHint("a custom webhook template must keep GitLab's own form")
	}
	e := &Event{
		Kind: KindOther, What: p.ObjectKind, Project: p.Project.ID, Path: p.Project.Path, DefaultBranch: p.Project.DefaultBranch,
	}
	if e.Project == 0 {
		e.Project = p.ProjectID
	}
	read, ok := readers[p.ObjectKind]
	if !ok {
		return e.checked(false)
	}
	read(e, &p)
	return e.checked(true)
}

// readers are the kinds that are read, by GitLab's word for them.
var readers = map[string]func(*Event, *payload){
	"pipeline": readPipeline, "push": readPush, "tag_push": readPush, "release": readRelease,
	"merge_request": readMerge, "build": readJob,
}

func readPipeline(e *Event, p *payload) {
	o := &p.Object
	e.Kind, e.ID, e.IID, e.Ref, e.IsTag, e.SHA, e.Status = KindPipeline, o.ID, o.IID, o.Ref, o.Tag, o.SHA, o.Status
	e.Source, _ = o.Source.(string)
	e.URL = link(o.URL)
}

// noCommit is how git writes the absence of a commit: all zeros.
const noCommit = "0"

func readPush(e *Event, p *payload) {
	e.Kind, e.SHA = KindPush, p.After
	e.Ref, e.IsTag = strings.CutPrefix(p.Ref, "refs/tags/")
	if e.IsTag {
		e.Kind = KindTag
	} else {
		e.Ref = strings.TrimPrefix(p.Ref, "refs/heads/")
	}
	e.Deleted = p.After != "" && strings.Trim(p.After, noCommit) == ""
	if e.URL = link(p.Project.WebURL); e.URL != "" && !e.Deleted {
		e.URL += "/-/commit/" + e.SHA
	}
}

// readRelease takes the release's number and when it was made, never its
// released_at: people set that, to years ahead if they like.
func readRelease(e *Event, p *payload) {
	e.Kind, e.IsTag, e.Status, e.URL = KindRelease, true, p.Action, link(p.URL)
	e.Ref, _ = p.Tag.(string)
	if id, ok := p.ID.(float64); ok && id > 0 && id < 1<<53 {
		e.ID = int64(id)
	}
	created, _ := p.CreatedAt.(string)
	e.Moment = moment(created)
	if p.Commit != nil {
		e.SHA, _ = p.Commit.ID.(string)
	}
}

// readMerge takes the commit that the target branch got: the merge commit, else
// the squashed one, else, of a fast-forward, the source branch's last.
func readMerge(e *Event, p *payload) {
	o := &p.Object
	e.Kind, e.IID, e.Ref, e.Status, e.URL, e.Moment = KindMerge, o.IID, o.TargetBranch, o.Action, link(o.URL), moment(o.UpdatedAt)
	for _, sha := range []string{o.MergeCommit, o.SquashCommit, o.LastCommit.ID} {
		if e.SHA == "" {
			e.SHA = sha
		}
	}
}

func readJob(e *Event, p *payload) {
	e.Kind, e.Ref, e.SHA, e.Status = KindJob, p.Ref, p.SHA, p.BuildStatus
	e.IsTag, _ = p.Tag.(bool)
	if p.ProjectID != 0 {
		e.Project = p.ProjectID
	}
	if p.Runner != nil {
		e.Runner = p.Runner.ID
	}
}

// longest is how long a text of an event may be, in bytes: git's own limit of
// a reference is far below.
const longest = 1024

// checked refuses an event that lacks what it must have. whole = its kind is
// one that is read.
func (e *Event) checked(whole bool) (*Event, error) {
	for _, text := range []string{e.What, e.Path, e.DefaultBranch, e.Ref, e.SHA, e.Status, e.Source, e.URL} {
		if len(text) > longest || strings.ContainsFunc(text, unprintable) {
			return nil, fleet.Errorf(fleet.CodeInvalid, "a text in the event is longer than %d bytes or holds control characters", longest)
		}
	}
	switch {
	case !whole:
		return e, nil
	case e.Project <= 0:
		return nil, e.lacks("a project")
	case e.Ref == "":
		return nil, e.lacks("a branch or tag")
	case e.Kind != KindJob && !isCommit(e.SHA):
		return nil, e.lacks("a commit")
	case e.Kind == KindPipeline && e.ID <= 0:
		return nil, e.lacks("a pipeline number")
	case e.Kind != KindPush && e.Kind != KindTag && e.Status == "":
		return nil, e.lacks("a status")
	}
	return e, nil
}

func (e *Event) lacks(what string) error {
	return fleet.Errorf(fleet.CodeInvalid, "the %s event has no %s", e.Kind, strings.TrimPrefix(what, "a ")).
		WithHint("a custom webhook template must keep GitLab's own form")
}

// isCommit says whether a text may be a commit: SHA-1 or SHA-256.
func isCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// link lets only web addresses pass: they are shown to people.
func link(text string) string {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil {
		return ""
	}
	return text
}

// moment reads the forms in which GitLab writes a time; zero = none of them.
func moment(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05 -0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
