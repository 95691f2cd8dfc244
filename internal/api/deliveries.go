package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

type deliveriesInput struct {
	Event   string `query:"event" enum:"pipeline,push,tag,release,merge,job,other"`
	Outcome string `query:"outcome" enum:"pending,asked,refused,superseded,hint,ignored,unreadable"`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// Deliveries is a list, newest first.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries" nullable:"false"`
}

// Delivery is one authenticated call of a GitLab webhook.
type Delivery struct {
	ID         string     `json:"id"`
	Key        string     `json:"key,omitempty" doc:"GitLab's Idempotency-Key, which its own list of recent events shows."`
	ReceivedAt time.Time  `json:"received_at"`
	Event      string     `json:"event" enum:"pipeline,push,tag,release,merge,job,other"`
	Project    int64      `json:"project,omitempty"`
	Path       string     `json:"path,omitempty" doc:"Of the project."`
	Ref        string     `json:"ref,omitempty" doc:"The branch or tag; of a merge the target branch."`
	SHA        string     `json:"sha,omitempty"`
	Status     string     `json:"status,omitempty" doc:"Of the pipeline or job; the action of a merge request or release."`
	URL        string     `json:"url,omitempty"`
	Outcome    string     `json:"outcome" enum:"pending,asked,refused,superseded,hint,ignored,unreadable"`
	Reason     string     `json:"reason,omitempty"`
	Operations []string   `json:"operations,omitempty" doc:"The operations that it asked for, or that ran already."`
	Repeats    int        `json:"repeats,omitempty" doc:"How often the same came again."`
	RepeatedAt *time.Time `json:"repeated_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

type deliveriesOutput struct{ Body Deliveries }

func (s *Server) deliveries() {
	register(s, huma.Operation{
		OperationID: "list-deliveries", Method: http.MethodGet, Path: "/api/v1/deliveries",
		Summary: "List webhook deliveries with what became of them, newest first",
	}, s.listDeliveries)
}

func (s *Server) listDeliveries(c *call, in *deliveriesInput) (*deliveriesOutput, error) {
	list, err := s.Store.Deliveries(c, fleet.DeliveryFilter{Event: in.Event, Outcome: fleet.DeliveryOutcome(in.Outcome), Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := &deliveriesOutput{Body: Deliveries{Deliveries: []Delivery{}}}
	for i := range list {
		out.Body.Deliveries = append(out.Body.Deliveries, deliveryView(&list[i]))
	}
	return out, nil
}

func deliveryView(d *fleet.Delivery) Delivery {
	v := Delivery{
		ID: d.ID, Key: d.Key, ReceivedAt: d.At, Event: d.Event, Project: d.Project, Path: d.Path, Ref: d.Ref, SHA: d.SHA, Status: d.Status,
		URL: d.URL, Outcome: string(d.Outcome), Reason: d.Reason, Repeats: d.Repeats, RepeatedAt: stamp(d.RepeatedAt), FinishedAt: stamp(d.FinishedAt),
	}
	for _, task := range d.Tasks {
		for _, asked := range task.Asked {
			if asked.Operation != "" {
				v.Operations = append(v.Operations, asked.Operation)
			}
		}
	}
	return v
}
