package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
)

// page is one answer of an issuer: a redirect, if it has a location, with a
// body all the same.
type page struct {
	body     any
	location string
}

// site is an issuer's pages, by whole URL.
type site map[string]page

// RoundTrip implements http.RoundTripper.
func (s site) RoundTrip(r *http.Request) (*http.Response, error) {
	p, ok := s[r.URL.String()]
	status, header := http.StatusOK, http.Header{}
	switch {
	case !ok:
		status = http.StatusNotFound
	case p.location != "":
		status = http.StatusFound
		header.Set("Location", p.location)
	}
	body, err := json.Marshal(p.body)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Request: r, Header: header, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// An issuer's keys are where its own discovery document says, behind https, and
// nowhere that an answer sends us on to: else whoever stands in between, or may
// plant a redirect there, signs what they like.
func TestKeysComeFromWhereTheIssuerItselfSaysAndByHTTPSAlone(t *testing.T) {
	good, token := gitlab(t)
	pages, ok := good.Transport.(canned)
	if !ok {
		t.Fatalf("the issuer is a %T", good.Transport)
	}
	const (
		issuer    = "https://gitlab.example.com"
		discovery = issuer + "/.well-known/openid-configuration"
		secure    = issuer + "/keys"
		plain     = "http://gitlab.example.com/keys"
		away      = "https://elsewhere.example.com/page"
	)
	says := func(keys string) any { return map[string]any{"issuer": issuer, "jwks_uri": keys} }
	keys := pages["/keys"]
	for name, c := range map[string]struct {
		site site
		want Reason // "" = the token is believed
	}{
		"as it must be":             {site{discovery: {body: says(secure)}, secure: {body: keys}}, ""},
		"keys by plain http":        {site{discovery: {body: says(plain)}, plain: {body: keys}}, ReasonKeys},
		"keys at no address":        {site{discovery: {body: says("/keys")}, secure: {body: keys}}, ReasonKeys},
		"discovery is sent on":      {site{discovery: {says(secure), away}, away: {body: says(secure)}, secure: {body: keys}}, ReasonKeys},
		"the keys are sent on":      {site{discovery: {body: says(secure)}, secure: {keys, away}, away: {body: keys}}, ReasonKeys},
		"discovery is of another":   {site{discovery: {body: map[string]any{"issuer": "https://elsewhere.example.com", "jwks_uri": secure}}, secure: {body: keys}}, ReasonKeys},
		"there are no keys at all":  {site{discovery: {body: says(secure)}}, ReasonKeys},
		"there is no issuer at all": {site{secure: {body: keys}}, ReasonKeys},
	} {
		o := good.Options
		o.Transport = c.site
		claims, err := NewPipelines(o).Authenticate(t.Context(), token)
		var got Reason
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			got = refusal.Reason
		} else if err != nil || claims.Project != 42 {
			t.Errorf("%s: %+v, %v", name, claims, err)
		}
		if got != c.want {
			t.Errorf("%s: refused for %q, want %q", name, got, c.want)
		}
	}
}
