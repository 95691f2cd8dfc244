package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
)

// withIssuer opens a door whose first GitLab refuses to answer some paths.
func withIssuer(t *testing.T, silent func(path string) bool) *door {
	t.Helper()
	m := issuer(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if silent(r.URL.Path) {
				http.Error(w, "down", http.StatusBadGateway)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	d := openDoor(t, func(a *access.Options, _ *api.Options) {
		a.Issuers[0].URL, a.Rules[1].Issuer = m.Issuer(), m.Issuer()
	})
	d.oidc = m
	return d
}

// comes asks under a job and a key of its own, a while after the last time.
func (d *door) comes(after time.Duration) (int, string) {
	d.t.Helper()
	d.clock.advance(after)
	id := fmt.Sprint(2000 + d.sent)
	code, _, body := d.asked(d.token(map[string]any{"job_id": id, "jti": id}), id)
	return code, body
}

// Who keeps us from hearing of a key that was taken back must not keep it alive.
func TestKeysThatNobodyConfirmsAreTrustedForTwoHoursAndNoLonger(t *testing.T) {
	for name, down := range map[string]func(path string) bool{
		"nothing answers":      func(string) bool { return true },
		"discovery is missing": func(path string) bool { return path == mockoidc.DiscoveryEndpoint },
		"the keys are missing": func(path string) bool { return path == mockoidc.JWKSEndpoint },
	} {
		t.Run(name, func(t *testing.T) {
			var off atomic.Bool
			d := withIssuer(t, func(path string) bool { return off.Load() && down(path) })
			if code, body := d.comes(0); code != http.StatusAccepted {
				t.Fatalf("%d %s", code, body)
			}
			off.Store(true)
			for range 2 { // after 1 h and after 1 h 59
				if code, body := d.comes(59*time.Minute + 30*time.Second); code != http.StatusAccepted {
					t.Errorf("GitLab is down for a while: %d %s", code, body)
				}
			}
			for _, later := range []time.Duration{2 * time.Minute, 30 * 24 * time.Hour} {
				code, body := d.comes(later)
				if code != http.StatusServiceUnavailable || !strings.Contains(body, "the keys of "+d.oidc.Issuer()) {
					t.Errorf("%s later: %d %s", later, code, body)
				}
			}
			if d.counts()[access.ReasonKeys] != 2 {
				t.Errorf("counted %v", d.counts())
			}
			off.Store(false)
			if code, body := d.comes(3 * time.Second); code != http.StatusAccepted {
				t.Errorf("it answers again: %d %s", code, body)
			}
		})
	}
}

func TestAKeyThatGitLabTookBackIsForgottenWithinTheHour(t *testing.T) {
	d := openDoor(t)
	if code, body := d.comes(0); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, body)
	}
	old := d.oidc.Keypair
	d.oidc.Keypair = issuer(t, nil).Keypair
	d.clock.advance(time.Hour + time.Second)
	signed, err := old.SignJWT(d.claims(map[string]any{"job_id": "1001"}))
	if err != nil {
		t.Fatal(err)
	}
	if code, _, body := d.asked(signed, "k2"); code != http.StatusUnauthorized {
		t.Errorf("%d %s", code, body)
	}
}

// The clock is set back, or was wrong: how old the keys are is not known.
func TestKeysFromTheFutureAreReadAnew(t *testing.T) {
	var off atomic.Bool
	d := withIssuer(t, func(string) bool { return off.Load() })
	d.clock.advance(24 * time.Hour)
	if code, body := d.comes(0); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, body)
	}
	off.Store(true)
	if code, body := d.comes(-24 * time.Hour); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, body)
	}
}
