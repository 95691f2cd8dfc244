package hooks

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// Bounds of what bodies may take: GitLab sends at most 25 MB
// (facts/gitlab.md section 5.1), nearly all far less. Before its end nobody
// knows who sent a signed body, so what waits for one is bounded: 64 bodies of
// up to 1 MiB and 4 of any size, 164 MiB in all.
const (
	bodyLimit  = 25 << 20
	smallBody  = 1 << 20
	mostBodies = 64
	mostLarge  = 4
)

// bodies reads bodies, so many at once.
type bodies struct {
	all, large chan struct{}
}

func newBodies() *bodies {
	return &bodies{all: make(chan struct{}, mostBodies), large: make(chan struct{}, mostLarge)}
}

// read yields a whole body. Errors: *refusal.
func (b *bodies) read(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	if req.ContentLength > bodyLimit {
		return nil, tooLarge()
	}
	select {
	case b.all <- struct{}{}:
		defer func() { <-b.all }()
	case <-req.Context().Done():
		return nil, incomplete()
	}
	var body bytes.Buffer
	from := http.MaxBytesReader(w, req.Body, bodyLimit)
	n, err := io.CopyN(&body, from, smallBody)
	if errors.Is(err, io.EOF) && n < smallBody {
		return body.Bytes(), nil
	}
	if err != nil {
		return nil, unread(err)
	}
	select {
	case b.large <- struct{}{}:
		defer func() { <-b.large }()
	default:
		return nil, refuse(resultBusy, "too many large deliveries at once", "send it again from the webhook's page in GitLab")
	}
	if _, err := io.Copy(&body, from); err != nil {
		return nil, unread(err)
	}
	return body.Bytes(), nil
}

func unread(err error) *refusal {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge()
	}
	return incomplete()
}

func tooLarge() *refusal {
	return refuse(resultTooLarge, "the body is larger than 25 MiB", "GitLab sends no such delivery")
}

func incomplete() *refusal {
	return refuse(resultIncomplete, "the body did not come whole", "send it again from the webhook's page in GitLab")
}
