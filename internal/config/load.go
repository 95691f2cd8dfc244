package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// EnvFile is the environment variable that names the configuration file.
const EnvFile = "SLUICE_CONFIG"

// Places lists where the file is looked for when none is named, in order.
func Places() []string {
	places := []string{"sluice.yaml"}
	if dir, err := os.UserConfigDir(); err == nil {
		places = append(places, filepath.Join(dir, "sluice", "sluice.yaml"))
	}
	return append(places, "/etc/sluice/sluice.yaml")
}

// Find yields the file to read: the named one, else $SLUICE_CONFIG, else the
// first of [Places] that exists. Errors: CodeInvalid.
func Find(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if named = os.Getenv(EnvFile); named != "" {
		return named, nil
	}
	for _, place := range Places() {
		if _, err := os.Stat(place); err == nil {
			return place, nil
		}
	}
	return "", fleet.Errorf(fleet.CodeInvalid, "no configuration file: looked for %s", strings.Join(Places(), ", ")).
		WithHint("name one with --config FILE or $%s; docs/reference/config.md has an example", EnvFile)
}

// Load reads a configuration file, fills in defaults and what the environment
// overrides, and checks it. It reads no secret. Errors: CodeInvalid with one
// line for each problem, FILE:LINE:COLUMN first.
func Load(path string) (*Config, error) {
	source, err := os.ReadFile(path) //nolint:gosec // the path is the operator's own
	if err != nil {
		return nil, fleet.Errorf(fleet.CodeInvalid, "configuration file %s cannot be read: %w", path, cause(err)).
			WithHint("name another with --config FILE")
	}
	return Parse(path, source, os.LookupEnv)
}

// Parse is [Load] on bytes; path names them in messages.
func Parse(path string, source []byte, env func(string) (string, bool)) (*Config, error) {
	document, err := read(source)
	if err != nil {
		return nil, problems(path, []*problem{fromYAML(err)})
	}
	if list := blanks(document); len(list) > 0 {
		return nil, problems(path, list)
	}
	var content any
	if err := yaml.NodeToValue(document, &content); err != nil {
		return nil, problems(path, []*problem{fromYAML(err)})
	}
	if list := checkSchema(document, content); len(list) > 0 {
		return nil, problems(path, list)
	}
	c := &Config{Path: path}
	if err := yaml.NewDecoder(bytes.NewReader(source), yaml.Strict()).Decode(c); err != nil {
		return nil, problems(path, []*problem{fromYAML(err)})
	}
	if err := c.override(env); err != nil {
		return nil, err
	}
	c.fill()
	if list := c.check(document); len(list) > 0 {
		return nil, problems(path, list)
	}
	return c, nil
}

// read parses one YAML document.
func read(source []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, errors.New("the file is empty")
	}
	if len(file.Docs) > 1 {
		return nil, at(file.Docs[1].GetToken(), "a second YAML document", "keep one")
	}
	return file.Docs[0].Body, nil
}
