package hooks_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

// slowWaker wakes when it is let, or when its context ends.
type slowWaker struct {
	hooks.Waker
	let <-chan struct{}
}

func (s slowWaker) WakeDelivery(ctx context.Context, _ string) error {
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// GitLab must not wait for what follows: its clock runs until the answer ends.
func TestTheAnswerIsWholeBeforeWhatFollowsIsDone(t *testing.T) {
	w := newWorld(t, triggers(t))
	let, followed := make(chan struct{}), make(chan struct{})
	w.receiver.Waker = slowWaker{let: let}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		defer close(followed)
		in = in.WithContext(context.WithoutCancel(in.Context()))
		w.receiver.ServeHTTP(out, in)
	}))
	defer server.Close()
	defer close(let)
	body := fixture(t, "pipeline")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+hooks.Path, bytes.NewReader(body))
	w.must(err)
	request.Header = w.signed(body, "k", signingNew, w.Now()).Header
	response, err := http.DefaultClient.Do(request)
	w.must(err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	w.must(err)
	select {
	case <-followed:
		t.Error("the answer ended only when all was done")
	default:
	}
	if response.ContentLength != int64(len(text)) || len(text) == 0 {
		t.Errorf("Content-Length %d, %d bytes came", response.ContentLength, len(text))
	}
}

func TestWhatFollowsTheAnswerKeepsTheConnectionForTwoSecondsAtMost(t *testing.T) {
	w := newWorld(t, triggers(t))
	w.receiver.Waker = slowWaker{}
	w.receiver.Store = nowhere{}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w.receiver.ServeHTTP(httptest.NewRecorder(), w.signed(fixture(t, "pipeline"), "k", signingNew, w.Now()))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
