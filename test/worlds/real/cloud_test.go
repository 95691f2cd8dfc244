package real

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// wireRequest is what an exec provider's command gets on standard input, and
// wireAnswer what it says (docs/providers/exec.md).
type wireRequest struct {
	Verb                                  string
	VM, Instance, Image, Operation, Token string
	Attempt                               int
	Spec                                  json.RawMessage
}

type wireAnswer struct {
	Instances *[]fleet.Instance `json:"instances,omitempty"`
	Instance  *fleet.Instance   `json:"instance,omitempty"`
	Image     string            `json:"image,omitempty"`
	Spec      json.RawMessage   `json:"spec,omitempty"`
	Remains   *[]string         `json:"remains,omitempty"`
	Error     string            `json:"error,omitempty"`
}

// exits are the exit codes of the protocol.
var exits = map[fleet.Code]byte{
	fleet.CodeInvalid: 2, fleet.CodeNotFound: 3, fleet.CodeConflict: 4, fleet.CodeUnavailable: 5,
	fleet.CodeQuota: 6, fleet.CodeStockout: 7, fleet.CodeImageMissing: 8, fleet.CodeForbidden: 9,
}

// serveCloud answers the commands of the exec provider.
func (w *world) serveCloud() (stop func(), err error) {
	listener, err := net.Listen("unix", w.path("cloud"))
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.answer(conn) })
		}
	})
	return func() { _ = listener.Close(); all.Wait() }, nil
}

// answer does what one command asks for. The effect comes whether or not the
// answer arrives.
func (w *world) answer(conn net.Conn) {
	defer conn.Close()
	var in wireRequest
	raw, err := io.ReadAll(conn)
	if err != nil || json.Unmarshal(raw, &in) != nil {
		return // the command was killed
	}
	out, err := w.call(in)
	status := byte(0)
	if err != nil {
		out.Error = err.Error()
		if status = exits[fleet.CodeOf(err)]; status == 0 {
			status = 1
		}
	}
	if in.Verb == "create" || in.Verb == "delete" {
		w.say("cloud   %s of %s %s for %s: %d %s", in.Verb, in.VM, in.Instance, in.Operation, status, out.Error)
	}
	if w.losesAnswer() {
		w.say("cloud   the answer to %s %s is lost", in.Verb, in.VM)
		return
	}
	body, err := json.Marshal(out)
	if err != nil {
		return
	}
	_, _ = conn.Write(append([]byte{status}, body...)) // whoever asked may be gone
}

func (w *world) losesAnswer() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lose == 0 {
		return false
	}
	w.lose--
	return true
}

func (w *world) call(in wireRequest) (out wireAnswer, err error) {
	ctx, cloud := context.WithoutCancel(w.life), w.Cloud()
	ref := fleet.Ref{Fleet: fleetName, VM: in.VM}
	remove := engine.DeleteOrder{Ref: ref, Operation: in.Operation, Attempt: in.Attempt, Token: in.Token, Instance: in.Instance}
	switch in.Verb {
	case "list", "describe":
		var list []fleet.Instance
		if list, err = cloud.Describe(ctx, in.VM); in.Verb == "list" {
			list, err = cloud.List(ctx)
		}
		if err == nil {
			out.Instances = &list
		}
	case "prepare":
		var p fleet.Prepared
		p, err = cloud.Prepare(ctx, in.VM, in.Image)
		out.Image, out.Spec = p.Image, p.Spec
	case "check":
		err = cloud.Check(ctx, in.VM, fleet.Prepared{Image: in.Image, Spec: in.Spec})
	case "remains":
		var left []string
		if left, err = cloud.Remains(ctx, remove); err == nil {
			left = append([]string{}, left...) // none is [], not null
			out.Remains = &left
		}
	case "delete":
		w.judgeDelete(remove)
		_, err = w.untilDone(func() (engine.Progress, error) { return cloud.Delete(ctx, remove) })
	case "create":
		create := engine.CreateOrder{Ref: ref, Operation: in.Operation, Attempt: in.Attempt, Token: in.Token, Prepared: fleet.Prepared{Image: in.Image, Spec: in.Spec}}
		out.Instance, err = w.untilDone(func() (engine.Progress, error) { return cloud.Create(ctx, create) })
	default:
		err = fleet.Errorf(fleet.CodeInvalid, "no verb %q", in.Verb)
	}
	return out, err
}

// untilDone asks how an act is until it has ended, as a command does.
func (w *world) untilDone(act func() (engine.Progress, error)) (*fleet.Instance, error) {
	for {
		p, err := act()
		if err != nil || p.Done {
			return p.Instance, err
		}
		if !w.pause(20 * time.Millisecond) {
			return nil, fleet.Errorf(fleet.CodeUnavailable, "the world has ended")
		}
	}
}
