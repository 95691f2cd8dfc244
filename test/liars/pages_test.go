package liars

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim/simgitlab"
)

// cases.md T18: whatever a list of pages lacks, no job of it is overlooked. The
// three jobs were assigned in the instant of the stop; each must be found.
func TestNoOrphanIsOverlookedHoweverThePagesAreCut(t *testing.T) {
	for name, lie := range map[string]struct {
		switches func(*simgitlab.Switches)
		meddle   func(*http.Request, *http.Response) *http.Response
	}{
		"short pages":               {switches: func(sw *simgitlab.Switches) { sw.MaxPerPage = 2 }},
		"one job a page":            {switches: func(sw *simgitlab.Switches) { sw.MaxPerPage = 1 }},
		"the next page is not told": {switches: func(sw *simgitlab.Switches) { sw.MaxPerPage, sw.CutPages = 1, true }},
		"only X-Next-Page is left":  {switches: func(sw *simgitlab.Switches) { sw.MaxPerPage = 2 }, meddle: without("Link", "X-Per-Page", "X-Page", "X-Prev-Page")},
		"only the Link is left":     {switches: func(sw *simgitlab.Switches) { sw.MaxPerPage = 2 }, meddle: without("X-Next-Page", "X-Per-Page", "X-Page", "X-Prev-Page")},
		"totals that say none":      {meddle: with("X-Total", "0", "X-Total-Pages", "0")},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T) {
				s := newScene(t, []string{"a"}, nil)
				old := s.VM("a").ID
				if lie.switches != nil {
					s.lab.Switch(lie.switches)
				}
				s.wire.meddle = lie.meddle
				s.atStop(func() {
					for range 3 {
						s.assign("a", simgitlab.JobSpec{})
					}
				})
				id := s.Ask(fleet.KindRecreate, "a")
				s.Run(3 * time.Hour)
				s.mustReplace(id, "a", old)
				if s.Meter.Orphaned != 3 {
					t.Errorf("%d orphans found, want 3\n%s", s.Meter.Orphaned, s.Story())
				}
			})
		})
	}
}

// cases.md T18: a page that does not come makes the whole list unknown, though
// the first one came.
func TestAPageThatDoesNotComeEndsNoDrain(t *testing.T) {
	play(t, func(t *testing.T) {
		s := newScene(t, []string{"a"}, nil)
		old := s.VM("a").ID
		s.lab.Switch(func(sw *simgitlab.Switches) { sw.MaxPerPage = 1 })
		s.wire.meddle = func(req *http.Request, resp *http.Response) *http.Response {
			if strings.HasSuffix(req.URL.Path, "/jobs") && req.URL.Query().Get("page") == "2" {
				resp.StatusCode = http.StatusNotFound
			}
			return resp
		}
		s.atStop(func() {
			s.assign("a", simgitlab.JobSpec{})
			s.assign("a", simgitlab.JobSpec{})
		})
		id := s.Ask(fleet.KindRecreate, "a")
		s.Run(3 * time.Hour)
		s.mustStay(id, "a", old, "GitLab's answer is unknown")
	})
}

func without(headers ...string) func(*http.Request, *http.Response) *http.Response {
	return func(_ *http.Request, resp *http.Response) *http.Response {
		for _, name := range headers {
			resp.Header.Del(name)
		}
		return resp
	}
}

func with(headers ...string) func(*http.Request, *http.Response) *http.Response {
	return func(_ *http.Request, resp *http.Response) *http.Response {
		for i := 0; i < len(headers); i += 2 {
			resp.Header.Set(headers[i], headers[i+1])
		}
		return resp
	}
}
