package simhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// podman ps [-a] [--format json]: the caller's own store. Only the runner's
// user has containers; root's list is empty with status 0, a false idle.
func podmanCommand(_ context.Context, c *call) int {
	if slices.Contains(c.args, "--version") || slices.Contains(c.args, "version") {
		fmt.Fprintln(c.out, "podman version 5.4.2")
		return 0
	}
	if !slices.Contains(c.args, "ps") {
		return c.fail(125, "Error: unrecognized command `podman %s`", strings.Join(c.args, " "))
	}
	found := []Container{}
	if c.user == c.h.o.RunnerUser {
		found = c.h.podman.list(slices.Contains(c.args, "-a") || slices.Contains(c.args, "--all"))
	}
	if !slices.Contains(c.args, "json") && !slices.Contains(c.args, "--format=json") {
		fmt.Fprintln(c.out, "CONTAINER ID  IMAGE  COMMAND  CREATED  STATUS  PORTS  NAMES")
		for _, f := range found {
			fmt.Fprintln(c.out, f.ID[:12], f.Image, f.State, f.Names[0])
		}
		return 0
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return c.fail(125, "Error: %v", err)
	}
	fmt.Fprintln(c.out, string(text))
	return 0
}

// gitlab-runner unregister --all-runners deletes only this machine's manager
// when the token is of the glrt kind, and empties config.toml.
func gitlabRunner(ctx context.Context, c *call) int {
	if slices.Contains(c.args, "--version") {
		fmt.Fprintln(c.out, "Version:      19.3.0")
		return 0
	}
	if !slices.Contains(c.args, "unregister") {
		return c.fail(1, "FATAL: command not found")
	}
	cfg := c.h.runnerConfig(nil)
	body := fmt.Sprintf(`{"token":%q,"system_id":%q}`, cfg.token, c.h.SystemID())
	code := send(ctx, c, http.MethodDelete, cfg.url+"/api/v4/runners/managers", "application/json", body)
	if code == 0 {
		c.h.files.Put(c.h.o.ConfigPath, "concurrent = 1\n", c.h.o.RunnerUser, 0o600)
	}
	return code
}

// curl [-X METHOD] [-d|-F DATA]… URL: enough for a shutdown script that
// unregisters the shared token.
func curl(ctx context.Context, c *call) int {
	method, url, data := http.MethodGet, "", []string(nil)
	for i := 0; i < len(c.args); i++ {
		a := c.args[i]
		value := ""
		if slices.Contains([]string{"-X", "--request", "-d", "--data", "-F", "--form", "-o", "-m", "--max-time"}, a) && i+1 < len(c.args) {
			i++
			value = c.args[i]
		}
		switch a {
		case "-X", "--request":
			method = value
		case "-d", "--data", "-F", "--form":
			data = append(data, value)
		default:
			if !strings.HasPrefix(a, "-") {
				url = a
			}
		}
	}
	query := strings.Join(data, "&")
	if query != "" {
		url += "?" + query
	}
	return send(ctx, c, method, url, "", "")
}

// send makes one request to the GitLab of this world.
func send(ctx context.Context, c *call, method, url, kind, body string) int {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return c.fail(3, "curl: (3) %v", err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return c.fail(7, "curl: (7) %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(c.out, resp.Body) // nobody may be reading
	if resp.StatusCode >= http.StatusBadRequest {
		return 22
	}
	return 0
}
