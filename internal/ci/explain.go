package ci

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/client"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// reason is an error in one line, without its hint.
func reason(err error) string {
	text := err.Error()
	if hint := fleet.HintOf(err); hint != "" {
		text = strings.TrimSuffix(text, " ("+hint+")")
	}
	return clean(text)
}

// forGood says whether a connection fails for a reason that no patience mends.
func forGood(err error) bool {
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return authority || host || invalid || verify || record || errors.Is(err, http.ErrSchemeMismatch)
}

// hints say what to do about an error, one line each; the error's own hint is
// for people at a terminal where the connection itself fails.
// date is the Date of the controller's last answer.
func hints(err error, server, token, date string, now time.Time) []string {
	if lines := tlsHints(err, now); lines != nil {
		return lines
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeUnavailable:
		if client.Answered(err) {
			break
		}
		return []string{
			"next: does " + clean(server) + " run, and can this job's network reach it? On the controller's machine: systemctl status sluice; from here: its /livez",
		}
	case client.CodeUnauthorized:
		lines := tokenLines(token, now)
		if hint := clean(fleet.HintOf(err)); hint != "" {
			lines = append([]string{"next: " + hint}, lines...)
		}
		if skew := skewLine(date, now); skew != "" {
			lines = append(lines, skew)
		}
		return lines
	}
	if hint := clean(fleet.HintOf(err)); hint != "" {
		return []string{"next: " + hint}
	}
	return nil
}

// tlsHints explain why a certificate was not accepted; nil if it is not that.
func tlsHints(err error, now time.Time) []string {
	const ca = "next: give the job your authority's certificate: a CI/CD variable of type File, named SSL_CERT_FILE, with its PEM text"
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired && e.Cert != nil {
		return []string{
			fmt.Sprintf("the certificate is valid from %s to %s; this job's clock says %s", stamp(e.Cert.NotBefore), stamp(e.Cert.NotAfter), stamp(now)),
			"next: renew the certificate, or set the clock of the machine that runs this job",
		}
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok && e.Certificate != nil {
		return []string{
			"the certificate is for " + clean(strings.Join(e.Certificate.DNSNames, ", ")),
			"next: name the controller as its certificate does, or give it a certificate for this name",
		}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return []string{"next: there is no TLS at that port; is the URL's scheme http, or the port another one?"}
	}
	if forGood(err) {
		return []string{"the certificate is signed by nobody whom this job's image trusts", ca}
	}
	return nil
}

// claims are what an id_token says of itself; nothing is verified here.
type claims struct {
	Issuer    string          `json:"iss"`
	Audience  json.RawMessage `json:"aud"`
	IssuedAt  int64           `json:"iat"`
	ExpiresAt int64           `json:"exp"`
}

// tokenLines show what of the token a person may compare with the
// controller's configuration and with the clocks; never the token.
func tokenLines(token string, now time.Time) []string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return []string{"the token of this job is no id_token: it has not three parts"}
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c claims
	if err != nil || json.Unmarshal(body, &c) != nil {
		return []string{"the token of this job is no id_token: it cannot be read"}
	}
	issued, expires := time.Unix(c.IssuedAt, 0), time.Unix(c.ExpiresAt, 0)
	lines := []string{
		fmt.Sprintf("the token: issuer %s, audience %s, issued %s, expires %s; this job's clock: %s",
			clean(c.Issuer), clean(string(c.Audience)), stamp(issued), stamp(expires), stamp(now)),
	}
	switch {
	case issued.Sub(now) > 30*time.Second:
		lines = append(lines, "this job's clock is behind GitLab's by "+issued.Sub(now).Round(time.Second).String()+": set the clocks by NTP")
	case !now.Before(expires):
		lines = append(lines, "the token has expired by this job's clock: a job without a timeout of its own has one of 5 minutes")
	}
	return lines
}

// skewLine compares clocks by the Date of an answer (RFC 9110 section 6.6.1);
// "" if they agree within half a minute or there is none.
func skewLine(date string, now time.Time) string {
	theirs, err := time.Parse(time.RFC1123, date)
	if err != nil {
		return ""
	}
	apart := theirs.Sub(now).Round(time.Second)
	if apart.Abs() < 30*time.Second {
		return ""
	}
	word := "ahead of"
	if apart < 0 {
		word = "behind"
	}
	return fmt.Sprintf("the controller's clock (%s) is %s %s this job's: set the clocks by NTP", stamp(theirs), apart.Abs(), word)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// plaintext says whether a token would go over a network unencrypted.
func plaintext(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
