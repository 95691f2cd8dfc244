package simhost

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"gitlab.com/sluice-runners/sluice/internal/sim/memfs"
)

// runnerConfig is what the runner reads of its config.toml.
type runnerConfig struct {
	url, token, executor string
	concurrent           int
	shutdown             time.Duration
}

var configLine = regexp.MustCompile(`(?m)^\s*(url|token|executor|concurrent|shutdown_timeout)\s*=\s*"?([^"\n]*?)"?\s*$`)

// runnerConfig reads the file named by --config. Of several [[runners]] entries
// the simulated runner serves the first; a real one serves all.
func (h *Host) runnerConfig(argv []string) runnerConfig {
	file := h.o.ConfigPath
	for i, a := range argv {
		if a == "--config" && i+1 < len(argv) {
			file = argv[i+1]
		}
	}
	text, _ := h.files.ReadFile(file, memfs.Root) // no file: no runner, concurrent 0
	c := runnerConfig{executor: "custom"}
	if parts := strings.SplitN(string(text), "[[runners]]", 3); len(parts) == 3 {
		text = []byte(parts[0] + parts[1])
	}
	for _, m := range configLine.FindAllStringSubmatch(string(text), -1) {
		switch m[1] {
		case "url":
			c.url = m[2]
		case "token":
			c.token = m[2]
		case "executor":
			c.executor = m[2]
		case "concurrent":
			c.concurrent, _ = strconv.Atoi(m[2]) // no number: 0, which is fatal
		case "shutdown_timeout":
			n, _ := strconv.Atoi(m[2]) // 0 means the default
			c.shutdown = time.Duration(n) * time.Second
		}
	}
	return c
}

// rememberSystemID writes the file beside config.toml, as the runner does at
// its first start.
func (h *Host) rememberSystemID() {
	if _, err := h.files.ReadFile(h.systemIDPath(), memfs.Root); err != nil {
		h.files.Put(h.systemIDPath(), h.SystemID(), h.o.RunnerUser, 0o600)
	}
}
