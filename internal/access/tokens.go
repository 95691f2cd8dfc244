package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// ErrRefused is the reason behind every refusal; the text says more, but never
// which token nearly fit.
var ErrRefused = errors.New("refused")

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

// Authenticate yields the name behind an Authorization header (RFC 6750
// section 2.1). Every known hash is compared, in constant time, whatever fits.
// Errors: ErrRefused, with what is wrong.
func (t *Tokens) Authenticate(header string) (string, error) {
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || strings.TrimSpace(token) == "" {
		return "", fmt.Errorf("%w: no bearer token was sent", ErrRefused)
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	var found *entry
	for i := range t.list {
		if subtle.ConstantTimeCompare(sum[:], t.list[i].hash[:]) == 1 {
			found = &t.list[i]
		}
	}
	switch {
	case found == nil:
		return "", fmt.Errorf("%w: the bearer token is not known", ErrRefused)
	case found.expires != nil && !t.clock.Now().Before(*found.expires):
		return "", fmt.Errorf("%w: the bearer token of %s expired at %s", ErrRefused, found.name, found.expires.UTC().Format(time.RFC3339))
	}
	return found.name, nil
}

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
	token = "sluice_" + base64.RawURLEncoding.EncodeToString(raw)
	return token, Hash(token), nil
}

// Hash is what the configuration holds of a token.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
