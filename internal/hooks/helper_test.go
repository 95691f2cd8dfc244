package hooks_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gitlab.com/sluice-runners/sluice/internal/control"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
	"gitlab.com/sluice-runners/sluice/internal/hooks/imagename"
	"gitlab.com/sluice-runners/sluice/internal/store"
)

// Tokens of the tests: two of each kind, as in the middle of a rotation.
const (
	signingOld = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	signingNew = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	signingBad = "whsec_YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="
	tokenOld   = "an-old-secret-token"
	tokenNew   = "a-new-secret-token"
)

// world is a Receiver and a Worker over a real store and a real Control, with
// a clock that the test moves.
type world struct {
	*testing.T
	receiver *hooks.Receiver
	worker   *hooks.Worker
	store    *store.Store
	images   *shelf

	mu      sync.Mutex
	now     time.Time
	woken   []string // deliveries, then operations
	counted map[string]int
}

// Now implements the clocks.
func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) WakeDelivery(_ context.Context, id string) error { return w.wake(id) }
func (w *world) Wake(_ context.Context, id string) error         { return w.wake(id) }

func (w *world) wake(id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, id)
	return nil
}

// Delivery implements hooks.Observer.
func (w *world) Delivery(event, result string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted[event+" "+result]++
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// shelf holds the images that there are.
type shelf struct {
	mu    sync.Mutex
	known []string
	asked int
	err   error // instead of "missing"
}

func (s *shelf) put(image string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = append(s.known, image)
}

// Find implements hooks.Images.
func (s *shelf) Find(_ context.Context, _, _, image string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	switch {
	case slices.Contains(s.known, image):
		return nil
	case s.err != nil:
		return s.err
	}
	return fleet.Errorf(fleet.CodeImageMissing, "there is no image %s", image)
}

const project = 42

func image(t testing.TB, kind, text string) *imagename.Template {
	t.Helper()
	parsed, err := imagename.Parse(kind, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// triggers are one of each kind.
func triggers(t testing.TB) []hooks.Trigger {
	return []hooks.Trigger{
		{Name: "pipeline-gcp", On: hooks.KindPipeline, Project: project, Status: "success", Fleet: "gcp", Image: image(t, "pipeline", "runner-{{ .ShortSHA }}")},
		{Name: "push-aws", On: hooks.KindPush, Project: project, Branch: "main", Fleet: "aws"},
		{Name: "tag-aws", On: hooks.KindTag, Project: project, Tag: "v*", Fleet: "aws", VMs: []string{"x"}, Image: image(t, "tag", "runner-{{ .Tag }}")},
		{Name: "release-aws", On: hooks.KindRelease, Project: project, Fleet: "aws", Image: image(t, "release", "runner-{{ .Tag }}")},
		{Name: "merge-gcp", On: hooks.KindMerge, Project: project, Fleet: "gcp", Image: image(t, "merge", "merged-{{ .ShortSHA }}"), ImageWait: time.Hour},
	}
}

func newWorld(t *testing.T, list []hooks.Trigger) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), counted: map[string]int{}, images: &shelf{}}
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "sluice.db"), Clock: w})
	w.must(err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.store = s
	specs := map[string]fleet.Spec{
		"gcp": {Name: "gcp", VMs: []string{"a", "b"}, RunnerID: 7, HasGitLab: true, Drain: fleet.DefaultDrainPolicy()},
		"aws": {Name: "aws", VMs: []string{"x", "y", "z"}, RunnerID: 8, HasGitLab: true, Drain: fleet.DefaultDrainPolicy()},
	}
	keys, err := hooks.NewKeys([]string{signingOld, signingNew}, []string{tokenOld, tokenNew})
	w.must(err)
	log := slog.New(slog.DiscardHandler)
	w.receiver = hooks.NewReceiver(hooks.Options{
		Keys: keys, Triggers: list, Fleets: specs, Store: s, Waker: w, Observer: w, Clock: w, Log: log,
	})
	w.worker = &hooks.Worker{
		Store: s, Images: w.images, Clock: w, Log: log,
		Control: control.New(control.Options{Fleets: specs, Store: s, Waker: w, Clock: w, Log: log}),
	}
	return w
}

