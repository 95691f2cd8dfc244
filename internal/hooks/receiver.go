package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Path is where GitLab sends to.
const Path = "/webhooks/gitlab"

// storeLimit is how long a delivery may take to be stored: GitLab waits for
// 10 s (facts/gitlab.md section 5.1).
const storeLimit = 8 * time.Second

// followLimit bounds what is done after the answer, while the connection is
// kept: all of it is healed by the queue's sweep and by the drains' own looks.
const followLimit = 2 * time.Second

// Options are what a Receiver is made of.
type Options struct {
	Keys     *Keys
	Triggers []Trigger
	Fleets   map[string]fleet.Spec
	Store    Store
	Waker    Waker
	Observer Observer
	Clock    Clock
	Random   io.Reader // for ids; nil = crypto/rand
	Log      *slog.Logger
}

// Receiver takes deliveries: an http.Handler for [Path].
type Receiver struct {
	Options
	bodies *bodies
	hints  *hints
	noise  *rate.Limiter // of log lines about those who are not let in
}

// NewReceiver makes a Receiver.
func NewReceiver(o Options) *Receiver {
	return &Receiver{Options: o, bodies: newBodies(), hints: newHints(o), noise: rate.NewLimiter(1, 5)}
}

// answer is what GitLab is told; it keeps it for people to look at.
type answer struct {
	Delivery string `json:"delivery"`
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason,omitempty"`
}

// ServeHTTP answers 200 or 202 to everything that is authenticated and stored,
// whatever it comes to: GitLab stops sending to who refuses.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, problem{Status: http.StatusMethodNotAllowed, Code: "invalid", Detail: "deliveries come by POST"})
		return
	}
	if r.Keys.Empty() {
		writeProblem(w, problem{
			Status: http.StatusNotFound, Code: "not_found", Detail: "webhooks are not configured here",
			Hint: "set webhooks.gitlab.signing_tokens or webhooks.gitlab.secret_tokens",
		})
		return
	}
	body, c, err := r.admit(w, req)
	if err != nil {
		r.refused(w, req, err)
		return
	}
	// The caller may be gone meanwhile: it is stored all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), storeLimit)
	defer cancel()
	d, event, result, err := r.take(ctx, c, body)
	if err != nil {
		r.refused(w, req, err)
		return
	}
	status := http.StatusOK
	if result == resultAccepted {
		status = http.StatusAccepted
	}
	r.Observer.Delivery(d.Event, result)
	respond(w, status, "application/json", answer{Delivery: d.ID, Outcome: string(d.Outcome), Reason: d.Reason})
	_ = http.NewResponseController(w).Flush() // what follows is no matter of the caller's
	after, cancel := context.WithTimeout(ctx, followLimit)
	defer cancel()
	r.follow(after, d, event, result)
}

// admit reads the body of who may send one.
func (r *Receiver) admit(w http.ResponseWriter, req *http.Request) ([]byte, *claim, error) {
	c, err := r.Keys.claim(req.Header, r.Clock.Now())
	if err != nil {
		return nil, nil, err
	}
	body, err := r.bodies.read(w, req)
	if err != nil {
		return nil, nil, err
	}
	return body, c, c.verify(body)
}

// take stores an authenticated delivery with its work; of a repeat it yields
// the first. Errors: *refusal.
func (r *Receiver) take(ctx context.Context, c *claim, body []byte) (*fleet.Delivery, *Event, string, error) {
	d, event, err := r.delivery(c, body)
	if err == nil {
		var first *fleet.Delivery
		if first, err = r.Store.ReceiveDelivery(ctx, d); first != nil {
			return first, nil, resultRepeated, nil
		}
	}
	if err != nil {
		r.Log.ErrorContext(ctx, "a delivery was not stored", "event", d.Event, "project", d.Project, "error", err)
		return nil, nil, "", refuse(resultFailed, "the delivery could not be stored", "see the controller's log, then send it again from the webhook's page in GitLab")
	}
	r.Log.InfoContext(ctx, "delivery", "delivery", d.ID, "event", d.Event, "project", d.Project, "ref", d.Ref, "outcome", d.Outcome, "reason", d.Reason)
	return d, event, resultOf(d), nil
}

func resultOf(d *fleet.Delivery) string {
	switch {
	case len(d.Tasks) > 0:
		return resultAccepted
	case d.Outcome == fleet.DeliveryHint:
		return resultHint
	case d.Outcome == fleet.DeliveryUnreadable:
		return resultUnreadable
	default:
		return resultIgnored
	}
}

// follow begins what a delivery comes to.
func (r *Receiver) follow(ctx context.Context, d *fleet.Delivery, event *Event, result string) {
	switch {
	case result == resultHint:
		r.hints.give(ctx, event.Runner)
	case result == resultAccepted && d.Outcome == fleet.DeliveryPending:
		if err := r.Waker.WakeDelivery(ctx, d.ID); err != nil {
			r.Log.WarnContext(ctx, "the queue was not woken; its sweep will find the delivery", "delivery", d.ID, "error", err)
		}
	}
}

// refused answers who is not let in, or whose delivery could not be stored.
func (r *Receiver) refused(w http.ResponseWriter, req *http.Request, err error) {
	no, ok := errors.AsType[*refusal](err)
	if !ok {
		no = refuse(resultFailed, "the delivery could not be read", "")
	}
	event := eventOf(req.Header.Get(headerEvent))
	r.Observer.Delivery(string(event), no.result)
	if r.noise.AllowN(r.Clock.Now(), 1) {
		r.Log.WarnContext(req.Context(), "a webhook delivery was refused", "from", req.RemoteAddr, "event", event, "result", no.result, "error", no.detail)
	}
	writeProblem(w, problem{Status: no.status(), Code: no.code(), Detail: no.detail, Hint: no.hint})
}

// eventOf names the kind by the header of who is not let in: for the count only.
func eventOf(header string) Kind {
	switch header {
	case "Pipeline Hook":
		return KindPipeline
	case "Push Hook":
		return KindPush
	case "Tag Push Hook":
		return KindTag
	case "Release Hook":
		return KindRelease
	case "Merge Request Hook":
		return KindMerge
	case "Job Hook":
		return KindJob
	default:
		return KindOther
	}
}

// digest tells bodies apart.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
