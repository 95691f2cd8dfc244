package access

import (
	"errors"
	"strings"
	"testing"
	"time"
)

type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

// authenticate is what the door does with a header.
func authenticate(tokens *Tokens, header string) (string, error) {
	token, err := Bearer(header)
	if err != nil {
		return "", err
	}
	return tokens.Authenticate(token)
}

func TestOnlyAKnownTokenThatHasNotExpiredIsLetIn(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	earlier, later := noon.Add(-time.Second), noon.Add(time.Second)
	tokens, err := NewTokens([]Token{
		{Name: "alice", SHA256: Hash("a-token")},
		{Name: "bob", SHA256: strings.ToUpper(Hash("b-token")), Expires: &later},
		{Name: "carol", SHA256: Hash("c-token"), Expires: &earlier},
		{Name: "dave", SHA256: Hash("d-token"), Expires: &noon},
	}, still(noon))
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"Bearer a-token":  "alice",
		"bearer b-token":  "bob",
		"Bearer  a-token": "alice",
	} {
		if got, err := authenticate(tokens, header); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %s", header, got, err, want)
		}
	}
	for header, want := range map[string]string{
		"":                           "no bearer token was sent",
		"Bearer":                     "no bearer token was sent",
		"Bearer ":                    "no bearer token was sent",
		"Basic a-token":              "no bearer token was sent",
		"Bearer x":                   "not known",
		"Bearer " + Hash("a-token"):  "not known",
		"Bearer c-token":             "expired at 2030-01-01T11:59:59Z",
		"Bearer d-token":             "expired",
		"Bearer a-token and another": "not known",
	} {
		_, err := authenticate(tokens, header)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", header, err, want)
		}
	}
}

func TestNobodyIsLetInWithoutTokens(t *testing.T) {
	if _, err := authenticate(new(Tokens), "Bearer x"); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
}

func TestAHashThatIsNoneIsRefused(t *testing.T) {
	for _, hash := range []string{"", "abc", strings.Repeat("z", 64), Hash("x")[:62]} {
		if _, err := NewTokens([]Token{{Name: "a", SHA256: hash}}, still{}); err == nil {
			t.Errorf("%q was accepted", hash)
		}
	}
}

func TestAMadeTokenFitsItsHash(t *testing.T) {
	token, hash, err := NewToken(nil)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := NewTokens([]Token{{Name: "new", SHA256: hash}}, still{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := authenticate(tokens, "Bearer "+token); err != nil || got != "new" {
		t.Errorf("%q, %v", got, err)
	}
}
