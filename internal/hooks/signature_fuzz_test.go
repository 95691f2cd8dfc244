package hooks_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

// Whatever the headers of a signature say: who is let in is let in by the
// reference library of Standard Webhooks too, by one of our keys, and all others
// are told so.
func FuzzSignature(f *testing.F) {
	w := newWorld(f, triggers(f))
	for _, token := range []string{signingOld, signingNew, signingBad} {
		h := w.signed(fixture(f, "push"), "k", token, w.Now()).Header
		f.Add("k", h.Get("webhook-timestamp"), h.Get("webhook-signature"), "")
		f.Add("k", h.Get("webhook-timestamp"), "v2,xx v1,"+h.Get("webhook-signature")+" v1a,", "X")
		f.Add("k", "+"+h.Get("webhook-timestamp"), h.Get("webhook-signature")+" "+h.Get("webhook-signature"), "")
	}
	f.Add("", "-9223372036854775808", "v1,", "")
	f.Add("k\x00", "9223372036854775807", " , , v1,AAAA", "{}")
	f.Fuzz(func(t *testing.T, id, timestamp, signature, tail string) {
		body := append(fixture(t, "push"), tail...)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, hooks.Path, bytes.NewReader(body))
		request.Header = http.Header{}
		for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature} {
			request.Header.Set(name, value)
		}
		answer := httptest.NewRecorder()
		w.receiver.ServeHTTP(answer, request)
		status, text := answer.Code, answer.Body.String()
		switch {
		case status == http.StatusUnauthorized:
		case status/100 != 2:
			t.Errorf("%d %s", status, text)
		case !referenceLetsIn(t, body, request.Header):
			t.Errorf("%q %q %q is let in", id, timestamp, signature)
		}
	})
}

// referenceLetsIn says what the reference library makes of a signature, whatever
// its age.
func referenceLetsIn(t *testing.T, body []byte, header http.Header) bool {
	for _, token := range []string{signingOld, signingNew} {
		verifier, err := standard.NewWebhook(token)
		if err != nil {
			t.Fatal(err)
		}
		if verifier.VerifyIgnoringTimestamp(body, header) == nil {
			return true
		}
	}
	return false
}

// The fuzz target above means nothing if its good seeds are refused.
func TestBothKeysOfARotationAreLetInAsTheReferenceDoes(t *testing.T) {
	w := newWorld(t, triggers(t))
	for token, want := range map[string]bool{signingOld: true, signingNew: true, signingBad: false} {
		body := fixture(t, "push")
		request := w.signed(body, "k"+token, token, w.Now())
		if status, text := w.serve(request); (status/100 == 2) != want || referenceLetsIn(t, body, request.Header) != want {
			t.Errorf("%s: %d %s", token, status, text)
		}
	}
}
