package hooks_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

// cases.md T85: GitLab disables the hook of who refuses. Whatever is
// authenticated is answered with 2xx, and says what it came to.
func TestWhateverIsAuthenticatedIsTaken(t *testing.T) {
	for _, c := range []struct {
		name, body, reason string
		outcome            fleet.DeliveryOutcome
		status             int
	}{
		{"pipeline", "", "trigger pipeline-gcp: recreate 2 VMs of gcp with image runner-5f1d0c8e", fleet.DeliveryPending, 202},
		{"push", "", "trigger push-aws: recreate 3 VMs of aws", fleet.DeliveryPending, 202},
		{"tag_push", "", "trigger tag-aws: recreate 1 VMs of aws with image runner-v1.4.0", fleet.DeliveryPending, 202},
		{"release", "", "trigger release-aws: recreate 3 VMs of aws with image runner-v1.4.0", fleet.DeliveryPending, 202},
		{"merge_request", "", "trigger merge-gcp: recreate 2 VMs of gcp with image merged-aa11bb22", fleet.DeliveryPending, 202},
		{"job", "", "a job ended on the runner of gcp", fleet.DeliveryHint, 200},
		{"deployment", "", `nothing follows from "deployment" events`, fleet.DeliveryIgnored, 200},
		{"issue", "", `nothing follows from "issue" events`, fleet.DeliveryIgnored, 200},
		{"group_member", "", `nothing follows from "user_add_to_group" events`, fleet.DeliveryIgnored, 200},
		{"", "{", "not the JSON of a GitLab event", fleet.DeliveryUnreadable, 200},
		{"", "", "not the JSON of a GitLab event", fleet.DeliveryUnreadable, 200},
		{"", `{"event":"push"}`, "no object_kind", fleet.DeliveryUnreadable, 200},
	} {
		t.Run(c.name+c.body, func(t *testing.T) {
			w := newWorld(t, triggers(t))
			body := []byte(c.body)
			if c.name != "" {
				body = fixture(t, c.name)
			}
			status, text := w.serve(w.signed(body, "k", signingNew, w.Now()))
			if status != c.status || !strings.Contains(text, `"outcome":"`+string(c.outcome)) {
				t.Errorf("%d %s", status, text)
			}
			list, err := w.store.Deliveries(t.Context(), fleet.DeliveryFilter{})
			w.must(err)
			if len(list) != 1 || (len(w.woken) == 1) != (c.outcome == fleet.DeliveryPending) {
				t.Fatalf("%d deliveries, woken %v", len(list), w.woken)
			}
			w.wantOutcome(&list[0], c.outcome, c.reason)
			if list[0].FinishedAt.IsZero() != (c.outcome == fleet.DeliveryPending) {
				t.Errorf("finished at %s", list[0].FinishedAt)
			}
		})
	}
}

