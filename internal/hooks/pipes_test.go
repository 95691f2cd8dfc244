package hooks_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/hooks"
)

// pipes is a network of one bubble of synctest, without buffers.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// serve begins to serve a world's receiver in a bubble; what it takes is not kept.
func serve(t *testing.T, w *world) *pipes {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	options := w.receiver.Options
	options.Store = nowhere{}
	server := &http.Server{Handler: hooks.NewReceiver(options)} //nolint:gosec // a pipe has no strangers but ours
	go func() { _ = server.Serve(p) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	p.conns <- there
	t.Cleanup(func() { _ = here.Close() })
	return here
}

// dialer dials for a client.
func (p *pipes) dialer(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	return func(context.Context, string, string) (net.Conn, error) { return p.dial(t), nil }
}

// stranger announces a body under a signature that nobody can judge before its
// end, and sends so much of it when the server has begun to read.
func (p *pipes) stranger(t *testing.T, w *world, announced, sent int) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := p.dial(t)
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: sluice\r\nContent-Length: %d\r\nExpect: 100-continue\r\n"+
		"Webhook-Id: a\r\nWebhook-Timestamp: %d\r\nWebhook-Signature: v1,%s\r\n\r\n",
		hooks.Path, announced, w.Now().Unix(), base64.StdEncoding.EncodeToString(make([]byte, 32)))
	w.must(err)
	from := bufio.NewReader(conn)
	response, err := http.ReadResponse(from, nil)
	w.must(err)
	if response.StatusCode != http.StatusContinue {
		t.Fatalf("a stranger was told %d", response.StatusCode)
	}
	_, err = conn.Write(bytes.Repeat([]byte(" "), sent))
	w.must(err)
	return conn, from
}

// honest sends a delivery that is signed well and yields the status.
func (p *pipes) honest(t *testing.T, w *world, body []byte) int {
	t.Helper()
	conn := p.dial(t)
	request := w.signed(body, "honest", signingNew, w.Now())
	go func() { _ = request.Write(conn) }() // it may be answered before its end
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	w.must(err)
	w.must(response.Body.Close())
	return response.StatusCode
}

// nowhere is a store that keeps nothing.
type nowhere struct{ hooks.Store }

func (nowhere) ReceiveDelivery(context.Context, *fleet.Delivery) (*fleet.Delivery, error) {
	return nil, nil
}