// fixture reads a payload, written after GitLab's documented examples; change
// replaces texts in it, in pairs.
func fixture(t testing.TB, name string, change ...string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(change); i += 2 {
		if !bytes.Contains(body, []byte(change[i])) {
			t.Fatalf("%s has no %s", name, change[i])
		}
		body = bytes.ReplaceAll(body, []byte(change[i]), []byte(change[i+1]))
	}
	return body
}

// signed makes a delivery as GitLab does, signed by a library that is not ours.
func (w *world) signed(body []byte, key, token string, at time.Time) *http.Request {
	w.Helper()
	request := httptest.NewRequest(http.MethodPost, hooks.Path, bytes.NewReader(body))
	signer, err := standard.NewWebhook(token)
	w.must(err)
	signature, err := signer.Sign(key, at, body)
	w.must(err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitLab/19.4.0", "Idempotency-Key": key,
		"webhook-id": key, "webhook-timestamp": fmt.Sprint(at.Unix()), "webhook-signature": signature,
	} {
		request.Header.Set(name, value)
	}
	return request
}

// tokened makes a delivery with a secret token.
func tokened(body []byte, key, token string) *http.Request {
	request := httptest.NewRequest(http.MethodPost, hooks.Path, bytes.NewReader(body))
	request.Header.Set("X-Gitlab-Token", token)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	return request
}

// serve yields status and body.
func (w *world) serve(request *http.Request) (int, string) {
	w.Helper()
	recorder := httptest.NewRecorder()
	w.receiver.ServeHTTP(recorder, request)
	body, err := io.ReadAll(recorder.Body)
	w.must(err)
	return recorder.Code, string(body)
}

// send delivers a payload, signed now, and yields what became of it.
func (w *world) send(key string, body []byte) *fleet.Delivery {
	w.Helper()
	status, text := w.serve(w.signed(body, key, signingNew, w.Now()))
	if status/100 != 2 {
		w.Fatalf("status %d: %s", status, text)
	}
	list, err := w.store.Deliveries(w.Context(), fleet.DeliveryFilter{Limit: 1000})
	w.must(err)
	for i := range list {
		if strings.Contains(text, list[i].ID) {
			return &list[i]
		}
	}
	w.Fatalf("no delivery is in the list: %s", text)
	return nil
}

// work looks at a delivery until it waits or is done, and yields it.
func (w *world) work(id string) *fleet.Delivery {
	w.Helper()
	_, _, err := w.worker.LookDelivery(w.Context(), id)
	w.must(err)
	d, err := w.store.Delivery(w.Context(), id)
	w.must(err)
	return d
}

// operations lists what is asked for, oldest first, as "fleet/vm image".
func (w *world) operations() []string {
	w.Helper()
	ops, err := w.store.Operations(w.Context(), control.Filter{Limit: 1000})
	w.must(err)
	slices.Reverse(ops)
	var list []string
	for _, op := range ops {
		text := op.Ref().String() + " " + op.Request.Image
		if op.Phase != fleet.PhaseQueued {
			text += " " + string(op.Phase)
		}
		list = append(list, text)
	}
	return list
}

// set changes the unfinished operation of a VM as the engine would.
func (w *world) set(fleetName, vm string, change func(*fleet.Operation)) {
	w.Helper()
	ops, err := w.store.Operations(w.Context(), control.Filter{Fleet: fleetName, VM: vm, Unfinished: true})
	w.must(err)
	if len(ops) != 1 {
		w.Fatalf("%s/%s has %d unfinished operations", fleetName, vm, len(ops))
	}
	change(&ops[0])
	w.must(w.store.UpdateOperation(w.Context(), &ops[0], nil, nil, nil))
}

func finish(op *fleet.Operation) { op.Phase = fleet.PhaseSucceeded }

func (w *world) wantOperations(want ...string) {
	w.Helper()
	if got := w.operations(); !slices.Equal(got, want) {
		w.Errorf("operations %q, want %q", got, want)
	}
}

func (w *world) wantOutcome(d *fleet.Delivery, outcome fleet.DeliveryOutcome, reason string) {
	w.Helper()
	if d.Outcome != outcome || !strings.Contains(d.Reason, reason) {
		w.Errorf("delivery %s is %s: %s; want %s: …%s…", d.ID, d.Outcome, d.Reason, outcome, reason)
	}
}
