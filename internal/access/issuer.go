package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// How long what an issuer said is good for: its discovery document and its keys
// are read anew every hour. If it cannot be asked then, GitLab may be down for a
// while, or somebody keeps us from hearing that a key was taken back: the old
// ones serve for one more hour, and no longer.
const (
	rediscover = time.Hour
	trusted    = 2 * time.Hour
)

// Issuer is one GitLab that signs id_tokens, and whom they must be made for.
type Issuer struct {
	URL      string // exactly as in the claim iss
	Audience string
}

// CheckIssuerURL says what is wrong with an issuer's address; nil = nothing.
// Keys that come over plain HTTP can be anybody's: only loopback may do so.
func CheckIssuerURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("not the address of an issuer")
	}
	if u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()) {
		return nil
	}
	return errors.New("not https: whoever is in between could sign anything")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// issuer verifies the id_tokens of one GitLab. It asks for the keys when the
// first token comes: a GitLab that is down keeps nobody else out.
type issuer struct {
	Issuer
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier
	since    time.Time
}

func newIssuer(i Issuer, transport http.RoundTripper, now func() time.Time) *issuer {
	return &issuer{Issuer: i, client: newSparing(transport, now), now: now}
}

// verify yields the claims of a token whose signature, issuer, audience and
// times are right. Errors: *Refusal.
func (i *issuer) verify(ctx context.Context, token string) (*Claims, error) {
	verifier, err := i.ready(ctx)
	if err != nil {
		return nil, i.noKeys(err)
	}
	var outcome signature
	verified, err := verifier.Verify(context.WithValue(ctx, signatureKey{}, &outcome), token)
	switch {
	case outcome.unread != nil:
		return nil, i.noKeys(outcome.unread)
	case err != nil && outcome.good:
		return nil, refuse(ReasonClaims, "the id_token's claims cannot be read", claimsHint)
	case err != nil:
		refusal := refuse(ReasonSignature, "the id_token is not signed by a key of "+i.URL, "send the id_token as GitLab made it; after a change of GitLab's keys try again in 10s")
		refusal.Detail = bounded(err.Error())
		return nil, refusal
	case len(verified.Audience) != 1 || verified.Audience[0] != i.Audience:
		return nil, refuse(ReasonAudience, "the id_token was not made for this server alone",
			fmt.Sprintf("write aud: %s, and nothing else, in the job's id_tokens section", i.Audience))
	}
	var payload rawClaims
	if err := verified.Claims(&payload); err != nil {
		return nil, refuse(ReasonClaims, "the id_token's claims cannot be read", claimsHint)
	}
	claims, err := readClaims(payload)
	if err != nil {
		return nil, refuse(ReasonClaims, "the id_token's "+err.Error(), claimsHint)
	}
	if claims.Issuer != i.URL {
		return nil, refuse(ReasonIssuer, "the id_token is of another issuer", claimsHint)
	}
	return claims, checkTimes(claims, i.now())
}

// rawClaims takes the verified payload as it is.
type rawClaims []byte

// UnmarshalJSON implements json.Unmarshaler.
func (r *rawClaims) UnmarshalJSON(text []byte) error {
	*r = append((*r)[:0], text...)
	return nil
}

func (i *issuer) noKeys(err error) *Refusal {
	refusal := refuse(ReasonKeys, "the keys of "+i.URL+" cannot be read now, so no id_token can be checked",
		"try again; if it lasts, see that Sluice's server reaches "+i.URL+"/.well-known/openid-configuration")
	refusal.Detail = bounded(err.Error())
	return refusal
}

// ready yields the verifier, after discovery (OpenID Connect Discovery 1.0
// section 4) if that is due. While a failed one leaves no doubt, the verifier
// there is goes on.
func (i *issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.younger(rediscover) {
		return i.verifier, nil
	}
	verifier, err := i.discover(oidc.ClientContext(ctx, i.client))
	switch {
	case err == nil:
		i.verifier, i.since = verifier, i.now()
	case !i.younger(trusted) || !errors.Is(err, errKeys):
		return nil, err
	}
	return i.verifier, nil
}

// younger says whether there is a verifier whose keys were read less than age
// ago. A clock that was set back says nothing.
func (i *issuer) younger(age time.Duration) bool {
	since := i.now().Sub(i.since)
	return i.verifier != nil && since >= 0 && since < age
}

// discover reads the discovery document and the keys. Errors: errKeys if the
// issuer could not be asked.
func (i *issuer) discover(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	provider, err := oidc.NewProvider(ctx, i.URL)
	if err != nil {
		return nil, err
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return nil, err
	}
	if err := CheckIssuerURL(found.Keys); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	if err := i.reach(ctx, found.Keys); err != nil {
		return nil, err
	}
	keys := keySet{oidc.NewRemoteKeySet(ctx, found.Keys)}
	return oidc.NewVerifier(i.URL, keys, &oidc.Config{
		SupportedSigningAlgs: algorithms,
		SkipClientIDCheck:    true, // verify asks for more: this audience alone
		SkipExpiryCheck:      true, // checkTimes has leeways and our clock
	}), nil
}

// reach sees that the keys can be read, before the old ones are given up. The
// answer is kept: the verifier's own look, which follows, costs no request.
func (i *issuer) reach(ctx context.Context, keys string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, keys, http.NoBody)
	if err != nil {
		return err
	}
	response, err := i.client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// keySet notes what became of the signature: the verifier's own error does not
// tell keys that could not be fetched from a bad signature or bad claims.
type keySet struct{ *oidc.RemoteKeySet }

type signatureKey struct{}

type signature struct {
	good   bool
	unread error // why the keys could not be read
}

// VerifySignature implements oidc.KeySet.
func (k keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.RemoteKeySet.VerifySignature(ctx, token)
	if outcome, ok := ctx.Value(signatureKey{}).(*signature); ok {
		outcome.good = err == nil
		if errors.Is(err, errKeys) || ctx.Err() != nil {
			outcome.unread = err
		}
	}
	return payload, err
}
