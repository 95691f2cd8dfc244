package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// config is the part of config.toml that matters here.
type config struct {
	Concurrent      int
	CheckInterval   time.Duration
	ShutdownTimeout time.Duration
	Runners         []entry
}

// entry is one [[runners]] of it.
type entry struct {
	Name     string
	URL      string
	Token    string
	Executor string // "shell"; "docker": podman, with the docker executor's names; anything else: podman
	Image    string
	Network  string   // network_mode of [runners.docker]
	Volumes  []string // volumes of [runners.docker]
}

// parseConfig reads the flat subset of TOML that config.toml uses: keys at the top, in
// [[runners]] and in [runners.docker], each on one line; other tables are skipped.
func parseConfig(text string) (config, error) {
	c := config{Concurrent: 1, CheckInterval: 3 * time.Second, ShutdownTimeout: 30 * time.Second}
	section := ""
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "["):
			section = line
			if section == "[[runners]]" {
				c.Runners = append(c.Runners, entry{Image: "localhost/job:latest", Network: "none"})
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return c, fmt.Errorf("line %d: no key = value", number+1)
		}
		if err := c.set(section, strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return c, fmt.Errorf("line %d: %w", number+1, err)
		}
	}
	return c, nil
}

func (c *config) set(section, key, value string) error {
	switch section {
	case "":
		return c.setGlobal(key, value)
	case "[[runners]]":
		return c.Runners[len(c.Runners)-1].set(key, value)
	case "[runners.docker]":
		if len(c.Runners) == 0 {
			return errors.New("[runners.docker] before any [[runners]]")
		}
		return c.Runners[len(c.Runners)-1].setDocker(key, value)
	}
	return nil
}

func (c *config) setGlobal(key, value string) error {
	switch key {
	case "concurrent", "check_interval", "shutdown_timeout":
	default:
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	switch {
	case key == "concurrent":
		c.Concurrent = n
	case key == "check_interval" && n > 0: // 0 means the default
		c.CheckInterval = time.Duration(n) * time.Second
	case key == "shutdown_timeout" && n > 0:
		c.ShutdownTimeout = time.Duration(n) * time.Second
	}
	return nil
}

func (e *entry) set(key, value string) error {
	fields := map[string]*string{
		"name": &e.Name, "url": &e.URL, "token": &e.Token, "executor": &e.Executor, "image": &e.Image,
	}
	field, known := fields[key]
	if !known {
		return nil
	}
	text, err := strconv.Unquote(value)
	if err != nil {
		return fmt.Errorf("%s: %s is no string", key, value)
	}
	*field = text
	return nil
}

// setDocker reads how the real runner's containers are told of networks and volumes;
// TOML's strings and lists of them are JSON's here.
func (e *entry) setDocker(key, value string) error {
	fields := map[string]any{"network_mode": &e.Network, "volumes": &e.Volumes}
	field, known := fields[key]
	if !known {
		return nil
	}
	if err := json.Unmarshal([]byte(value), field); err != nil {
		return fmt.Errorf("%s: %s: %w", key, value, err)
	}
	return nil
}
