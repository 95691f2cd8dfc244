package liars

import (
	"net/http"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// cases.md T71: one 429 keeps the whole fleet away until GitLab wants to be
// asked again.
func TestAfterA429TheWholeFleetLeavesGitLabAlone(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a", "b", "c"}, nil)
		s.Spec.MaxUnavailable = 3
		var old [3]string
		var ids [3]string
		for i, vm := range s.Spec.VMs {
			old[i] = s.VM(vm).ID
			ids[i] = s.Ask(fleet.KindRecreate, vm)
		}
		began := 0
		s.atStop(func() {
			s.lab.Inject(simgitlab.Fault{Code: http.StatusTooManyRequests, RetryAfter: 120, Count: 1})
			began = s.wire.reached()
		})
		s.Run(110 * time.Second)
		if n := s.wire.reached() - began; n > 3 { // one reading's three were under way together
			t.Errorf("GitLab was asked %d times within its two minutes\n%s", n, s.Story())
		}
		s.Run(time.Hour)
		for i, vm := range s.Spec.VMs {
			s.mustReplace(ids[i], vm, old[i])
		}
	})
}

// A 429 without a wish is left alone for a moment: not for ever, and not asked
// in a loop.
func TestA429WithoutRetryAfterIsAskedAgainSoonAndNotInALoop(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.faultAtStop(simgitlab.Fault{Code: http.StatusTooManyRequests, For: 2 * time.Minute})
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(time.Minute)
		before := s.wire.reached()
		s.Run(time.Minute)
		if n := s.wire.reached() - before; n > 12*3 { // one reading each 5 s
			t.Errorf("%d requests in a minute", n)
		}
		s.Run(time.Hour)
		s.mustReplace(id, "a", old)
	})
}

// What a Retry-After says is bounded on both sides: nobody is kept away for a
// day by one header, and none makes a loop of it.
func TestAnAbsurdRetryAfterIsNotObeyedForEver(t *testing.T) {
	for _, header := range []string{"86400", "9999999999", "99999999999999999999999", "Tue, 01 Jan 2080 00:00:00 GMT", "-1", "0", "soon", "Thu, 01 Jan 1970 00:00:00 GMT"} {
		t.Run(header, func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a"}, nil)
				old := s.VM("a").ID
				limited, asked := 0, 0
				s.atStop(func() {
					until := s.Now().Add(time.Minute)
					s.wire.meddle = func(_ *http.Request, resp *http.Response) *http.Response {
						asked++
						if s.Now().Before(until) {
							limited++
							resp.StatusCode = http.StatusTooManyRequests
							resp.Header.Set("Retry-After", header)
						}
						return resp
					}
				})
				id := s.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { r.Policy.Cap = 30 * time.Minute })
				s.Run(2 * time.Hour)
				s.mustReplace(id, "a", old)
				if limited == 0 || limited > 12*3 {
					t.Errorf("%d of %d requests were limited within a minute", limited, asked)
				}
			})
		})
	}
}
