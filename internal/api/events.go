package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/events"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

const (
	eventsPath    = "/api/v1/events"
	placelessWait = time.Second
)

type eventsInput struct {
	After     int64    `query:"after" minimum:"0" doc:"Only events after this id."`
	LastEvent int64    `header:"Last-Event-ID" minimum:"0" doc:"As after; what a stream that was lost is resumed with. The later of the two counts."`
	Operation []string `query:"operation,explode" maxItems:"200" doc:"Only events of this operation, by its whole id; may be repeated."`
	Limit     int      `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most so many; not of a stream."`
	Wait      int      `query:"wait" minimum:"0" maximum:"20" doc:"If there is none, wait up to so many seconds for one; not of a stream."`

	form form
}

// Resolve implements huma.Resolver.
func (in *eventsInput) Resolve(ctx huma.Context) []error {
	in.form = negotiate(ctx.Header("Accept"))
	in.After = max(in.After, in.LastEvent)
	return nil
}

// Events is a piece of the journal, oldest first.
type Events struct {
	Events []Event `json:"events" nullable:"false"`
	Next   int64   `json:"next" doc:"Ask on with after= this id."`
}

type eventsOutput struct{ Body func(huma.Context) }

func (s *Server) events() {
	register(s, huma.Operation{
		OperationID: "list-events", Method: http.MethodGet, Path: eventsPath,
		Summary: "Read the journal, oldest first, or follow it as a stream", Description: streamsDescription,
		Responses: s.eventsResponses(),
		Errors:    []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusServiceUnavailable},
	}, s.listEvents)
}

// listEvents answers with a piece or with a stream, as the caller accepts.
func (s *Server) listEvents(c *call, in *eventsInput) (*eventsOutput, error) {
	operations, err := s.readable(c, in.Operation)
	if err != nil {
		return nil, err
	}
	if in.form != asJSON {
		return s.startStream(c, in, operations)
	}
	facts, err := s.facts(c, in, operations)
	if err != nil {
		return nil, err
	}
	piece := Events{Events: []Event{}, Next: in.After}
	for _, f := range facts {
		piece.Events = append(piece.Events, eventView(f))
		piece.Next = f.ID
	}
	return &eventsOutput{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		ctx.SetHeader("Cache-Control", "no-store")
		ctx.SetStatus(http.StatusOK)
		_ = json.NewEncoder(ctx.BodyWriter()).Encode(piece) // the caller is gone
	}}, nil
}

// readable says whose events the caller reads: of the operations that he
// named, each once, or of all (none) if he named none. It is the one place
// that refuses. Errors: CodeNotFound.
func (s *Server) readable(c *call, named []string) ([]string, error) {
	operations := slices.Compact(slices.Sorted(slices.Values(named)))
	for _, id := range operations {
		if _, err := s.Store.Operation(c, id); err != nil {
			return nil, err
		}
	}
	return operations, nil
}

// facts reads, and waits for the first if there is none.
func (s *Server) facts(c *call, in *eventsInput, operations []string) ([]fleet.Fact, error) {
	facts, err := events.Read(c, s.Store, in.After, operations, in.Limit)
	if err != nil || len(facts) > 0 || in.Wait == 0 {
		return facts, err
	}
	f, err := s.tail.Follow(c, c.key, in.After, operations)
	switch code := fleet.CodeOf(err); {
	case err != nil && (code == fleet.CodeUnavailable || code == fleet.CodeRateLimited):
		return s.placeless(c, in, operations)
	case err != nil:
		return nil, ending(err)
	}
	defer f.Close()
	news, err := f.Next(c, min(time.Duration(in.Wait)*time.Second, waitLimit))
	if errors.Is(err, events.ErrEnded) || errors.Is(err, context.Canceled) || err == nil && len(news) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return events.Read(c, s.Store, in.After, operations, in.Limit)
}

// placeless answers who waits for news and has no place among those who
// follow: with what there is after a moment, without which he would be back at
// once.
func (s *Server) placeless(c *call, in *eventsInput, operations []string) ([]fleet.Fact, error) {
	moment := time.NewTimer(min(time.Duration(in.Wait)*time.Second, placelessWait))
	defer moment.Stop()
	select {
	case <-c.Done():
		return nil, nil
	case <-moment.C:
	}
	return events.Read(c, s.Store, in.After, operations, in.Limit)
}

// ending is the answer to who comes while the server ends.
func ending(err error) error {
	if errors.Is(err, events.ErrEnded) {
		return fleet.Errorf(fleet.CodeUnavailable, "the server is about to end").WithHint("ask again; after= the last event loses none")
	}
	return err
}
