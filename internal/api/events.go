package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// pollEvery is how often a long poll looks into the store.
const pollEvery = 200 * time.Millisecond

type eventsInput struct {
	After     int64    `query:"after" minimum:"0" doc:"Only events after this id."`
	Operation []string `query:"operation,explode" maxItems:"200" doc:"Only events of this operation; may be repeated."`
	Limit     int      `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Wait      int      `query:"wait" minimum:"0" maximum:"20" doc:"If there is none, wait up to so many seconds for one."`
}

// Events is a piece of the journal, oldest first.
type Events struct {
	Events []Event `json:"events" nullable:"false"`
	Next   int64   `json:"next" doc:"Ask on with after= this id."`
}

type eventsOutput struct{ Body Events }

func (s *Server) events() {
	register(s, huma.Operation{
		OperationID: "list-events", Method: http.MethodGet, Path: "/api/v1/events", Summary: "Read the journal, oldest first",
	}, s.listEvents)
}

func (s *Server) listEvents(c *call, in *eventsInput) (*eventsOutput, error) {
	facts, err := s.facts(c, in)
	if err != nil {
		return nil, err
	}
	out := &eventsOutput{Body: Events{Events: []Event{}, Next: in.After}}
	for _, f := range facts {
		out.Body.Events = append(out.Body.Events, eventView(f))
		out.Body.Next = f.ID
	}
	return out, nil
}

// facts reads, and waits for the first if there is none.
func (s *Server) facts(c *call, in *eventsInput) ([]fleet.Fact, error) {
	deadline := s.Clock.Now().Add(min(time.Duration(in.Wait)*time.Second, waitLimit))
	for {
		facts, err := s.read(c, in.After, in.Operation, in.Limit)
		if err != nil || len(facts) > 0 || !s.Clock.Now().Before(deadline) {
			return facts, err
		}
		select {
		case <-c.Done():
			return nil, nil
		case <-time.After(pollEvery):
		}
	}
}

// read reads the journal after an id, oldest first: of some operations, or
// whole if none is named.
func (s *Server) read(ctx context.Context, after int64, operations []string, limit int) ([]fleet.Fact, error) {
	if len(operations) == 0 {
		return s.Store.Facts(ctx, after, "", limit)
	}
	var all []fleet.Fact
	for _, operation := range slices.Compact(slices.Sorted(slices.Values(operations))) {
		facts, err := s.Store.Facts(ctx, after, operation, limit)
		if err != nil {
			return nil, err
		}
		all = append(all, facts...)
	}
	slices.SortFunc(all, func(a, b fleet.Fact) int { return cmp.Compare(a.ID, b.ID) })
	return all[:min(limit, len(all))], nil
}
