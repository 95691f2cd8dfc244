package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// How long an answer of an issuer is good for. Each token with an unknown key
// makes the verifier ask for the keys anew: forged ones by the thousand must
// not become requests to GitLab by the thousand. A new key is known after
// keepAnswer at the latest; GitLab publishes keys before it signs with them.
const (
	keepAnswer  = 10 * time.Second
	keepFailure = 2 * time.Second
	askLimit    = 10 * time.Second // one request
	maxAnswer   = 1 << 20          // bytes
)

// errKeys says that an issuer could not be asked.
var errKeys = errors.New("the issuer's keys cannot be read")

// sparing is a transport that asks the same thing only so often.
type sparing struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex // held while asking: one request at a time
	kept map[string]*kept
}

type kept struct {
	at   time.Time
	body []byte
	err  error
}

// newSparing makes the client that an issuer is asked with. It follows no
// redirect: the keys are where discovery says, and what is not 200 is an error
// of the transport, before the client could see where it leads. next nil = Go's
// default.
func newSparing(next http.RoundTripper, now func() time.Time) *http.Client {
	if next == nil {
		next = http.DefaultTransport
	}
	return &http.Client{Transport: &sparing{next: next, now: now, kept: map[string]*kept{}}}
}

// RoundTrip implements http.RoundTripper. Errors: errKeys.
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := r.URL.String()
	k := s.kept[url]
	if k == nil || !k.fresh(s.now()) {
		body, err := s.ask(r)
		k = &kept{at: s.now(), body: body, err: err}
		s.kept[url] = k
	}
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(k.body)), Body: io.NopCloser(bytes.NewReader(k.body)),
	}, nil
}

func (k *kept) fresh(now time.Time) bool {
	life := keepAnswer
	if k.err != nil {
		life = keepFailure
	}
	age := now.Sub(k.at)
	return age >= 0 && age < life
}

// ask sends the request, detached from whoever asked first: the next one waits
// for the same answer.
func (s *sparing) ask(r *http.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), askLimit)
	defer cancel()
	response, err := s.next.RoundTrip(r.Clone(ctx))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errKeys, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: GET %s answered %s", errKeys, r.URL.Redacted(), response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errKeys, err)
	case len(body) > maxAnswer || !json.Valid(body):
		return nil, fmt.Errorf("%w: GET %s answered no JSON", errKeys, r.URL.Redacted())
	}
	return body, nil
}
