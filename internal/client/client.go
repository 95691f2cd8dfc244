package client

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// answerLimit bounds one request: the server's own limit and a little more.
const answerLimit = 100 * time.Second

// Options say where the server is: exactly one of URL, Socket and Handler.
type Options struct {
	URL     string // http(s)://host:port
	Token   string // bearer token, with URL
	Socket  string // path of a Unix socket
	Handler http.Handler
	By      fleet.Actor // who asks, with Handler
	// Answered sees every answer before it is read; it must not touch the
	// body. May be nil.
	Answered func(*http.Response)
}

// Client asks one server. Its errors are *fleet.Error with the server's code,
// words and hint; CodeUnavailable if there was no answer; [CodeUnauthorized]
// if the server did not accept the token.
type Client struct {
	api     *API
	streams *API // without a limit on how long an answer takes
	where   string
}

// CodeUnauthorized is the API's only code beside those of package fleet.
const CodeUnauthorized fleet.Code = "unauthorized"

// New makes a client. It does not connect. Errors: CodeInvalid for a URL that
// is none.
func New(o Options) (*Client, error) {
	c := &Client{}
	base, transport := "http://sluice", http.RoundTripper(nil)
	switch {
	case o.Handler != nil:
		c.where, transport = "this process", inProcess{handler: o.Handler, by: o.By}
	case o.Socket != "":
		c.where, transport = "the socket "+o.Socket, overSocket(o.Socket)
	default:
		u, err := url.Parse(o.URL)
		if err != nil { // it may hold a password: nothing of it is repeated
			return nil, fleet.Errorf(fleet.CodeInvalid, "--server is not a URL").WithHint("write https://sluice.example.com")
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
			return nil, fleet.Errorf(fleet.CodeInvalid, "--server %q is not an http(s) URL", u.Redacted()).WithHint("write https://sluice.example.com")
		}
		base, c.where, transport = strings.TrimRight(o.URL, "/"), o.URL, http.DefaultTransport
	}
	if o.Answered != nil {
		transport = watched{transport, o.Answered}
	}
	var err error
	if c.api, err = generated(base, o.Token, transport, answerLimit); err == nil {
		c.streams, err = generated(base, o.Token, transport, 0)
	}
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "--server: %w", err)
	}
	return c, nil
}

// watched shows answers to somebody.
type watched struct {
	http.RoundTripper
	answered func(*http.Response)
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(r)
	if err == nil {
		w.answered(response)
	}
	return response, err
}

// generated makes the generated client; limit 0 = none.
func generated(base, token string, transport http.RoundTripper, limit time.Duration) (*API, error) {
	doer := &http.Client{
		Transport: transport, Timeout: limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return NewClient(base, WithHTTPClient(doer), WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}))
}

// Where names the server for people.
func (c *Client) Where() string { return c.where }

func overSocket(path string) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
	}
}
