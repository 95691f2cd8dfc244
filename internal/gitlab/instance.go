package gitlab

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	gl "gitlab.com/gitlab-org/api/client-go/v2"
	"golang.org/x/time/rate"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Defaults of Config.
const (
	defaultTimeout = 10 * time.Second
	defaultRate    = 10 // requests per second; gitlab.com allows 33 per user
	defaultBurst   = 30
	defaultFresh   = time.Second
	retries        = 2
)

// Config says which instance it is and how to speak with it.
type Config struct {
	// URL is the instance's root, like https://gitlab.com or
	// https://example.org/gitlab.
	URL string
	// Token is a user token with scope read_api; empty: only Registrars work.
	Token string
	// Now is the clock that readings are stamped with. Required.
	Now func() time.Time
	// Transport carries the requests; nil: Go's default.
	Transport http.RoundTripper
	// Timeout bounds one request with its retries. 0: 10 s.
	Timeout time.Duration
	// Rate is the limit in requests per second. 0: 10.
	Rate float64
	// Fresh is for how long a completed reading may still answer askers whose
	// "after" it meets. Short, so that asking again looks again. 0: 1 s.
	Fresh time.Duration
	// UserAgent names us to GitLab. Empty: "sluice".
	UserAgent string
	// Observe is told of each attempt, see NewGuard. Nil: nobody.
	Observe func(route, code string)
	// Log gets the client's retries. Nil: nobody.
	Log *slog.Logger
}

// Instance is one GitLab. It is safe for concurrent use.
type Instance struct {
	cfg    Config
	base   *url.URL
	user   *gl.Client        // speaks with the user token
	runner *gl.Client        // speaks without: the runner's token is in the call
	key    string            // of the user token in the configuration
	scope  string            // that it needs
	wire   http.RoundTripper // below every guard: shared, so that a 429 keeps everybody away
}

// New returns the instance of cfg; nothing is sent. Errors: CodeInvalid.
func New(cfg Config) (*Instance, error) {
	return newInstance(cfg, rules, "gitlab.token", "read_api")
}

func newInstance(cfg Config, list []rule, key, scope string) (*Instance, error) {
	base, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		return nil, fleet.Errorf(fleet.CodeInternal, "gitlab.Config.Now is missing")
	}
	cfg = cfg.withDefaults()
	in := &Instance{cfg: cfg, base: base, key: key, scope: scope, wire: &pause{next: cfg.Transport, now: cfg.Now}}
	hc := &http.Client{
		Transport: newGuard(base, in.wire, list, cfg.Observe),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	options := []gl.ClientOptionFunc{
		gl.WithBaseURL(base.String()),
		gl.WithHTTPClient(hc),
		gl.WithOnlyIdempotentRetries(),
		gl.WithCustomRetryMax(retries),
		gl.WithCustomBackoff(backoff),
		gl.WithCustomLimiter(rate.NewLimiter(rate.Limit(cfg.Rate), defaultBurst)),
		gl.WithUserAgent(cfg.UserAgent),
	}
	if cfg.Log != nil {
		options = append(options, gl.WithCustomLeveledLogger(retryLog{cfg.Log}))
	}
	if in.user, err = gl.NewClient(cfg.Token, options...); err == nil {
		in.runner, err = gl.NewAuthSourceClient(gl.Unauthenticated{}, options...)
	}
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "gitlab.url: %w", err)
	}
	return in, nil
}

func (c Config) withDefaults() Config {
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Rate == 0 {
		c.Rate = defaultRate
	}
	if c.Fresh == 0 {
		c.Fresh = defaultFresh
	}
	if c.UserAgent == "" {
		c.UserAgent = "sluice"
	}
	return c
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fleet.Errorf(fleet.CodeInvalid, "gitlab.url is not the address of a GitLab").
			WithHint("write it like https://gitlab.com")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fleet.Errorf(fleet.CodeInvalid, "gitlab.url holds more than an address").
			WithHint("write it like https://gitlab.com; the token has a key of its own")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/api/v4")
	if u.EscapedPath() != u.Path {
		return nil, fleet.Errorf(fleet.CodeInvalid, "gitlab.url has an encoded path").
			WithHint("write it like https://example.org/gitlab")
	}
	return u, nil
}

// backoff is short: who asks has a deadline, and asks again later anyway.
func backoff(_, _ time.Duration, attempt int, _ *http.Response) time.Duration {
	return 200 * time.Millisecond << attempt
}

// retryLog hands the client's retries to slog. Its other lines are noise.
type retryLog struct{ log *slog.Logger }

var _ retryablehttp.LeveledLogger = retryLog{}

func (retryLog) Error(string, ...any) {}
func (retryLog) Info(string, ...any)  {}
func (retryLog) Warn(string, ...any)  {}

func (l retryLog) Debug(msg string, kv ...any) {
	if msg == "retrying request" {
		l.log.DebugContext(context.Background(), "gitlab: retrying request", kv...)
	}
}
