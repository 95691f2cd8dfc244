package ci

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
)

// GitLab keeps colours (SGR) and section markers; every other movement of the
// cursor would be dropped, or would make the log unreadable in a terminal.
func TestTheJobLogHasColoursAndSectionsAndNoOtherEscapes(t *testing.T) {
	log, out := testLog()
	log.colour = true
	log.section("shared/runner-01", "shared/runner-01  op-1")
	for _, paint := range []func(string) string{log.good, log.bad, log.alert, log.strong} {
		if text := paint("x"); !strings.HasPrefix(text, "\x1b[") || !strings.HasSuffix(text, "mx\x1b[0m") {
			t.Errorf("%q", text)
		}
		log.line(paint("x"))
	}
	log.end()
	text := out.String()
	if strings.Count(text, "\x1b[32mx\x1b[0m") != 1 || strings.Count(text, "section_start:") != 1 || strings.Count(text, "section_end:") != 1 {
		t.Errorf("%q", text)
	}
	rest := regexp.MustCompile(`\x1b\[0Ksection_(start|end):\d+:[a-z0-9_.-]+\r\x1b\[0K`).ReplaceAllString(text, "")
	rest = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(rest, "")
	if strings.ContainsAny(rest, "\x1b\r") {
		t.Errorf("other escapes: %q", rest)
	}
	log.colour = false
	if text := log.bad("x"); text != "x" {
		t.Errorf("%q", text)
	}
}

// The errors are the standard library's own.
func TestCertificatesThatAreOldOrAnothersAreExplained(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	plan := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sluice"}, DNSNames: []string{"sluice.example.com"},
		NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, plan, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	for name, c := range map[string]struct {
		options x509.VerifyOptions
		says    string
	}{
		"expired":      {x509.VerifyOptions{Roots: roots, CurrentTime: noon.Add(2 * time.Hour)}, "valid from 2030-01-01T11:00:00Z to 2030-01-01T13:00:00Z; this job's clock says 2030-01-01T14:00:00Z"},
		"another name": {x509.VerifyOptions{Roots: roots, CurrentTime: noon, DNSName: "other.example.com"}, "the certificate is for sluice.example.com"},
		"of nobody":    {x509.VerifyOptions{Roots: x509.NewCertPool(), CurrentTime: noon}, "SSL_CERT_FILE"},
	} {
		_, err := certificate.Verify(c.options)
		if err == nil || !forGood(err) {
			t.Fatalf("%s: %v", name, err)
		}
		lines := strings.Join(hints(err, "https://sluice.example.com", "", "", noon.Add(2*time.Hour)), "\n")
		if !strings.Contains(lines, c.says) || !strings.Contains(lines, "next: ") {
			t.Errorf("%s: %s", name, lines)
		}
	}
}
