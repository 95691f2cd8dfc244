package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
)

// Token is one bearer token: its owner's name and its SHA-256.
type Token struct {
	Name    string
	SHA256  string     // hex
	Expires *time.Time // nil = never
}

// Tokens knows callers by their tokens. The zero value refuses everybody.
type Tokens struct {
	list  []entry
	clock interface{ Now() time.Time }
}

type entry struct {
	name    string
	hash    [sha256.Size]byte
	expires *time.Time
}

// NewTokens reads the list. Errors: a hash that is none.
func NewTokens(list []Token, clock interface{ Now() time.Time }) (*Tokens, error) {
	t := &Tokens{clock: clock}
	for _, token := range list {
		raw, err := hex.DecodeString(token.SHA256)
		if err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("token %q: sha256 is not 64 hex digits", token.Name)
		}
		t.list = append(t.list, entry{name: token.Name, hash: [sha256.Size]byte(raw), expires: token.Expires})
	}
	return t, nil
}

// Bearer takes the token from an Authorization header (RFC 6750 section 2.1).
// Errors: *Refusal.
func Bearer(header string) (string, error) {
	scheme, token, ok := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	switch {
	case !ok || !strings.EqualFold(scheme, "bearer") || token == "":
		return "", refuse(ReasonMissing, "no bearer token was sent", tokenHint)
	case len(token) > maxToken:
		return "", refuse(ReasonSize, fmt.Sprintf("the bearer token is longer than %d bytes", maxToken), "no token of Sluice or GitLab is that long")
	}
	return token, nil
}

// maxToken bounds a bearer token, in bytes. GitLab's id_tokens have some 1,500;
// groups_direct may add 200 paths.
const maxToken = 16 << 10

const tokenHint = "send a token of server.tokens: with the CLI set SLUICE_TOKEN; a pipeline sends an id_token"

// Authenticate yields the name behind a bearer token. Every known hash is
// compared, in constant time, whatever fits. Errors: *Refusal.
func (t *Tokens) Authenticate(token string) (string, error) {
	sum := sha256.Sum256([]byte(token))
	var found *entry
	for i := range t.list {
		if subtle.ConstantTimeCompare(sum[:], t.list[i].hash[:]) == 1 {
			found = &t.list[i]
		}
	}
	switch {
	case found == nil:
		return "", refuse(ReasonUnknown, "the bearer token is not known", tokenHint)
	case found.expires != nil && !t.clock.Now().Before(*found.expires):
		return "", refuse(ReasonExpired, fmt.Sprintf("the bearer token of %s expired at %s", found.name, found.expires.UTC().Format(time.RFC3339)),
			"make a new one with `sluice token create "+found.name+"`")
	}
	return found.name, nil
}

// tokenPrefix lets people and secret scanners recognise a token of ours.
const tokenPrefix = "sluice_"

// NewToken makes a token of 256 random bits and its hash, both as text. The
// token is shown once and stored nowhere.
func NewToken(random io.Reader) (token, hash string, err error) {
	if random == nil {
		random = rand.Reader
	}
	raw := make([]byte, 32)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", "", fmt.Errorf("no randomness for a token: %w", err)
	}
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	return token, Hash(token), nil
}

// Hash is what the configuration holds of a token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
