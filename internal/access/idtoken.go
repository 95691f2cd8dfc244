package access

import (
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// Leeways for clocks that differ (case T79: iat and nbf lie seconds in the
// future when GitLab's clock is ahead).
const (
	beginLeeway = 60 * time.Second // for iat and nbf
	endLeeway   = 60 * time.Second // for exp
)

// algorithms are all that an id_token may be signed with: asymmetric ones
// (RFC 7518, RFC 8037). GitLab signs with RS256. Never none, and never HS256,
// for which a public key would be a password.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// looksSigned says whether a bearer token is meant to be an id_token: three
// parts with dots (RFC 7515 section 3.1). Tokens of ours have no dot.
func looksSigned(token string) bool { return strings.Count(token, ".") == 2 }

// unverified is what can be read of an id_token before its signature is
// checked: enough to choose the issuer and to say what is wrong. Nothing else
// may be believed.
type unverified struct {
	algorithm string
	issuer    string
}

// peek reads the head and the issuer. Errors: *Refusal.
func peek(token string) (unverified, error) {
	var u unverified
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return u, malformed("it does not have three parts")
	}
	var decoded [2]map[string]any
	for i := range decoded {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(parts[i])
		if err != nil {
			return u, malformed("a part is no base64url")
		}
		if decoded[i], err = object(raw); err != nil {
			return u, malformed("a part is no JSON object")
		}
	}
	u.algorithm, u.issuer = text(decoded[0]["alg"]), text(decoded[1]["iss"])
	if !slices.Contains(algorithms, u.algorithm) {
		return u, refuse(ReasonAlgorithm, "the id_token is signed with "+shown(u.algorithm)+", which is not accepted",
			"send the id_token as GitLab made it; accepted are "+strings.Join(algorithms, ", "))
	}
	return u, nil
}

func malformed(why string) *Refusal {
	return refuse(ReasonMalformed, "the bearer token looks like an id_token, but "+why,
		"send the variable of the job's id_tokens section as it is")
}

// checkTimes compares iat, nbf and exp with our clock. Errors: *Refusal.
func checkTimes(c *Claims, now time.Time) error {
	issued, ok := c.moment("iat")
	if !ok {
		return refuse(ReasonClaims, "the id_token's iat is missing or no time", claimsHint)
	}
	if !c.Expires.After(issued) {
		return refuse(ReasonClaims, "the id_token ends before it begins", claimsHint)
	}
	begins := issued
	if _, there := c.values["nbf"]; there {
		nbf, ok := c.moment("nbf")
		if !ok {
			return refuse(ReasonClaims, "the id_token's nbf is no time", claimsHint)
		}
		if nbf.After(begins) {
			begins = nbf
		}
	}
	switch {
	case begins.Sub(now) > beginLeeway:
		return refuse(ReasonNotYet, "the id_token is valid from "+stamp(begins)+" on; here it is "+stamp(now),
			"set the clocks of GitLab and of this server; 60s are allowed for")
	case now.Sub(c.Expires) > endLeeway:
		return refuse(ReasonExpired, "the id_token expired at "+stamp(c.Expires)+"; here it is "+stamp(now),
			"an id_token lives as long as the job's timeout: set timeout: in the job, or retry it")
	}
	return nil
}

const claimsHint = "send the id_token that GitLab made for this job"

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
