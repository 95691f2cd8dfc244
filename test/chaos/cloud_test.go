package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// call is one request to the cloud over the wire between two processes.
type call struct {
	VM, Image string
	Prepared  fleet.Prepared
	Create    engine.CreateOrder
	Delete    engine.DeleteOrder
}

// reply is its answer; Code and Message are the error, if there is one.
type reply struct {
	Instances []fleet.Instance
	Prepared  fleet.Prepared
	Progress  engine.Progress
	Left      []string
	Code      fleet.Code
	Message   string
}

// serveCloud lets another process use machines of this one.
func serveCloud(t *testing.T, machines engine.Machines) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in call
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := answer(r.Context(), machines, r.URL.Path, in)
		if err != nil {
			out = reply{Code: fleet.CodeOf(err), Message: err.Error()}
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Log(err) // the client was killed
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func answer(ctx context.Context, m engine.Machines, path string, in call) (out reply, err error) {
	ctx = context.WithoutCancel(ctx) // a killed client does not take its request back
	switch path {
	case "/list":
		out.Instances, err = m.List(ctx)
	case "/describe":
		out.Instances, err = m.Describe(ctx, in.VM)
	case "/prepare":
		out.Prepared, err = m.Prepare(ctx, in.VM, in.Image)
	case "/check":
		err = m.Check(ctx, in.VM, in.Prepared)
	case "/create":
		out.Progress, err = m.Create(ctx, in.Create)
	case "/delete":
		out.Progress, err = m.Delete(ctx, in.Delete)
	case "/remains":
		out.Left, err = m.Remains(ctx, in.Delete)
	default:
		err = fleet.Errorf(fleet.CodeInvalid, "no call %s", path)
	}
	return out, err
}

// cloudClient is engine.Machines in the other process.
type cloudClient struct{ url string }

func (c cloudClient) ask(ctx context.Context, path string, in call) (reply, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, fleet.Errorf(fleet.CodeUnavailable, "the cloud does not answer: %w", err)
	}
	defer resp.Body.Close()
	var out reply
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return reply{}, fleet.Errorf(fleet.CodeUnavailable, "the cloud's answer was cut: %w", err)
	}
	if out.Code != "" {
		return reply{}, fleet.Errorf(out.Code, "%s", out.Message)
	}
	return out, nil
}

func (c cloudClient) List(ctx context.Context) ([]fleet.Instance, error) {
	out, err := c.ask(ctx, "/list", call{})
	return out.Instances, err
}

func (c cloudClient) Describe(ctx context.Context, vm string) ([]fleet.Instance, error) {
	out, err := c.ask(ctx, "/describe", call{VM: vm})
	return out.Instances, err
}

func (c cloudClient) Prepare(ctx context.Context, vm, image string) (fleet.Prepared, error) {
	out, err := c.ask(ctx, "/prepare", call{VM: vm, Image: image})
	return out.Prepared, err
}

func (c cloudClient) Check(ctx context.Context, vm string, p fleet.Prepared) error {
	_, err := c.ask(ctx, "/check", call{VM: vm, Prepared: p})
	return err
}

func (c cloudClient) Create(ctx context.Context, o engine.CreateOrder) (engine.Progress, error) {
	out, err := c.ask(ctx, "/create", call{Create: o})
	return out.Progress, err
}

func (c cloudClient) Delete(ctx context.Context, o engine.DeleteOrder) (engine.Progress, error) {
	out, err := c.ask(ctx, "/delete", call{Delete: o})
	return out.Progress, err
}

func (c cloudClient) Remains(ctx context.Context, o engine.DeleteOrder) ([]string, error) {
	out, err := c.ask(ctx, "/remains", call{Delete: o})
	return out.Left, err
}
