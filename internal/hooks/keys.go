package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Headers of a delivery (docs.gitlab.com, "Webhooks"; standardwebhooks.com).
const (
	headerID        = "Webhook-Id" // equals Idempotency-Key
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerToken     = "X-Gitlab-Token" //nolint:gosec // a header's name
	headerKey       = "Idempotency-Key"
	headerEvent     = "X-Gitlab-Event"
)

// Bounds of credentials. A signing key has 24 to 64 bytes (Standard Webhooks
// 1.0); GitLab's have 32.
const (
	signingPrefix = "whsec_"
	leastKey      = 24
	mostKey       = 64
	leastToken    = 16 // characters of a secret token
	mostSigned    = 8  // signatures that are looked at
	mostID        = 255
	tolerance     = 5 * time.Minute // Standard Webhooks 1.0
)

// Keys are the tokens that GitLab may use: several at once, so that they can be
// changed without a gap.
type Keys struct {
	signing [][]byte
	tokens  [][sha256.Size]byte
}

// NewKeys reads signing tokens (whsec_…) and secret tokens. Errors:
// CodeInvalid, naming the first that cannot be one by its place; never the token.
func NewKeys(signing, tokens []string) (*Keys, error) {
	k := &Keys{}
	for i, text := range signing {
		key, err := signingKey(text)
		if err != nil {
			return nil, fleet.Errorf(fleet.CodeInvalid, "signing token %d %s", i+1, err.Error()).
				WithHint("copy it from the webhook's page in GitLab: whsec_ and a key of %d to %d bytes in base64", leastKey, mostKey)
		}
		k.signing = append(k.signing, key)
	}
	for i, text := range tokens {
		if len(text) < leastToken {
			return nil, fleet.Errorf(fleet.CodeInvalid, "secret token %d has %d characters: it could be guessed", i+1, len(text)).
				WithHint("use at least %d; `openssl rand -hex 32` makes one", leastToken)
		}
		k.tokens = append(k.tokens, sha256.Sum256([]byte(text)))
	}
	return k, nil
}

// Empty says whether nobody can be let in.
func (k *Keys) Empty() bool { return len(k.signing) == 0 && len(k.tokens) == 0 }

func signingKey(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, signingPrefix)
	if !ok {
		return nil, fleet.Errorf(fleet.CodeInvalid, "does not begin with %s", signingPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "is not base64 after %s", signingPrefix)
	}
	if len(key) < leastKey || len(key) > mostKey {
		return nil, fleet.Errorf(fleet.CodeInvalid, "has a key of %d bytes", len(key))
	}
	return key, nil
}

// claim is what the headers say of who sent a delivery. The body decides
// whether it is true.
type claim struct {
	keys       *Keys
	signed     bool
	id         string // signed
	timestamp  string
	signatures [][]byte
}

// claim judges the headers, before the body is read. Who signs is judged by the
// signature alone, the token beside it does not help; who does not sign needs a
// secret token that is known. Errors: *refusal.
func (k *Keys) claim(h http.Header, now time.Time) (*claim, error) {
	if h.Get(headerSignature) != "" && len(k.signing) > 0 {
		return k.signedClaim(h, now)
	}
	if len(k.tokens) == 0 {
		return nil, refuse(resultUnauthorized, "the delivery is not signed",
			"set the signing token of webhooks.gitlab.signing_tokens in GitLab (Settings > Webhooks)")
	}
	sum := sha256.Sum256([]byte(h.Get(headerToken)))
	known := 0
	for i := range k.tokens {
		known |= subtle.ConstantTimeCompare(sum[:], k.tokens[i][:])
	}
	switch {
	case h.Get(headerToken) == "":
		return nil, refuse(resultUnauthorized, "the delivery carries neither a signature nor a secret token",
			"set a signing token or a secret token on the webhook in GitLab (Settings > Webhooks)")
	case known != 1:
		return nil, refuse(resultUnauthorized, "the secret token is not known", "compare the webhook's secret token with webhooks.gitlab.secret_tokens")
	}
	return &claim{keys: k, id: h.Get(headerKey)}, nil
}

func (k *Keys) signedClaim(h http.Header, now time.Time) (*claim, error) {
	c := &claim{keys: k, signed: true, id: h.Get(headerID), timestamp: h.Get(headerTimestamp)}
	seconds, err := strconv.ParseInt(c.timestamp, 10, 64)
	if err != nil || c.id == "" || len(c.id) > mostID {
		return nil, refuse(resultUnauthorized, "the delivery is signed, but lacks its id or its time", "")
	}
	for _, one := range strings.Fields(h.Get(headerSignature)) {
		version, encoded, _ := strings.Cut(one, ",")
		mac, err := base64.StdEncoding.DecodeString(encoded)
		if version == "v1" && err == nil && len(mac) == sha256.Size && len(c.signatures) < mostSigned {
			c.signatures = append(c.signatures, mac)
		}
	}
	if len(c.signatures) == 0 {
		return nil, refuse(resultUnauthorized, "the signature has no known form", "")
	}
	// Seconds far outside of any age must not overflow.
	if off := now.Unix() - seconds; off > int64(tolerance/time.Second) || off < -int64(tolerance/time.Second) {
		return nil, refuse(resultStale, "the delivery was signed at another time: "+strconv.FormatInt(off, 10)+" seconds before ours",
			"check the clocks of both machines; GitLab signs anew when a person sends it again")
	}
	return c, nil
}

// verify compares every signature under every key, in constant time. Errors:
// *refusal.
func (c *claim) verify(body []byte) error {
	if !c.signed {
		return nil
	}
	good := 0
	for _, key := range c.keys.signing {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(c.id + "." + c.timestamp + ".")) //nolint:errcheck // a hash takes everything (hash.Hash)
		mac.Write(body)                                   //nolint:errcheck // see above
		sum := mac.Sum(nil)
		for _, given := range c.signatures {
			good |= subtle.ConstantTimeCompare(sum, given)
		}
	}
	if good != 1 {
		return refuse(resultUnauthorized, "the signature does not fit", "compare the webhook's signing token with webhooks.gitlab.signing_tokens")
	}
	return nil
}
