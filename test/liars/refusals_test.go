package liars

import (
	"net/http"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// noAnswers are what GitLab, or something in front of it, may give instead of
// an answer.
var noAnswers = map[string]simgitlab.Fault{
	"401":                        {Code: http.StatusUnauthorized},
	"403":                        {Code: http.StatusForbidden},
	"404":                        {Code: http.StatusNotFound},
	"429":                        {Code: http.StatusTooManyRequests},
	"429 with Retry-After":       {Code: http.StatusTooManyRequests, RetryAfter: 40},
	"429 with an absurd one":     {Code: http.StatusTooManyRequests, RetryAfter: 1 << 40},
	"500":                        {Code: http.StatusInternalServerError},
	"502":                        {Code: http.StatusBadGateway},
	"503 with Retry-After":       {Code: http.StatusServiceUnavailable, RetryAfter: 40},
	"HTML with 200":              {Kind: simgitlab.FaultHTML},
	"a redirect":                 {Kind: simgitlab.FaultRedirect, Location: "http://elsewhere.example/api/v4/runners/4711"},
	"a redirect to a login page": {Kind: simgitlab.FaultRedirect, Location: "/users/sign_in"},
	"half an answer":             {Kind: simgitlab.FaultTruncated},
	"a closed connection":        {Kind: simgitlab.FaultDrop},
	"silence":                    {Kind: simgitlab.FaultHang},
}

// cases.md T17, T21: not found, refused, limited, down, cut off, a page: all of
// them are unknown, and unknown deletes nothing inside the cap. The runner has
// no job and its process is gone: only GitLab's word is missing.
func TestWhateverGitLabGivesInsteadOfAnAnswerDeletesNothingInsideTheCap(t *testing.T) {
	for name, fault := range noAnswers {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a", "b"}, nil)
				old := s.VM("a").ID
				s.faultAtStop(fault)
				id := s.Ask(fleet.KindRecreate, "a")
				s.Run(9 * time.Minute)
				if s.Calls["delete"] > 0 || s.Op(id).Phase != fleet.PhaseDraining || s.VM("a").Unit.MainPID != 0 {
					t.Fatalf("%d deletes, %s\n%s", s.Calls["delete"], s.Op(id).Phase, s.Story())
				}
				s.Run(time.Hour)
				s.mustStay(id, "a", old, "GitLab's answer is unknown")
			})
		})
	}
}

// The same, where it passes: the drain goes on by itself.
func TestADrainOutlastsWhateverGitLabGivesInsteadOfAnAnswer(t *testing.T) {
	for name, fault := range noAnswers {
		if fault.RetryAfter > 3600 {
			continue // TestAnAbsurdRetryAfterIsNotObeyedForEver
		}
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a", "b"}, nil)
				old := s.VM("a").ID
				s.run("a", 2*time.Minute)
				fault.For = 5 * time.Minute
				s.faultAtStop(fault)
				id := s.Ask(fleet.KindRecreate, "a")
				s.Run(4 * time.Minute)
				if s.Calls["delete"] > 0 || s.VM("a").Unit.MainPID != 0 {
					t.Fatalf("%d deletes before GitLab could be asked\n%s", s.Calls["delete"], s.Story())
				}
				s.Run(2 * time.Hour)
				s.mustReplace(id, "a", old)
			})
		})
	}
}

// Before anything is touched a refusal is told at once, and what may pass is
// waited for.
func TestWhateverGitLabGivesInPreflightStopsNothing(t *testing.T) {
	for name, fault := range noAnswers {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a"}, nil)
				fault.Routes = readings
				s.lab.Inject(fault)
				id := s.Ask(fleet.KindRecreate, "a")
				s.Run(20 * time.Minute)
				op := s.Op(id)
				if s.Calls["stop"]+s.Calls["delete"] > 0 || !s.VM("a").Serving() {
					t.Fatalf("touched without GitLab's word\n%s", s.Story())
				}
				if op.Phase != fleet.PhaseFailed && op.Phase != fleet.PhasePreflight || op.ErrMessage+op.Waiting == "" {
					t.Errorf("%s: %q %q", op.Phase, op.ErrMessage, op.Waiting)
				}
			})
		})
	}
}

// 20 minutes are longer than the cap. A job that ends meanwhile is not cut
// whatever the policy makes of the silence.
func TestTwentyMinutesOf500EndADrainByItsPolicyAndCutNothing(t *testing.T) {
	for name, c := range map[string]struct {
		policy  func(*fleet.DrainPolicy)
		replace bool
	}{
		"abort":                  {func(*fleet.DrainPolicy) {}, false},
		"proceed":                {func(p *fleet.DrainPolicy) { p.OnUnproven = fleet.UnprovenProceed }, true},
		"wait till the hard cap": {func(p *fleet.DrainPolicy) { p.OnOverrun = fleet.OverrunWait }, true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a"}, nil)
				old := s.VM("a").ID
				s.run("a", 3*time.Minute)
				s.faultAtStop(simgitlab.Fault{Code: 500, For: 20 * time.Minute})
				id := s.Ask(fleet.KindRecreate, "a", func(r *fleet.Request) { c.policy(&r.Policy) })
				s.Run(4 * time.Hour)
				if !c.replace {
					s.mustStay(id, "a", old, "500")
					return
				}
				s.mustReplace(id, "a", old)
			})
		})
	}
}

// After the delete there is no way back: the new VM is waited for, and made
// once.
func TestTwentyMinutesOf500AfterTheDeleteLeaveOneVM(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		s.Spec.GateOnline = 30 * time.Minute
		old := s.VM("a").ID
		s.Fences["delete"] = func() { s.lab.Inject(simgitlab.Fault{Code: 500, For: 20 * time.Minute}) }
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Hour)
		s.mustReplace(id, "a", old)
		if s.Calls["create"] > 1 {
			t.Errorf("%d creates", s.Calls["create"])
		}
	})
}
