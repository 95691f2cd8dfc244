package hooks_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

const (
	sha = "5f1d0c8e7a3b49d2a6c4e0f1b2d3948576a1c0de"
	web = "https://gitlab.example.com/infra/runner-image"
)

func TestEachKindOfEventIsRead(t *testing.T) {
	base := hooks.Event{Project: project, Path: "infra/runner-image", DefaultBranch: "main", SHA: sha}
	with := func(change func(*hooks.Event)) *hooks.Event {
		e := base
		change(&e)
		return &e
	}
	for name, want := range map[string]*hooks.Event{
		"pipeline": with(func(e *hooks.Event) {
			e.Kind, e.What, e.Ref, e.Status, e.Source, e.ID, e.IID, e.URL = hooks.KindPipeline, "pipeline", "main", "success", "push", 3100, 31, web+"/-/pipelines/3100"
		}),
		"push": with(func(e *hooks.Event) {
			e.Kind, e.What, e.Ref, e.URL = hooks.KindPush, "push", "main", web+"/-/commit/"+sha
		}),
		"tag_push": with(func(e *hooks.Event) {
			e.Kind, e.What, e.Ref, e.IsTag, e.URL = hooks.KindTag, "tag_push", "v1.4.0", true, web+"/-/commit/"+sha
		}),
		"release": with(func(e *hooks.Event) {
			e.Kind, e.What, e.Ref, e.IsTag, e.Status, e.URL = hooks.KindRelease, "release", "v1.4.0", true, "create", web+"/-/releases/v1.4.0"
			e.ID, e.Moment = 77, time.Date(2026, 11, 30, 11, 59, 0, 0, time.UTC)
		}),
		"merge_request": with(func(e *hooks.Event) {
			e.Kind, e.What, e.Ref, e.Status, e.IID, e.URL = hooks.KindMerge, "merge_request", "main", "merge", 12, web+"/-/merge_requests/12"
			e.SHA, e.Moment = "aa11bb22cc33dd44ee55ff6677889900aabbccdd", time.Date(2026, 11, 30, 11, 40, 13, 0, time.UTC)
		}),
		"job": with(func(e *hooks.Event) {
			e.Kind, e.What, e.Ref, e.Status, e.Runner = hooks.KindJob, "build", "main", "success", 7
		}),
		"deployment": with(func(e *hooks.Event) { e.Kind, e.What, e.SHA = hooks.KindOther, "deployment", "" }),
	} {
		got, err := hooks.Parse(fixture(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Our payloads have the form that GitLab's own client expects, and we read of
// them what it reads.
func TestGitLabsOwnClientReadsOurPayloadsAsWeDo(t *testing.T) {
	for name, kind := range map[string]gl.EventType{
		"pipeline": gl.EventTypePipeline, "push": gl.EventTypePush, "tag_push": gl.EventTypeTagPush, "release": gl.EventTypeRelease,
		"merge_request": gl.EventTypeMergeRequest, "job": gl.EventTypeJob,
	} {
		compare(t, name, kind, fixture(t, name))
	}
}

// The examples that GitLab's client is tested with are somebody else's reading
// of the documentation. They stay where they are, in the module cache.
func TestWeReadTheClientsExamplesAsTheClientDoes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "gitlab.com/gitlab-org/api/client-go/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "testdata", "webhooks")
	for name, kind := range map[string]gl.EventType{
		"pipeline": gl.EventTypePipeline, "push": gl.EventTypePush, "tag_push": gl.EventTypeTagPush, "release": gl.EventTypeRelease,
		"merge_request": gl.EventTypeMergeRequest, "job": gl.EventTypeJob, "build": gl.EventTypeBuild,
	} {
		body, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "client-go's "+name, kind, body)
	}
	others, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(others) < 20 {
		t.Fatalf("%d examples, %v", len(others), err)
	}
	for _, path := range others {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = hooks.Parse(body)
		if nameless := filepath.Base(path) == "group_merge_request.json"; (err != nil) != nameless { // its project has no number
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}

// compare reads a body with both and compares what both have.
func compare(t *testing.T, name string, kind gl.EventType, body []byte) {
	t.Helper()
	ours, err := hooks.Parse(body)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	parsed, err := gl.ParseWebhook(kind, body)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	type core struct {
		Project         int64
		Ref, SHA        string
		Status, Source  string
		ID, IID, Runner int64
	}
	var theirs core
	switch e := parsed.(type) {
	case *gl.PipelineEvent:
		o := e.ObjectAttributes
		theirs = core{Project: e.Project.ID, Ref: o.Ref, SHA: o.SHA, Status: o.Status, Source: o.Source, ID: o.ID, IID: o.IID}
	case *gl.PushEvent:
		theirs = core{Project: e.ProjectID, Ref: strings.TrimPrefix(e.Ref, "refs/heads/"), SHA: e.After}
	case *gl.TagEvent:
		theirs = core{Project: e.ProjectID, Ref: strings.TrimPrefix(e.Ref, "refs/tags/"), SHA: e.After}
	case *gl.ReleaseEvent:
		theirs = core{ID: e.ID, Project: e.Project.ID, Ref: e.Tag, SHA: e.Commit.ID, Status: e.Action}
	case *gl.MergeEvent:
		o := e.ObjectAttributes
		theirs = core{Project: e.Project.ID, Ref: o.TargetBranch, SHA: o.MergeCommitSHA, Status: o.Action, IID: o.IID}
		if theirs.SHA == "" {
			theirs.SHA = o.LastCommit.ID
		}
	case *gl.JobEvent:
		theirs = core{Project: e.ProjectID, Ref: e.Ref, SHA: e.SHA, Status: e.BuildStatus, Runner: e.Runner.ID}
	case *gl.BuildEvent:
		theirs = core{Project: e.ProjectID, Ref: e.Ref, SHA: e.SHA, Status: e.BuildStatus, Runner: 380987}
	default:
		t.Fatalf("%s: the client reads a %T", name, parsed)
	}
	mine := core{ours.Project, ours.Ref, ours.SHA, ours.Status, ours.Source, ours.ID, ours.IID, ours.Runner}
	if diff := cmp.Diff(theirs, mine); diff != "" {
		t.Errorf("%s (-client +ours):\n%s", name, diff)
	}
}

func TestABodyThatIsNoEventSaysWhy(t *testing.T) {
	for body, want := range map[string]string{
		``:                       "not the JSON of a GitLab event",
		`null`:                   "no object_kind",
		`[]`:                     "not the JSON",
		`{"object_kind": 7}`:     "not the JSON",
		`{"event": "push"}`:      "no object_kind",
		`{"object_kind":"push"}`: "has no project",
		`{"object_kind":"push","project_id":1,"ref":"refs/heads/main","after":"x"}`:                                        "has no commit",
		`{"object_kind":"push","project_id":1,"after":"` + sha + `"}`:                                                      "has no branch or tag",
		`{"object_kind":"pipeline","project":{"id":1},"object_attributes":{"ref":"main","sha":"` + sha + `"}}`:             "has no pipeline number",
		`{"object_kind":"pipeline","project":{"id":1},"object_attributes":{"id":1,"ref":"main","sha":"` + sha + `"}}`:      "has no status",
		`{"object_kind":"push","project_id":1,"ref":"refs/heads/\u001b[31m","after":"` + sha + `"}`:                        "control characters",
		`{"object_kind":"push","project_id":1,"ref":"refs/heads/` + strings.Repeat("a", 1100) + `","after":"` + sha + `"}`: "longer than",
		`{"object_kind":"push","project_id":99999999999999999999,"ref":"refs/heads/a","after":"` + sha + `"}`:              "not the JSON",
		strings.Repeat(`{"a":`, 20000): "not the JSON",
	} {
		_, err := hooks.Parse([]byte(body))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", body, err, want)
		}
	}
}

func TestEveryTruncationIsRefusedOrStillAnEvent(t *testing.T) {
	body := fixture(t, "job")
	for n := range len(body) - 2 {
		if e, err := hooks.Parse(body[:n]); err == nil {
			t.Fatalf("cut after %d bytes it is %+v", n, e)
		}
	}
}

func TestAMergeWithoutAMergeCommitIsTheSourceBranchsLast(t *testing.T) {
	const merge = `"merge_commit_sha": "aa11bb22cc33dd44ee55ff6677889900aabbccdd"`
	for change, want := range map[string]string{
		`"merge_commit_sha": null`: sha,
		`"merge_commit_sha": null, "squash_commit_sha": "bb11bb22cc33dd44ee55ff6677889900aabbccdd"`: "bb11bb22cc33dd44ee55ff6677889900aabbccdd",
	} {
		e, err := hooks.Parse(fixture(t, "merge_request", merge, change))
		if err != nil || e.SHA != want {
			t.Errorf("%s: %+v, %v", change, e, err)
		}
	}
}

func TestValuesAreWhatTheEventHas(t *testing.T) {
	e, err := hooks.Parse(fixture(t, "pipeline", `"ref": "main"`, `"ref": "Feature/Größe_1"`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Project": "infra/runner-image", "ProjectID": "42", "Ref": "Feature/Größe_1", "RefSlug": "feature-gr--e-1", "Branch": "Feature/Größe_1",
		"SHA": sha, "ShortSHA": "5f1d0c8e", "PipelineID": "3100", "PipelineIID": "31",
	}
	if diff := cmp.Diff(want, e.Values()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a custom template makes of an event must not be taken for another.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) == 0 {
		f.Fatal(err)
	}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
		f.Add(body[:len(body)/2])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := hooks.Parse(body)
		if (e == nil) == (err == nil) {
			t.Fatalf("%+v, %v", e, err)
		}
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatal("an event was read from what is no JSON")
		}
		for _, trigger := range triggers(t) {
			if ok, why := trigger.Match(e); ok == (why != "") || ok && (e.Project != project || len(e.SHA) < 40 || e.Ref == "") {
				t.Fatalf("%s: %t %q %+v", trigger.Name, ok, why, e)
			}
		}
		for name, value := range e.Values() {
			if value == "" || strings.ContainsAny(value, "\x00\n\x1b") {
				t.Fatalf("%s is %q", name, value)
			}
		}
	})
}
