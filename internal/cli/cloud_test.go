package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/engine"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
	"gitlab.com/sluice-runners/sluice/internal/sim"
)

// toycloud is a provider command of the operator's own: it hands its request
// to the cloud of the test's world and prints the answer.
func toycloud() {
	request, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(5)
	}
	response, err := http.Post(os.Getenv("TOYCLOUD"), "application/json", bytes.NewReader(request)) //nolint:noctx // a test's command
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(5)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		fmt.Fprintf(os.Stderr, "%s\n", body)
		os.Exit(map[string]int{"invalid": 2, "conflict": 4, "quota": 6, "stockout": 7, "image_missing": 8, "forbidden": 9}[response.Header.Get("Code")])
	}
	fmt.Printf("%s\n", body)
}

type toyRequest struct {
	Verb, VM, Image, Instance, Operation, Token string
	Attempt                                     int
}

// cloudServer is the other end of toycloud.
type cloudServer struct {
	url    string
	server *http.Server
}

func (c *cloudServer) close() { _ = c.server.Close() }

func serveCloud(w *sim.World) (*cloudServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's server
	if err != nil {
		return nil, err
	}
	c := &cloudServer{url: "http://" + listener.Addr().String(), server: &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var r toyRequest
		if err := json.NewDecoder(in.Body).Decode(&r); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := obey(in.Context(), w, r)
		if err != nil {
			out.Header().Set("Code", string(fleet.CodeOf(err)))
			http.Error(out, err.Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(out).Encode(answer)
	})}}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// obey does what a verb asks of the world's cloud.
func obey(ctx context.Context, w *sim.World, r toyRequest) (map[string]any, error) {
	cloud, ref := w.Cloud(), fleet.Ref{Fleet: "lab", VM: r.VM}
	switch r.Verb {
	case "list":
		list, err := cloud.List(ctx)
		return map[string]any{"instances": instances(list)}, err
	case "describe":
		list, err := cloud.Describe(ctx, r.VM)
		return map[string]any{"instances": instances(list)}, err
	case "prepare":
		p, err := cloud.Prepare(ctx, r.VM, r.Image)
		return map[string]any{"image": p.Image}, err
	case "create":
		return map[string]any{}, toTheEnd(ctx, func() (engine.Progress, error) {
			return cloud.Create(ctx, engine.CreateOrder{
				Ref: ref, Operation: r.Operation, Attempt: r.Attempt, Token: r.Token, Prepared: fleet.Prepared{Image: r.Image},
			})
		})
	case "delete":
		return map[string]any{}, toTheEnd(ctx, func() (engine.Progress, error) {
			return cloud.Delete(ctx, engine.DeleteOrder{Ref: ref, Operation: r.Operation, Attempt: r.Attempt, Token: r.Token, Instance: r.Instance})
		})
	case "remains":
		left, err := cloud.Remains(ctx, engine.DeleteOrder{Ref: ref, Instance: r.Instance})
		return map[string]any{"remains": append([]string{}, left...)}, err
	default:
		return nil, errors.New("no such verb")
	}
}

func toTheEnd(ctx context.Context, act func() (engine.Progress, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if p, err := act(); err != nil || p.Done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func instances(list []fleet.Instance) []map[string]any {
	out := []map[string]any{}
	for _, m := range list {
		out = append(out, map[string]any{
			"id": m.ID, "vm": m.VM, "presence": m.Presence, "ready": m.Ready, "address": m.Address,
			"host_keys": m.HostKeys, "image": m.Image, "labels": m.Labels,
		})
	}
	return out
}

const worldConfig = `gitlab: {url: %s, token: {file: %[2]s/gitlab-token}}
fleets:
  lab:
    runner: {id: %[3]d, token: {file: %[2]s/runner-token}}
    vms: {names: [%[4]s]}
    provider:
      exec:
        list: [toycloud]
        describe: [toycloud]
        prepare: [toycloud]
        create: [toycloud]
        delete: [toycloud]
        remains: [toycloud]
        env: {TOYCLOUD: %[5]s}
    host: {user: %[6]s, runner_user: %[7]s, key: {file: %[2]s/key}, host_keys: provider}
    rollout: {gate: {online: 30s}}
store: {sqlite: %[2]s/sluice.db}
server: {socket: %[8]s}
`

func writeConfig(dir string, w *sim.World, url string) error {
	spec := w.Spec()
	key, err := w.PrivateKey()
	if err != nil {
		return err
	}
	names := ""
	for i, vm := range spec.VMs {
		if i > 0 {
			names += ", "
		}
		names += vm
	}
	short, err := os.MkdirTemp("", "sl")
	if err != nil {
		return err
	}
	config := fmt.Sprintf(worldConfig, w.URL(), dir, spec.RunnerID, names, url, spec.Host.User, spec.Host.RunnerUser, filepath.Join(short, "s"))
	for name, text := range map[string]string{
		"wrong-token":   "glpat-nobody-knows",
		"badtoken.yaml": strings.ReplaceAll(config, "gitlab-token", "wrong-token"),
		"gitlab-token":  w.ReadToken(), "runner-token": w.RunnerToken(), "key": string(key),
		"notoken.yaml": notoken(config),
		"sluice.yaml":  config,
		"door.yaml":    door(config, spec.VMs[0], dir),
		"hook-token":   doorToken,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// notoken is a configuration without any token.
func notoken(text string) string {
	text = regexp.MustCompile(`, token: \{file: [^}]*\}`).ReplaceAllString(text, "")
	return strings.ReplaceAll(text, "sluice.db", "notoken.db")
}

// doorToken lets pipelines and webhooks of the scripts in.
const doorToken = "a-token-of-the-scripts"

// door is a configuration that listens on TCP too: for a static token, and for
// webhooks, of which a push to main recreates a VM.
func door(text, vm, dir string) string {
	sum := sha256.Sum256([]byte(doorToken))
	text = strings.Replace(text, "server: {", "server: {listen: \"127.0.0.1:0\", tokens: [{name: script, sha256: "+hex.EncodeToString(sum[:])+"}], ", 1)
	return text + fmt.Sprintf(`webhooks: {gitlab: {secret_tokens: [{file: %s/hook-token}]}}
triggers: [{name: image-pushed, on: push, project_id: 42, branch: main, fleet: lab, vms: [%s]}]
`, dir, vm)
}
