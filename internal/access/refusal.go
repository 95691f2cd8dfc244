package access

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// ErrRefused is what every refusal is (errors.Is); its text says more, but
// never which token nearly fit.
var ErrRefused = errors.New("refused")

// Reason is why a caller was refused: a small closed set, counted in
// sluice_access_refusals_total.
type Reason string

// The reasons.
const (
	ReasonMissing   Reason = "missing"   // no bearer token was sent
	ReasonUnknown   Reason = "unknown"   // a static or follow token that is not known
	ReasonExpired   Reason = "expired"   // whatever kind of token it was
	ReasonSize      Reason = "size"      // longer than any token of ours or GitLab's
	ReasonMalformed Reason = "malformed" // looks like an id_token and is none
	ReasonAlgorithm Reason = "algorithm" // none, HS256 and whatever else is not on the list
	ReasonIssuer    Reason = "issuer"    // of another GitLab
	ReasonKeys      Reason = "keys"      // the issuer's keys cannot be read: nobody's fault
	ReasonSignature Reason = "signature" // not signed with a key of the issuer
	ReasonAudience  Reason = "audience"  // made for somebody else, or for others too
	ReasonNotYet    Reason = "not_yet"   // from the future, beyond the leeway
	ReasonClaims    Reason = "claims"    // what must be in every id_token is not in it
	ReasonNoKey     Reason = "no_key"    // a change without an Idempotency-Key
	ReasonReplayed  Reason = "replayed"  // the id_token was used for another request
	ReasonPolicy    Reason = "policy"    // no rule of access allows it
	ReasonScope     Reason = "scope"     // a follow token beyond its operations, a pipeline beyond its routes
	ReasonRate      Reason = "rate"      // too many requests
)

// Reasons lists them all, so that every series begins at 0.
func Reasons() []Reason {
	return []Reason{
		ReasonMissing, ReasonUnknown, ReasonExpired, ReasonSize, ReasonMalformed, ReasonAlgorithm, ReasonIssuer, ReasonKeys,
		ReasonSignature, ReasonAudience, ReasonNotYet, ReasonClaims, ReasonNoKey, ReasonReplayed, ReasonPolicy, ReasonScope, ReasonRate,
	}
}

// Refusal is one caller refused. Text and Hint are for the caller, Detail for
// the log alone: it may say what the caller is not to learn. None of them
// holds a token.
type Refusal struct {
	Reason Reason
	Text   string
	Hint   string
	Detail string
}

// Error says that and why.
func (r *Refusal) Error() string { return "refused: " + r.Text }

// Is makes every refusal an ErrRefused.
func (*Refusal) Is(target error) bool { return target == ErrRefused } //nolint:errorlint // this is how it is asked

func refuse(reason Reason, text, hint string) *Refusal {
	return &Refusal{Reason: reason, Text: text, Hint: hint}
}

// shown makes a value from a token fit for logs and terminals: quoted, bounded,
// and nothing in it that a terminal obeys or that turns the text around.
func shown(text string) string { return strconv.QuoteToASCII(bounded(text)) }

// plain is shown without quotes, where the text is a name.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, bounded(text))
}

// longest is how much of a value is shown, in bytes.
const longest = 120

func bounded(text string) string {
	if len(text) > longest {
		return text[:longest] + "..."
	}
	return text
}