func TestWhoIsNotLetInLeavesNothing(t *testing.T) {
	body := fixture(t, "pipeline")
	for name, c := range map[string]struct {
		change func(*world, *http.Request)
		result string
		status int
	}{
		"nothing that says who it is": {func(_ *world, r *http.Request) { clear(r.Header) }, "other unauthorized", 401},
		"a key that is not ours": {func(w *world, r *http.Request) {
			*r = *w.signed(body, "k", signingBad, w.Now())
		}, "other unauthorized", 401},
		"a bad signature and a good token": {func(w *world, r *http.Request) {
			*r = *w.signed(body, "k", signingBad, w.Now())
			r.Header.Set("X-Gitlab-Token", tokenNew)
		}, "other unauthorized", 401},
		"another body": {func(_ *world, r *http.Request) {
			r.Body = io.NopCloser(bytes.NewReader(append(bytes.Clone(body), ' ')))
		}, "other unauthorized", 401},
		"another id": {func(_ *world, r *http.Request) { r.Header.Set("webhook-id", "k2") }, "other unauthorized", 401},
		"no id":      {func(_ *world, r *http.Request) { r.Header.Del("webhook-id") }, "other unauthorized", 401},
		"another time": {func(_ *world, r *http.Request) {
			r.Header.Set("webhook-timestamp", "1764504001")
		}, "other stale", 401},
		"a moved time within the window": {func(w *world, r *http.Request) {
			r.Header.Set("webhook-timestamp", fmt.Sprint(w.Now().Add(time.Second).Unix()))
		}, "other unauthorized", 401},
		"no time":              {func(_ *world, r *http.Request) { r.Header.Del("webhook-timestamp") }, "other unauthorized", 401},
		"a time that is none":  {func(_ *world, r *http.Request) { r.Header.Set("webhook-timestamp", "now") }, "other unauthorized", 401},
		"a time out of bounds": {func(_ *world, r *http.Request) { r.Header.Set("webhook-timestamp", "-9223372036854775808") }, "other stale", 401},
		"an old time": {func(w *world, r *http.Request) {
			*r = *w.signed(body, "k", signingNew, w.Now().Add(-5*time.Minute-time.Second))
		}, "other stale", 401},
		"a time ahead of ours": {func(w *world, r *http.Request) {
			*r = *w.signed(body, "k", signingNew, w.Now().Add(5*time.Minute+time.Second))
		}, "other stale", 401},
		"a signature of no known form": {func(_ *world, r *http.Request) { r.Header.Set("webhook-signature", "v9,AAAA v1,x") }, "other unauthorized", 401},
		"a wrong secret token": {func(_ *world, r *http.Request) {
			*r = *tokened(body, "k", "another-secret-token")
		}, "other unauthorized", 401},
		"an empty secret token": {func(_ *world, r *http.Request) { *r = *tokened(body, "k", "") }, "other unauthorized", 401},
		"the hash of a secret token": {func(_ *world, r *http.Request) {
			*r = *tokened(body, "k", fmt.Sprintf("%x", sha256.Sum256([]byte(tokenNew))))
		}, "other unauthorized", 401},
		"a body that is longer than GitLab's": {func(_ *world, r *http.Request) {
			*r = *tokened(bytes.Repeat([]byte(" "), 26<<20), "k", tokenNew)
		}, "other too_large", 413},
		"a body of unknown length that is longer": {func(_ *world, r *http.Request) {
			*r = *tokened(bytes.Repeat([]byte(" "), 26<<20), "k", tokenNew)
			r.ContentLength = -1
		}, "other too_large", 413},
		"a body that breaks off": {func(_ *world, r *http.Request) {
			*r = *tokened(body, "k", tokenNew)
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:100]), broken{}))
		}, "other incomplete", 400},
		"a pipeline that claims to be one": {func(_ *world, r *http.Request) {
			clear(r.Header)
			r.Header.Set("X-Gitlab-Event", "Pipeline Hook")
		}, "pipeline unauthorized", 401},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, triggers(t))
			request := w.signed(body, "k", signingNew, w.Now())
			c.change(w, request)
			status, text := w.serve(request)
			if status != c.status || !strings.Contains(text, `"hint"`) && !strings.Contains(text, "signed") && !strings.Contains(text, "form") {
				t.Errorf("%d %s", status, text)
			}
			if w.counted[c.result] != 1 || len(w.counted) != 1 {
				t.Errorf("counted %v, want %s", w.counted, c.result)
			}
			for _, secret := range []string{signingNew[6:], tokenNew, "another-secret"} {
				if strings.Contains(text, secret) {
					t.Errorf("the answer tells a secret: %s", text)
				}
			}
			if list, err := w.store.Deliveries(t.Context(), fleet.DeliveryFilter{}); err != nil || len(list) != 0 {
				t.Errorf("%d deliveries were stored, %v", len(list), err)
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestEachActiveTokenIsLetIn(t *testing.T) {
	w := newWorld(t, triggers(t))
	at := w.Now()
	body := func(id string) []byte { return fixture(t, "pipeline", `"id": 3100`, `"id": `+id) }
	both := w.signed(body("5"), "k5", signingNew, at)
	other, err := standard.NewWebhook(signingBad)
	w.must(err)
	signature, err := other.Sign("k5", at, body("5"))
	w.must(err)
	both.Header.Set("webhook-signature", signature+" "+both.Header.Get("webhook-signature")) // while GitLab rotates
	for name, request := range map[string]*http.Request{
		"the old signing token":                       w.signed(body("1"), "k1", signingOld, at),
		"the new signing token":                       w.signed(body("2"), "k2", signingNew, at),
		"the old secret token":                        tokened(body("3"), "k3", tokenOld),
		"the new secret token":                        tokened(body("4"), "k4", tokenNew),
		"one of two signatures":                       both,
		"a signature five minutes old":                w.signed(body("6"), "k6", signingNew, at.Add(-5*time.Minute)),
		"a signature by a clock ahead":                w.signed(body("7"), "k7", signingNew, at.Add(time.Minute)),
		"a secret token, no key (GitLab before 17.4)": tokened(body("8"), "", tokenNew),
	} {
		if status, text := w.serve(request); status != http.StatusAccepted {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if w.counted["pipeline accepted"] != 8 {
		t.Errorf("counted %v", w.counted)
	}
}

// Where only signatures count, a secret token lets nobody in; where only
// secret tokens do, a signature that nobody can judge is no reason to refuse.
func TestTheKindOfTokenThatIsConfiguredCounts(t *testing.T) {
	body := fixture(t, "pipeline")
	for name, c := range map[string]struct {
		signing, tokens []string
		request         func(*world) *http.Request
		status          int
	}{
		"unsigned, only signatures": {[]string{signingNew}, nil, func(*world) *http.Request { return tokened(body, "k", tokenNew) }, 401},
		"signed beside, only tokens": {nil, []string{tokenNew}, func(w *world) *http.Request {
			r := w.signed(body, "k", signingBad, w.Now())
			r.Header.Set("X-Gitlab-Token", tokenNew)
			return r
		}, 202},
		"signed and wrong, both kinds": {[]string{signingNew}, []string{tokenNew}, func(w *world) *http.Request { return w.signed(body, "k", signingBad, w.Now()) }, 401},
		"none configured":              {nil, nil, func(*world) *http.Request { return tokened(body, "k", "") }, 404},
	} {
		w := newWorld(t, triggers(t))
		var err error
		w.receiver.Keys, err = hooks.NewKeys(c.signing, c.tokens)
		w.must(err)
		if status, text := w.serve(c.request(w)); status != c.status {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

func TestTokensThatCannotBeOnesAreRefusedByTheirPlace(t *testing.T) {
	for want, lists := range map[string][2][]string{
		"signing token 2 does not begin with whsec_":         {{signingNew, "abc"}, nil},
		"signing token 1 is not base64 after whsec_":         {{"whsec_###"}, nil},
		"signing token 1 has a key of 6 bytes":               {{"whsec_c2VjcmV0"}, nil},
		"secret token 1 has 5 characters: it could be guess": {nil, {"short"}},
	} {
		_, err := hooks.NewKeys(lists[0], lists[1])
		if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The vector that the libraries of Standard Webhooks are tested with.
func TestTheVectorOfStandardWebhooksVerifies(t *testing.T) {
	w := newWorld(t, nil)
	w.now = time.Unix(1614265330, 0)
	var err error
	w.receiver.Keys, err = hooks.NewKeys([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, nil)
	w.must(err)
	request := httptest.NewRequest(http.MethodPost, hooks.Path, strings.NewReader(`{"test": 2432232314}`))
	request.Header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	request.Header.Set("webhook-timestamp", "1614265330")
	request.Header.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	status, text := w.serve(request)
	if status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
}

func TestALargeBodyOfGitLabsOwnSizeIsTaken(t *testing.T) {
	w := newWorld(t, triggers(t))
	body := fixture(t, "pipeline", `"message": "Take the new kernel\n"`, `"message": "`+strings.Repeat("x", 25<<20-8000)+`"`)
	if len(body) > 25<<20 || len(body) < 24<<20 {
		t.Fatalf("the body has %d bytes", len(body))
	}
	w.wantOutcome(w.send("k", body), fleet.DeliveryPending, "pipeline-gcp")
}

func TestADeliveryIsStoredThoughItsSenderIsGone(t *testing.T) {
	w := newWorld(t, triggers(t))
	request := w.signed(fixture(t, "pipeline"), "k", signingNew, w.Now())
	ctx, cancel := context.WithCancel(t.Context())
	request = request.WithContext(ctx)
	request.Body = &closing{Reader: request.Body, closed: cancel}
	if status, _ := w.serve(request); status != http.StatusAccepted {
		t.Errorf("status %d", status)
	}
	if list, err := w.store.Deliveries(t.Context(), fleet.DeliveryFilter{}); err != nil || len(list) != 1 {
		t.Errorf("%d deliveries, %v", len(list), err)
	}
}

// closing hangs up when the body has been read.
type closing struct {
	io.Reader
	closed func()
}

func (c *closing) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF {
		c.closed()
	}
	return n, err
}

func (c *closing) Close() error { return nil }

// A 2xx says that it is stored. What is not is told to GitLab.
func TestWhatCannotBeStoredIsNotAcknowledged(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.receiver.Store = full{w.store}
	status, text := w.serve(w.signed(fixture(t, "pipeline"), "k", signingNew, w.Now()))
	if status != http.StatusServiceUnavailable || w.counted["other failed"] != 1 || len(w.woken) > 0 {
		t.Errorf("%d %s, counted %v, woken %v", status, text, w.counted, w.woken)
	}
}

type full struct{ hooks.Store }

func (full) ReceiveDelivery(context.Context, *fleet.Delivery) (*fleet.Delivery, error) {
	return nil, fleet.Errorf(fleet.CodeUnavailable, "the disk is full")
}

func TestOnlyPostIsTaken(t *testing.T) {
	w := newWorld(t, triggers(t))
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		if status, _ := w.serve(httptest.NewRequest(method, hooks.Path, http.NoBody)); status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, status)
		}
	}
}

// The journal, the list and the log are read by many: what a pipeline's
// variables hold is none of their business.
func TestVariablesOfAPipelineAreNotKept(t *testing.T) {
	w := newWorld(t, triggers(t))
	var log bytes.Buffer
	w.receiver.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.send("k", fixture(t, "pipeline"))
	var state string
	w.must(w.store.DB().QueryRowContext(t.Context(), `select state from deliveries`).Scan(&state))
	for _, text := range []string{state, log.String()} {
		if strings.Contains(text, "not-to-be-kept") || !strings.Contains(text, "runner-5f1d0c8e") {
			t.Errorf("%s", text)
		}
	}
}

// cases.md T83: an event is a hint, and the drain reads for itself.
func TestAJobsEndWakesTheDrainsOfItsRunnersFleet(t *testing.T) {
	w := newWorld(t, triggers(t))
	d := w.send("k0", fixture(t, "pipeline"))
	w.work(d.ID)
	w.set("gcp", "a", func(op *fleet.Operation) { op.Phase = fleet.PhaseDraining })
	drains := func() int {
		n := 0
		for _, id := range w.woken {
			if strings.HasPrefix(id, "op-") {
				n++
			}
		}
		return n
	}
	before := drains()
	w.send("k1", fixture(t, "job"))
	if drains() != before+1 {
		t.Errorf("woken %v", w.woken)
	}
	w.send("k2", fixture(t, "job", `"build_id": 901`, `"build_id": 902`)) // within the same second
	if drains() != before+1 {
		t.Errorf("a burst woke %v", w.woken)
	}
	w.advance(time.Second)
	for i, change := range [][]string{
		{`"id": 7`, `"id": 9`, `"build_id": 901`, `"build_id": 903`},
		{`"build_status": "success"`, `"build_status": "running"`},
	} {
		w.send("k-none-"+string(rune('a'+i)), fixture(t, "job", change...))
	}
	if drains() != before+1 {
		t.Errorf("another runner's job, or one that runs, woke %v", w.woken)
	}
	w.send("k3", fixture(t, "job", `"build_status": "success"`, `"build_status": "failed"`))
	if drains() != before+2 {
		t.Errorf("woken %v", w.woken)
	}
}
