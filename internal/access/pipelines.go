package access

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Store is what must outlive this process. Every write is durable when the
// call returns.
type Store interface {
	// BindIDToken stores whom an id_token serves, unless it serves somebody
	// already; it yields whom it serves. Forgotten after until.
	BindIDToken(ctx context.Context, issuer, id, holder string, until time.Time) (string, error)
	// SaveFollow stores the hash of a follow token with its operations.
	SaveFollow(ctx context.Context, hash string, operations []string, until time.Time) error
	// Followed yields what was stored under a hash. CodeNotFound: nothing, or
	// it is over.
	Followed(ctx context.Context, hash string) (operations []string, err error)
}

// Options are what Pipelines are made of.
type Options struct {
	Issuers   []Issuer
	Rules     []Rule
	Store     Store
	Clock     interface{ Now() time.Time }
	Random    io.Reader         // nil = crypto/rand
	Transport http.RoundTripper // to the issuers; nil = Go's default
	Log       *slog.Logger
}

// Pipelines lets CI jobs in by their id_tokens. It is safe for concurrent use.
type Pipelines struct {
	Options
	issuers map[string]*issuer
}

// NewPipelines makes it; nothing is asked yet.
func NewPipelines(o Options) *Pipelines {
	p := &Pipelines{Options: o, issuers: map[string]*issuer{}}
	for _, i := range o.Issuers {
		p.issuers[i.URL] = newIssuer(i, o.Transport, o.Clock.Now)
	}
	return p
}

// Knows says whether a bearer token is for Pipelines to judge.
func (p *Pipelines) Knows(token string) bool {
	return p != nil && len(p.issuers) > 0 && looksSigned(token)
}

// Authenticate yields the claims of an id_token that is one. Errors: *Refusal.
func (p *Pipelines) Authenticate(ctx context.Context, token string) (*Claims, error) {
	if len(token) > maxToken {
		return nil, refuse(ReasonSize, fmt.Sprintf("the id_token is longer than %d bytes", maxToken), claimsHint)
	}
	seen, err := peek(token)
	if err != nil {
		return nil, err
	}
	i := p.issuers[seen.issuer]
	if i == nil {
		return nil, refuse(ReasonIssuer, "the id_token is of issuer "+shown(seen.issuer)+", which is not in server.oidc",
			"an operator of this Sluice adds it, written exactly as the claim iss")
	}
	return i.verify(ctx, token)
}

// Permit says whether the policies allow a request. The decision is logged,
// with why each rule does not fit if none does. Errors: *Refusal.
func (p *Pipelines) Permit(ctx context.Context, c *Claims, r Request) error {
	allowed, rulings := judge(p.Rules, c, r)
	log := p.Log.With("caller", c.Name(), "project_id", c.Project, "job_id", c.Job, "action", string(r.Action), "fleet", r.Fleet)
	if allowed >= 0 {
		log.InfoContext(ctx, "a pipeline is allowed", "rule", fmt.Sprintf("access[%d]", allowed))
		return nil
	}
	refusal := refuse(ReasonPolicy, explain(c, r, rulings), hint(c, rulings))
	whole := make([]string, len(rulings))
	for i, ruling := range rulings {
		whole[i] = fmt.Sprintf("access[%d]: %s", i, ruling.why)
	}
	refusal.Detail = strings.Join(whole, "; ")
	return refusal
}

// May is Permit for what is only filtered: nothing is logged.
func (p *Pipelines) May(c *Claims, r Request) bool {
	allowed, _ := judge(p.Rules, c, r)
	return allowed >= 0
}

// explain tells the caller why: rules about others are not shown, not even
// that there are any.
func explain(c *Claims, r Request, rulings []ruling) string {
	text := fmt.Sprintf("no rule of access lets project %d %s on fleet %s", c.Project, r.Action, shown(r.Fleet))
	if len(r.VMs) > 0 {
		text = fmt.Sprintf("no rule of access lets project %d %s %s on fleet %s", c.Project, r.Action, plain(strings.Join(r.VMs, ", ")), shown(r.Fleet))
	}
	var near []string
	for i, ruling := range rulings {
		if !ruling.stranger {
			near = append(near, fmt.Sprintf("access[%d]: %s", i, ruling.why))
		}
	}
	if len(near) == 0 {
		return text + ": none is for this project"
	}
	return text + ": " + strings.Join(near, "; ")
}

func hint(c *Claims, rulings []ruling) string {
	for _, ruling := range rulings {
		if !ruling.stranger {
			return "change the job to fit the rule, or ask an operator of this Sluice to change access in its configuration"
		}
	}
	return fmt.Sprintf("an operator of this Sluice adds a rule to access with claims: {project_id: %d}", c.Project)
}

// Bind ties an id_token to the first request it makes: the job and its
// Idempotency-Key. A repeat of that request passes, another is refused: a
// token that leaks serves nobody else (design.md section 8). Errors: *Refusal,
// or those of the store.
func (p *Pipelines) Bind(ctx context.Context, c *Claims, key string) error {
	if key == "" {
		return refuse(ReasonNoKey, "a change by a pipeline needs an Idempotency-Key",
			"send one made of project, pipeline and job name, so that a retried job attaches to what runs")
	}
	holder := fmt.Sprintf("%d %s", c.Job, key)
	bound, err := p.Store.BindIDToken(ctx, c.Issuer, c.ID, holder, c.Expires.Add(endLeeway+beginLeeway))
	if err != nil {
		return err
	}
	if bound != holder {
		return refuse(ReasonReplayed, fmt.Sprintf("the id_token of job %d was used for another request already", c.Job),
			"one id_token makes one request: name all VMs in it; for a second request declare a second id_token in the job")
	}
	return nil
}

// followLife is how long operations may be followed: longer than any that goes
// well, and than the id_token that asked for them.
const followLife = 24 * time.Hour

// followPrefix tells follow tokens from static ones.
const followPrefix = "sluicef_"

// Follow makes a token that reads these operations and nothing else. It is
// stored as a hash, so it outlives a restart and can be read nowhere.
func (p *Pipelines) Follow(ctx context.Context, operations []string) (token string, until time.Time, err error) {
	token, _, err = NewToken(p.Random)
	if err != nil {
		return "", time.Time{}, err
	}
	token = followPrefix + strings.TrimPrefix(token, tokenPrefix)
	until = p.Clock.Now().Add(followLife).Truncate(time.Second)
	return token, until, p.Store.SaveFollow(ctx, Hash(token), operations, until)
}

// Follows says whether a bearer token is a follow token.
func (p *Pipelines) Follows(token string) bool {
	return p != nil && strings.HasPrefix(token, followPrefix)
}

// Followed yields the operations that a follow token may read. Errors:
// *Refusal, or those of the store.
func (p *Pipelines) Followed(ctx context.Context, token string) ([]string, error) {
	operations, err := p.Store.Followed(ctx, Hash(token))
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return nil, refuse(ReasonUnknown, "the follow token is not known, or it is over", "ask again with an id_token: the same Idempotency-Key attaches to what runs")
	}
	return operations, err
}
